/* versions.c - two builds of this library beside each other, call by call
 *
 * A change must not make a call slower.  Two programs that run one after the
 * other cannot show 3 %: the machine is shared, and its cores move.  So one
 * program loads both builds and lets them take turns, a call each.  The old
 * build takes part twice, from two files, as "old" and "again": the ratio of
 * the two is the noise, and a ratio of new to old means something only beyond
 * it.
 *
 * A call is preceded by writing its whole input and followed by reading its
 * whole output.  All ranks begin at a gate.  The slowest rank counts, and of
 * all calls the median.  Outputs of both builds are compared bit by bit.
 *
 * Usage: versions OLD OLD-COPY NEW RANKS CALLS BYTES...; the first three are
 * shared libraries.  Prints for each case "RANKS TEST MEMORY BYTES OLD AGAIN
 * NEW DIFFER": medians in microseconds, and the calls whose outputs differ.
 * Built and run by versions.sh.
 */
#include "dtensor.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OLD, AGAIN, NEW, NBUILDS };
enum { RANKS_MAX = 64, CALLS_MAX = 4096, SPEC_BYTES = 65536 };

/* What is called of a build. */
#define FUNCTIONS(X) \
    X(init) X(fini) X(mesh_find) X(alloc) X(free) X(allreduce) X(allgather) \
    X(reduce_scatter) X(all_to_all) X(broadcast) X(spec_init) X(zeros) \
    X(redistribute) X(redistribute_into) X(to_local) X(destroy)

struct build {
#define POINTER(name) __typeof__(dtensor_##name) *name;
    FUNCTIONS(POINTER)
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    struct dtensor *rows, *columns;
    void *in, *out;
};

/* What all ranks see. */
struct shared {
    struct {
        _Alignas(128) _Atomic long passed;
    } gate[RANKS_MAX];
    double us[RANKS_MAX][NBUILDS][CALLS_MAX];
    long differ[RANKS_MAX];
};

struct bench {
    struct shared *shared;
    int rank, ranks, calls;
    bool oversubscribed;
    long gates;
    struct build builds[NBUILDS];
    size_t count;                 /* the argument of the call                 */
    size_t in_bytes, out_bytes;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "versions: %s: %s\n", what, why);
    exit(1);
}

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void gate(struct bench *b)
{
    atomic_store(&b->shared->gate[b->rank].passed, ++b->gates);
    for (int r = 0; r < b->ranks; r++)
        while (atomic_load(&b->shared->gate[r].passed) < b->gates)
            if (b->oversubscribed)
                sched_yield();
}

/* ---------------------------------------------------------------- cases --- */

static int call_allreduce(const struct bench *b, struct build *build)
{
    return build->allreduce(build->world, build->in, build->out, b->count,
                            DTENSOR_F32, DTENSOR_SUM, NULL);
}

static int call_allgather(const struct bench *b, struct build *build)
{
    return build->allgather(build->world, build->in, build->out, b->count,
                            DTENSOR_F32, NULL);
}

static int call_reduce_scatter(const struct bench *b, struct build *build)
{
    return build->reduce_scatter(build->world, build->in, build->out, b->count,
                                 DTENSOR_F32, DTENSOR_SUM, NULL);
}

static int call_all_to_all(const struct bench *b, struct build *build)
{
    return build->all_to_all(build->world, build->in, build->out, b->count,
                             DTENSOR_F32, NULL);
}

static int call_broadcast(const struct bench *b, struct build *build)
{
    return build->broadcast(build->world, 0, build->in, b->count, DTENSOR_F32,
                            NULL);
}

static int call_redistribute(const struct bench *b, struct build *build)
{
    (void)b;
    return build->redistribute_into(build->rows, build->columns, NULL);
}

static const struct test {
    const char *name;
    int (*call)(const struct bench *b, struct build *build);
    bool in_blocks, out_blocks;   /* a block for each rank                    */
    bool in_place;
    bool tensors;                 /* rows to columns of a square matrix       */
} tests[] = {
    { "allreduce", call_allreduce, false, false, false, false },
    { "allgather", call_allgather, false, true, false, false },
    { "reduce_scatter", call_reduce_scatter, true, false, false, false },
    { "all_to_all", call_all_to_all, true, true, false, false },
    { "broadcast", call_broadcast, false, false, true, false },
    { "redistribute", call_redistribute, true, true, false, true },
};
enum { NTESTS = sizeof tests / sizeof tests[0] };

/* ------------------------------------------------------------ measuring --- */

