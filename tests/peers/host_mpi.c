/* host_mpi.c - collectives of one host by two libraries and the bare machine,
 * in one loop
 *
 * Contestants take turns, a call each, so that they see the same machine:
 *
 *     bound     each rank copies the bytes it must get out of a peer's memory,
 *               nothing else: no transfer between these cores is much faster
 *     alloc     ours, on memory of dtensor_alloc()
 *     private   ours, on memory of malloc()
 *     mpi       the MPI's, on the same memory of malloc()
 *
 * A call is preceded by writing the whole output, with what is no result, and
 * the whole input, and followed by reading and comparing the whole output.
 * Else the lines of the output would be where the contestant before left them:
 * after some in the peer's cache, and 64 KiB took 7 us to come in instead of 2.  Ranks meet at a gate, which names the time of
 * CLOCK_MONOTONIC at which all begin; the slowest rank counts, and of the calls
 * the median.  With begin 1000 and ends 1300 and 1290 ns the call took 300.
 * When ranks outnumber CPUs the gate cannot name a time: there each rank counts
 * from its own start.
 *
 * Before all that two ranks throw a cache line to and fro: half a turn, the
 * median of 100 times 100, is the hop that no message can beat.
 *
 * Usage: mpirun -n RANKS host_mpi TEST,TEST... CALLS BYTES...; CALLS are those
 * of small sizes, of more than 64 KiB fewer.  Prints "hop NS" and then "TEST
 * BYTES CONTESTANT MIN MEDIAN P99 WRONG" in microseconds.  Bytes are those of
 * dtensor-bench: of an all-gather over 2 ranks, 1024 are 512 from each.  Built
 * and run by host.sh.
 */
#include "dtensor.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MAX = 64, HOP_TURNS = 100, HOP_TIMES = 100, START_NS = 400 };

/* A number with two cache lines to itself. */
struct number {
    _Alignas(128) _Atomic int64_t value;
};

/* What the ranks share. */
struct shared {
    struct number start_ns, ball;
    struct number arrived[RANKS_MAX];
};

struct bench {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    struct shared *shared;
    int rank, ranks;
    bool crowded;                 /* more ranks than CPUs                      */
    int64_t gates;                /* passed                                    */
    const struct test *test;
    size_t count;                 /* the argument of the call                  */
    size_t in_bytes, out_bytes, incoming_bytes;
    float *in, *out;              /* of malloc()                               */
    float *alloc_in, *alloc_out;  /* of dtensor_alloc()                        */
    float *pull_in;               /* what peers copy out of, and theirs        */
    const float *pull_from;
    int calls;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "host_mpi: %s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ------------------------------------------------------- input, output --- */

/* Element i of what a rank writes for a call: small, so that sums are exact. */
static inline float term(int from, size_t i, int call)
{
    return (float)((unsigned)(i * 5 + (size_t)from + (size_t)call) & 7);
}

static void fill(float *in, size_t n, int from, int call)
{
    for (size_t i = 0; i < n; i++)
        in[i] = term(from, i, call);
}

/* How many of out[0..n) are not what `from` has from element `first` on. */
static long differ(const float *out, size_t n, int from, size_t first,
                   int call)
{
    int wrong = 0;

    for (size_t i = 0; i < n; i++)
        wrong += out[i] != term(from, first + i, call);
    return wrong;
}

/* The same of the sum over all ranks. */
static long differ_sum(const struct bench *b, const float *out, size_t n,
                       size_t first, int call)
{
    int wrong = 0;

    for (size_t i = 0; i < n; i++) {
        float sum = 0;

        for (int r = 0; r < b->ranks; r++)
            sum += term(r, first + i, call);
        wrong += out[i] != sum;
    }
    return wrong;
}

static long check_allreduce(const struct bench *b, const float *out, int call)
{
    return differ_sum(b, out, b->count, 0, call);
}

static long check_reduce_scatter(const struct bench *b, const float *out,
                                 int call)
{
    return differ_sum(b, out, b->count, (size_t)b->rank * b->count, call);
}

static long check_allgather(const struct bench *b, const float *out, int call)
{
    long wrong = 0;

    for (int r = 0; r < b->ranks; r++)
        wrong += differ(out + (size_t)r * b->count, b->count, r, 0, call);
    return wrong;
}

static long check_all_to_all(const struct bench *b, const float *out, int call)
{
    long wrong = 0;

    for (int r = 0; r < b->ranks; r++)
        wrong += differ(out + (size_t)r * b->count, b->count, r,
                        (size_t)b->rank * b->count, call);
    return wrong;
}

static long check_broadcast(const struct bench *b, const float *out, int call)
{
    return differ(out, b->count, 0, 0, call);
}

/* ----------------------------------------------------------------- tests --- */

static int ours_allreduce(struct bench *b, float *in, float *out,
                          struct dtensor_error *err)
{
    return dtensor_allreduce(b->world, in, out, b->count, DTENSOR_F32,
                             DTENSOR_SUM, err);
}

static int ours_allgather(struct bench *b, float *in, float *out,
                          struct dtensor_error *err)
{
    return dtensor_allgather(b->world, in, out, b->count, DTENSOR_F32, err);
}

static int ours_reduce_scatter(struct bench *b, float *in, float *out,
                               struct dtensor_error *err)
{
    return dtensor_reduce_scatter(b->world, in, out, b->count, DTENSOR_F32,
                                  DTENSOR_SUM, err);
}

static int ours_all_to_all(struct bench *b, float *in, float *out,
                           struct dtensor_error *err)
{
    return dtensor_all_to_all(b->world, in, out, b->count, DTENSOR_F32, err);
}

static int ours_broadcast(struct bench *b, float *in, float *out,
                          struct dtensor_error *err)
{
    (void)out;
    return dtensor_broadcast(b->world, 0, in, b->count, DTENSOR_F32, err);
}

static void mpi_allreduce(struct bench *b, float *in, float *out, int count)
{
    (void)b;
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void mpi_allgather(struct bench *b, float *in, float *out, int count)
{
    (void)b;
    MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void mpi_reduce_scatter(struct bench *b, float *in, float *out,
                               int count)
{
    (void)b;
    MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
}

static void mpi_all_to_all(struct bench *b, float *in, float *out, int count)
{
    (void)b;
    MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void mpi_broadcast(struct bench *b, float *in, float *out, int count)
{
    (void)b;
    (void)out;
    MPI_Bcast(in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static const struct test {
    const char *name;
    bool in_blocks, out_blocks;   /* one for each rank                         */
    bool rooted;                  /* in place, and nothing comes to the root   */
    int twice;                    /* comes in once in parts and once as sums   */
    int (*ours)(struct bench *b, float *in, float *out,
                struct dtensor_error *err);
    void (*mpi)(struct bench *b, float *in, float *out, int count);
    long (*check)(const struct bench *b, const float *out, int call);
} tests[] = {
    { "allreduce", false, false, false, 2, ours_allreduce, mpi_allreduce,
      check_allreduce },
    { "allgather", false, true, false, 1, ours_allgather, mpi_allgather,
      check_allgather },
    { "reduce_scatter", true, false, false, 1, ours_reduce_scatter,
      mpi_reduce_scatter, check_reduce_scatter },
    { "all_to_all", true, true, false, 1, ours_all_to_all, mpi_all_to_all,
      check_all_to_all },
    { "broadcast", false, false, true, 0, ours_broadcast, mpi_broadcast,
      check_broadcast },
};
enum { NTESTS = sizeof tests / sizeof tests[0] };

/* ----------------------------------------------------------- contestants --- */

/* One call; how many elements came out wrong is added by check(). */
static void call_bound(struct bench *b)
{
    memcpy(b->out, b->pull_from, b->incoming_bytes);
}

static void call_ours(struct bench *b, float *in, float *out)
{
    struct dtensor_error err;

    if (b->test->ours(b, in, out, &err) != 0)
        die(b->test->name, err.text);
}

static void call_alloc(struct bench *b)
{
    call_ours(b, b->alloc_in, b->alloc_out);
}

static void call_private(struct bench *b)
{
    call_ours(b, b->in, b->out);
}

static void call_mpi(struct bench *b)
{
    b->test->mpi(b, b->in, b->out, (int)b->count);
}

static const struct contestant {
    const char *name;
    void (*call)(struct bench *b);
} contestants[] = {
    { "bound", call_bound },
    { "alloc", call_alloc },
    { "private", call_private },
    { "mpi", call_mpi },
};
enum { NCONTESTANTS = sizeof contestants / sizeof contestants[0] };

/* ------------------------------------------------------------- the gate --- */

static void gate_pause(const struct bench *b)
{
    if (b->crowded)
        sched_yield();
}

/* Meet the others; the time at which all begin. */
static int64_t gate(struct bench *b)
{
    struct shared *shared = b->shared;
    int64_t start;

    atomic_store(&shared->arrived[b->rank].value, ++b->gates);
    for (int r = 0; r < b->ranks; r++)
        while (atomic_load(&shared->arrived[r].value) < b->gates)
            gate_pause(b);
    if (b->crowded)
        return now_ns();
    /* Of rank 0, for this gate: a later one cannot be there yet. */
    if (b->rank == 0)
        atomic_store(&shared->start_ns.value, now_ns() + START_NS);
    atomic_store(&shared->arrived[b->rank].value, ++b->gates);
    while (atomic_load(&shared->arrived[0].value) < b->gates)
        gate_pause(b);
    start = atomic_load(&shared->start_ns.value);
    while (now_ns() < start)
        continue;
    return start;
}

/* ------------------------------------------------------------- measuring --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A turn of one contestant: microseconds; adds the wrong elements to *wrong. */
static double turn(struct bench *b, const struct contestant *c, int call,
                   long *wrong)
{
    bool bound = c->call == call_bound, alloc = c->call == call_alloc;
    float *in = bound ? b->pull_in : alloc ? b->alloc_in : b->in;
    float *out = alloc ? b->alloc_out : b->out;
    size_t bytes = bound ? b->incoming_bytes : b->in_bytes;
    int64_t start;
    double us;

    if (!b->test->rooted)
        memset(out, 0xff, bound ? bytes : b->out_bytes);
    fill(in, bytes / sizeof *in, b->rank, call);
    start = gate(b);
    c->call(b);
    us = (double)(now_ns() - start) / 1e3;
    if (!bound)
        *wrong += b->test->check(b, b->test->rooted ? in : out, call);
    gate(b);                      /* nobody writes what a peer still reads     */
    return us;
}

/* Times of the slowest rank of each call, contestant by contestant. */
static void measure(struct bench *b, double *us, long wrong[])
{
    for (int i = -b->calls / 10 - 3; i < b->calls; i++)
        for (int t = 0; t < NCONTESTANTS; t++) {
            int who = (t + i + b->calls) % NCONTESTANTS;
            double took = turn(b, &contestants[who], i + b->calls,
                               &wrong[who]);

            if (i >= 0)
                us[who * b->calls + i] = took;
        }
    MPI_Allreduce(MPI_IN_PLACE, us, NCONTESTANTS * b->calls, MPI_DOUBLE,
                  MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, wrong, NCONTESTANTS, MPI_LONG, MPI_SUM,
                  MPI_COMM_WORLD);
}

static void report(const struct bench *b, size_t bytes, double *us,
                   const long wrong[])
{
    for (int c = 0; c < NCONTESTANTS; c++) {
        double *mine = us + c * b->calls;

        qsort(mine, (size_t)b->calls, sizeof *mine, compare);
        printf("%s %zu %s %.3f %.3f %.3f %ld\n", b->test->name, bytes,
               contestants[c].name, mine[0], mine[b->calls / 2],
               mine[b->calls * 99 / 100], wrong[c]);
    }
    fflush(stdout);
}

/* Memory all ranks have mapped: rank 0's, which the others open there. */
static void *share(const struct bench *b, size_t size)
{
    int from[2] = { (int)getpid(), -1 };
    char path[64];
    void *mem;
    int fd = -1;

    if (b->rank == 0) {
        fd = from[1] = memfd_create("host_mpi", 0);
        if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
            die("memfd", "no memory to share");
    }
    MPI_Bcast(from, 2, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", from[0], from[1]);
    if (b->rank != 0)
        fd = open(path, O_RDWR);
    mem = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_POPULATE, fd, 0);
    if (mem == MAP_FAILED)
        die(path, "cannot be mapped");
    MPI_Barrier(MPI_COMM_WORLD);
    close(fd);
    return mem;
}

static float *take(size_t size)
{
    void *mem;

    if (posix_memalign(&mem, 4096, size) != 0)
        die("malloc", "out of memory");
    memset(mem, 0, size);
    return mem;
}

static float *take_alloc(struct bench *b, size_t size)
{
    struct dtensor_error err;
    void *mem;

    if (dtensor_alloc(b->ctx, size, &mem, &err) != 0)
        die("dtensor_alloc", err.text);
    return mem;
}

static void measure_size(struct bench *b, size_t bytes, int calls, double *us)
{
    const struct test *test = b->test;
    size_t ranks = (size_t)b->ranks;
    size_t unit = sizeof(float)
                * (test->in_blocks || test->out_blocks ? ranks : 1);
    long wrong[NCONTESTANTS] = { 0 };
    unsigned char *pull;
    size_t size;

    b->count = bytes < unit ? 1 : bytes / unit;
    size = b->count * unit;
    b->in_bytes = b->count * sizeof(float) * (test->in_blocks ? ranks : 1);
    b->out_bytes = b->count * sizeof(float) * (test->out_blocks ? ranks : 1);
    b->incoming_bytes = !test->rooted
        ? size / ranks * (ranks - 1) * (size_t)test->twice
        : b->rank == 0 ? 0 : size;
    b->calls = size <= 65536 ? calls : (int)(65536 * (size_t)calls / size) + 8;
    b->in = take(size);
    b->out = take(size * 2);
    b->alloc_in = take_alloc(b, size);
    b->alloc_out = take_alloc(b, size);
    pull = share(b, 2 * size * ranks);
    b->pull_in = (float *)(void *)(pull + 2 * size * (size_t)b->rank);
    b->pull_from = (float *)(void *)(pull + 2 * size
                                     * ((size_t)(b->rank + 1) % ranks));
    measure(b, us, wrong);
    if (b->rank == 0)
        report(b, size, us, wrong);
    munmap(pull, 2 * size * ranks);
    dtensor_free(b->ctx, b->alloc_in);
    dtensor_free(b->ctx, b->alloc_out);
    free(b->in);
    free(b->out);
}

/* Nanoseconds of a line's way from rank 0 to rank 1. */
static double measure_hop(struct bench *b)
{
    _Atomic int64_t *ball = &b->shared->ball.value;
    double ns[HOP_TIMES];

    gate(b);
    for (int64_t t = 0, next = 0; b->rank < 2 && t < HOP_TIMES; t++) {
        int64_t start = now_ns();

        for (int i = 0; i < HOP_TURNS; i++, next += 2) {
            while (atomic_load_explicit(ball, memory_order_acquire)
                   != next + b->rank)
                continue;
            atomic_store_explicit(ball, next + b->rank + 1,
                                  memory_order_release);
        }
        ns[t] = (double)(now_ns() - start) / (2 * HOP_TURNS);
    }
    gate(b);
    qsort(ns, HOP_TIMES, sizeof *ns, compare);
    return ns[HOP_TIMES / 2];
}

/* ------------------------------------------------------------------ main --- */

/* Be the rank of our library that MPI says this process is. */
static void be_rank(struct bench *b)
{
    static const char *const names[][2] = {
        { "DTN_RANK", "DTN_LOCAL_RANK" }, { "DTN_WORLD_SIZE", "DTN_LOCAL_SIZE" }
    };
    int job = (int)getpid();
    char text[32];

    MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%d", i == 0 ? b->rank : b->ranks);
        setenv(names[i][0], text, 1);
        setenv(names[i][1], text, 1);
    }
    MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(text, sizeof text, "peers-%d", job);
    setenv("DTN_JOB", text, 1);
    b->crowded = b->ranks > sysconf(_SC_NPROCESSORS_ONLN);
    if (b->ranks < 2 || b->ranks > RANKS_MAX)
        die("ranks", "expected 2 to 64");
}

static bool wanted(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && strchr(",", at[length]))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    int calls = argc > 2 ? atoi(argv[2]) : 300;
    double *us = malloc(sizeof *us * NCONTESTANTS * (size_t)(calls + 8)), hop;
    struct bench b = { .ranks = 0 };
    struct dtensor_error err;

    MPI_Init(&argc, &argv);
    be_rank(&b);
    b.shared = share(&b, sizeof *b.shared);
    if (!us || dtensor_init(NULL, &b.ctx, &err) != 0
        || dtensor_mesh_find(b.ctx, "world", &b.world, &err) != 0)
        die("init", us ? err.text : "out of memory");
    hop = b.crowded ? 0 : measure_hop(&b);
    if (b.rank == 0)
        printf("hop %.1f\n", hop);
    for (int t = 0; t < NTESTS; t++) {
        b.test = &tests[t];
        for (int i = 3; i < argc && wanted(argv[1], tests[t].name); i++)
            measure_size(&b, strtoul(argv[i], NULL, 10), calls, us);
    }
    dtensor_fini(b.ctx);
    MPI_Finalize();
    free(us);
    return 0;
}