/* Small whole numbers, so that sums are exact in any order. */
static void write_input(const struct bench *b, float *in, int call)
{
    for (size_t i = 0; i < b->in_bytes / sizeof *in; i++)
        in[i] = (float)((i * 5 + (size_t)b->rank + (size_t)call) & 7);
}

static double turn(struct bench *b, const struct test *test, int which,
                   int call)
{
    struct build *build = &b->builds[which];
    double start, us;

    if (!test->in_place)
        memset(build->out, 0xff, b->out_bytes);
    write_input(b, build->in, call);
    gate(b);
    start = now_us();
    if (test->call(b, build) != 0)
        die(test->name, "failed");
    us = now_us() - start;
    gate(b);                      /* nobody writes what a peer still reads    */
    return us;
}

static bool same_output(const struct bench *b, const struct test *test,
                        int which)
{
    const struct build *old = &b->builds[OLD], *other = &b->builds[which];

    return test->in_place ? memcmp(old->in, other->in, b->in_bytes) == 0
                          : memcmp(old->out, other->out, b->out_bytes) == 0;
}

/* All orders in turn: each build comes after each other one equally often. */
static const int orders[][NBUILDS] = {
    { OLD, AGAIN, NEW }, { NEW, AGAIN, OLD }, { AGAIN, NEW, OLD },
    { OLD, NEW, AGAIN }, { NEW, OLD, AGAIN }, { AGAIN, OLD, NEW },
};
enum { NORDERS = sizeof orders / sizeof orders[0] };

static void measure(struct bench *b, const struct test *test)
{
    b->shared->differ[b->rank] = 0;
    for (int i = -b->calls / 10 - 10; i < b->calls; i++) {
        for (int t = 0; t < NBUILDS; t++) {
            const int which = orders[(i + CALLS_MAX) % NORDERS][t];
            const double us = turn(b, test, which, i + b->calls);

            if (i >= 0)
                b->shared->us[b->rank][which][i] = us;
        }
        b->shared->differ[b->rank] += !same_output(b, test, NEW);
        (void)same_output(b, test, AGAIN);     /* read it as the others are   */
    }
    gate(b);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median over the calls of the slowest rank's time. */
static double median(struct bench *b, int which)
{
    double us[CALLS_MAX];

    for (int i = 0; i < b->calls; i++) {
        us[i] = 0;
        for (int r = 0; r < b->ranks; r++)
            if (b->shared->us[r][which][i] > us[i])
                us[i] = b->shared->us[r][which][i];
    }
    qsort(us, (size_t)b->calls, sizeof *us, compare);
    return us[b->calls / 2];
}

static void report(struct bench *b, const struct test *test,
                   const char *memory, size_t bytes)
{
    long differ = 0;

    for (int r = 0; r < b->ranks; r++)
        differ += b->shared->differ[r];
    printf("%d %s %s %zu", b->ranks, test->name, memory, bytes);
    for (int which = 0; which < NBUILDS; which++)
        printf(" %.3f", median(b, which));
    printf(" %ld\n", differ);
    fflush(stdout);
}

/* --------------------------------------------------------------- memory --- */

static void *take(struct build *build, bool alloc, size_t size)
{
    struct dtensor_error err;
    void *mem;

    if (alloc && build->alloc(build->ctx, size, &mem, &err) != 0)
        die("dtensor_alloc", err.text);
    if (!alloc && posix_memalign(&mem, 4096, size) != 0)
        die("malloc", "out of memory");
    memset(mem, 0, size);
    return mem;
}

static void give_back(struct build *build, bool alloc, void *mem)
{
    if (alloc)
        build->free(build->ctx, mem);
    else
        free(mem);
}

static void measure_buffers(struct bench *b, const struct test *test,
                            bool alloc, size_t bytes)
{
    const size_t n = (size_t)b->ranks;
    const size_t blocks = test->in_blocks || test->out_blocks ? n : 1;

    b->count = bytes / (sizeof(float) * blocks);
    b->in_bytes = b->count * sizeof(float) * (test->in_blocks ? n : 1);
    b->out_bytes = b->count * sizeof(float) * (test->out_blocks ? n : 1);
    for (int i = 0; i < NBUILDS; i++) {
        b->builds[i].in = take(&b->builds[i], alloc, b->in_bytes);
        b->builds[i].out = take(&b->builds[i], alloc, b->out_bytes);
    }
    measure(b, test);
    if (b->rank == 0)
        report(b, test, alloc ? "alloc" : "malloc", bytes);
    gate(b);
    for (int i = 0; i < NBUILDS; i++) {
        give_back(&b->builds[i], alloc, b->builds[i].in);
        give_back(&b->builds[i], alloc, b->builds[i].out);
    }
}

/* A square f32 matrix of about `bytes` on each rank. */
static void measure_tensors(struct bench *b, const struct test *test,
                            size_t bytes)
{
    union { struct dtensor_spec spec; char room[SPEC_BYTES]; } any;
    int64_t n = b->ranks;
    struct dtensor_error err;

    while ((size_t)(n * n) * sizeof(float) / (size_t)b->ranks < bytes)
        n *= 2;
    b->in_bytes = b->out_bytes = (size_t)(n * n / b->ranks) * sizeof(float);
    for (int i = 0; i < NBUILDS; i++) {
        struct build *u = &b->builds[i];

        if (u->spec_init(&any.spec, u->ctx, "world", "S(0)", DTENSOR_F32, 2,
                         (const int64_t[]){ n, n }, &err) != 0
            || u->zeros(&any.spec, &u->rows, &err) != 0
            || u->redistribute(u->rows, "S(1)", &u->columns, &err) != 0)
            die("tensors", err.text);
        u->in = u->to_local(u->rows);
        u->out = u->to_local(u->columns);
    }
    measure(b, test);
    if (b->rank == 0)
        report(b, test, "tensor", b->in_bytes);
    gate(b);
    for (int i = 0; i < NBUILDS; i++) {
        b->builds[i].destroy(b->builds[i].rows);
        b->builds[i].destroy(b->builds[i].columns);
    }
}

/* ---------------------------------------------------------------- ranks --- */

static void build_load(struct build *build, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        die(path, dlerror());
#define LOOK_UP(name) \
    *(void **)&build->name = dlsym(library, "dtensor_" #name); \
    if (!build->name) \
        die(path, "has no dtensor_" #name);
    FUNCTIONS(LOOK_UP)
}

static void set_number(const char *name, int value)
{
    char text[32];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* Each build is a job of its own. */
static void build_join(struct build *build, int which, int job)
{
    struct dtensor_error err;

    set_number("DTN_JOB", job * NBUILDS + which);
    if (build->init(NULL, &build->ctx, &err) != 0
        || build->mesh_find(build->ctx, "world", &build->world, &err) != 0)
        die("init", err.text);
}

static void bind_to_cpu(int rank)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(rank, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void be_rank(struct bench *b, int rank, char **argv, int argc, int job)
{
    const int calls = atoi(argv[5]);

    b->rank = rank;
    set_number("DTN_RANK", rank);
    set_number("DTN_LOCAL_RANK", rank);
    if (!b->oversubscribed)
        bind_to_cpu(rank);
    for (int i = 0; i < NBUILDS; i++)
        build_load(&b->builds[i], argv[1 + i]);
    for (int i = 0; i < NBUILDS; i++)
        build_join(&b->builds[i], i, job);
    for (int t = 0; t < NTESTS; t++)
        for (int i = 6; i < argc; i++) {
            const size_t bytes = strtoul(argv[i], NULL, 10);

            b->calls = bytes <= 65536 ? calls : calls / 8 + 8;
            if (tests[t].tensors) {
                measure_tensors(b, &tests[t], bytes);
                continue;
            }
            measure_buffers(b, &tests[t], true, bytes);
            measure_buffers(b, &tests[t], false, bytes);
        }
    for (int i = 0; i < NBUILDS; i++)
        b->builds[i].fini(b->builds[i].ctx);
}

int main(int argc, char **argv)
{
    struct bench b = { .ranks = argc > 6 ? atoi(argv[4]) : 0 };
    int failed = 0, status;

    if (b.ranks < 2 || b.ranks > RANKS_MAX || atoi(argv[5]) < 1
        || atoi(argv[5]) > CALLS_MAX - 8)
        die("usage", "versions OLD OLD-COPY NEW RANKS CALLS BYTES...");
    b.oversubscribed = b.ranks > sysconf(_SC_NPROCESSORS_ONLN);
    b.shared = mmap(NULL, sizeof *b.shared, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b.shared == MAP_FAILED)
        die("mmap", "out of memory");
    set_number("DTN_WORLD_SIZE", b.ranks);
    set_number("DTN_LOCAL_SIZE", b.ranks);
    for (int r = 0; r < b.ranks; r++)
        if (fork() == 0) {
            be_rank(&b, r, argv, argc, (int)getppid());
            exit(0);
        }
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0;
}
