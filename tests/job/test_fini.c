/* test_fini.c - objects are destroyed before or after dtensor_fini(), in any
 * order
 *
 * One object of every kind is made.  Then all are destroyed, with
 * dtensor_fini() among them, in all orders of three kinds, and in random
 * orders of all kinds.  A sanitized build finds uses after free, and leaks.
 * Also tested: which calls a finished context allows and which it refuses, and
 * NULL.
 *
 * Without this test, a program that destroys a tensor after its context could
 * crash at exit.
 */
#include "coll/request.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "random/generator.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "transport/tcp/tcp.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <dirent.h>
#include <glob.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum kind {
    TENSOR, PLAN, BATCH, REQUEST, TURN, PERSISTENT, MEMORY, REGISTERED, REDOP,
    GENERATOR, TAPE, MODULE, FINI, KINDS
};

struct things {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    struct dtensor_spec rows, cols;
    struct dtensor *tensor, *to;
    struct dtensor_plan *plan;
    struct dtensor_batch *batch;
    struct dtensor_request *request, *turn;
    struct dtensor_persistent *persistent;
    struct dtensor_generator *generator;
    struct dtensor_tape *tape;
    struct dtensor_module *module;
    enum dtensor_redop redop;
    int32_t *memory;
    int32_t in[1000], out[1000], registered[1000];
    struct dtensor_error err;
};

#define good(call) need((call) == 0, "%s", things->err.text)

static int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = -3;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* An active tape that watches the parameter of a module. */
static void make_training(struct things *things)
{
    struct dtensor_spec spec;
    struct dtensor *weight = NULL;

    good(dtensor_spec_init(&spec, things->ctx, "world", "S(0)", DTENSOR_F32,
                           2, (const int64_t[]){ 8, 4 }, &things->err));
    good(dtensor_zeros(&spec, &weight, &things->err));
    good(dtensor_module_create(things->ctx, "linear", NULL, NULL,
                               &things->module, &things->err));
    good(dtensor_module_set(things->module, "weight", weight, &things->err));
    good(dtensor_tape_create(things->ctx, &things->tape, &things->err));
    good(dtensor_tape_watch(things->tape, weight, &things->err));
    good(dtensor_tape_begin(things->tape, &things->err));
}

static void make(struct things *things, const char *path)
{
    const int64_t shape[] = { 40, 25 };
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
                                       .dtype = DTENSOR_I32, .count = 1000 };
    void *mem;

    memset(things, 0, sizeof *things);
    good(dtensor_init(path, &things->ctx, &things->err));
    good(dtensor_mesh_find(things->ctx, "world", &things->world,
                           &things->err));
    good(dtensor_spec_init(&things->rows, things->ctx, "world", "S(0)",
                           DTENSOR_I32, 2, shape, &things->err));
    good(dtensor_spec_init(&things->cols, things->ctx, "world", "S(1)",
                           DTENSOR_I32, 2, shape, &things->err));
    good(dtensor_arange(&things->rows, &things->tensor, &things->err));
    good(dtensor_redistribute(things->tensor, "S(1)", &things->to,
                              &things->err));
    good(dtensor_plan_create(&things->rows, &things->cols, NULL,
                             &things->plan, &things->err));
    good(dtensor_batch_create(1, &things->rows, &things->cols, &things->batch,
                              &things->err));
    good(dtensor_persistent_create(things->world, &call, things->in,
                                   things->out, &things->persistent,
                                   &things->err));
    good(dtensor_generator_create(7, &things->generator, &things->err));
    good(dtensor_redop_premul(things->ctx, 2, &things->redop, &things->err));
    good(dtensor_alloc(things->ctx, 4000, &mem, &things->err));
    good(dtensor_register(things->ctx, things->registered,
                          sizeof things->registered, &things->err));
    things->memory = mem;
    make_training(things);
}

/* Of two ranks the first starts what the other never makes. */
static void start(struct things *things)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLGATHER,
                                       .dtype = DTENSOR_I32, .count = 500 };

    good(dtensor_call_start(things->world, &call, things->in, things->out,
                            &things->request, &things->err));
    good(dtensor_plan_start(things->plan, things->tensor, things->to,
                            &things->turn, &things->err));
}

static void destroy(struct things *things, enum kind kind)
{
    switch (kind) {
    case TENSOR:
        dtensor_destroy(things->tensor);
        dtensor_destroy(things->to);
        break;
    case PLAN:       dtensor_plan_destroy(things->plan); break;
    case BATCH:      dtensor_batch_destroy(things->batch); break;
    case REQUEST:    dtensor_wait(things->request, NULL); break;
    case TURN:       dtensor_wait(things->turn, NULL); break;
    case PERSISTENT: dtensor_persistent_destroy(things->persistent); break;
    case MEMORY:     dtensor_free(things->ctx, things->memory); break;
    case REGISTERED:
        dtensor_unregister(things->ctx, things->registered);
        break;
    case REDOP:      dtensor_redop_destroy(things->ctx, things->redop); break;
    case GENERATOR:  dtensor_generator_destroy(things->generator); break;
    case TAPE:       dtensor_tape_destroy(things->tape); break;
    case MODULE:     dtensor_module_destroy(things->module); break;
    case FINI:       dtensor_fini(things->ctx); break;
    case KINDS:      break;
    }
}

static void destroy_all(struct things *things, const int order[])
{
    for (int i = 0; i < KINDS; i++)
        destroy(things, (enum kind)order[i]);
}

/* --------------------------------------------------------------- orders --- */

/* The kinds that are not named come first, while the context is there. */
static void order_after(int order[KINDS], const int last[], int n)
{
    int at = 0;

    for (int k = 0; k < KINDS; k++) {
        bool named = false;

        for (int i = 0; i < n; i++)
            named |= last[i] == k;
        if (!named)
            order[at++] = k;
    }
    for (int i = 0; i < n; i++)
        order[at++] = last[i];
}

/* dtensor_fini() at place `at` of three. */
static void orders_of_three(struct things *things, const int kind[3])
{
    int order[KINDS], last[4];

    for (int at = 0; at < 4; at++) {
        for (int i = 0; i < 4; i++)
            last[i] = i == at ? FINI : kind[i > at ? i - 1 : i];
        order_after(order, last, 4);
        make(things, NULL);
        start(things);
        destroy_all(things, order);
    }
}

static void random_order(uint64_t *state, int order[KINDS])
{
    for (int i = 0; i < KINDS; i++)
        order[i] = i;
    for (int i = KINDS - 1; i > 0; i--) {
        const int j = rand_below(state, i + 1), k = order[i];

        order[i] = order[j];
        order[j] = k;
    }
}

/* A plan and tensors must outlive what was started of them, while the context
 * is there: of the four the wait for that, or dtensor_fini(), comes first.
 */
static void legal_order(int order[KINDS])
{
    int first = -1, turn = 0;

    for (int i = KINDS - 1; i >= 0; i--) {
        if (order[i] == PLAN || order[i] == TENSOR || order[i] == TURN
            || order[i] == FINI)
            first = i;
        if (order[i] == TURN)
            turn = i;
    }
    if (order[first] != FINI) {
        order[turn] = order[first];
        order[first] = TURN;
    }
}

/* One rank, in this process, which a leak checker looks at. */
static void test_orders(void)
{
    static struct things things;
    const int fds = open_fds(), step = timeless() ? 7 : 1;
    uint64_t state = rand_seed(9);
    int order[KINDS], n = 0;

    for (int a = 0; a < FINI; a++)
        for (int b = 0; b < FINI; b++)
            for (int c = 0; c < FINI; c++)
                if (a != b && b != c && a != c && n++ % step == 0)
                    orders_of_three(&things, (int[]){ a, b, c });
    for (int i = 0; i < 200; i++) {
        make(&things, NULL);
        start(&things);
        random_order(&state, order);
        destroy_all(&things, order);
    }
    ok(open_fds() == fds,
       "%d orders of three kinds and dtensor_fini(), and 200 "
       "of all, leave nothing open", 4 * n / step);
}

static _Atomic int *started;       /* by ranks so far, shared                 */

static void rank_orders(int rank, int n, void *path)
{
    static struct things things;
    const int fds = open_fds();
    uint64_t state = rand_seed(9) + (uint64_t)rank;
    int order[KINDS];

    for (int i = 0; i < 20; i++) {
        make(&things, path);
        if (rank == 0) {
            start(&things);
            atomic_fetch_add(started, 1);
        }
        random_order(&state, order);
        legal_order(order);
        while (rank == 1 && atomic_load(started) <= i)
            usleep(100);               /* the start finds it alive           */
        destroy_all(&things, order);
    }
    need(open_fds() == fds, "%d descriptors more", open_fds() - fds);
}

/* ----------------------------------------------------------- afterwards --- */

static void refused(struct things *things, int rc, const char *what)
{
    need(rc == DTENSOR_EINVAL && strstr(things->err.text, "dtensor_fini()"),
         "%s on a finished context: %s, %s", what, dtensor_errname(rc),
         things->err.text);
    things->err.text[0] = '\0';
}

#define refuses(name, ...) \
    refused(things, name(__VA_ARGS__, &things->err), #name)

/* What was started before may be over; otherwise it is refused. */
static void finished_request(struct things *things)
{
    int done = 0;

    if (dtensor_test(things->request, &done, &things->err) != 0)
        refuses(dtensor_wait, things->request);
    else
        need(done && dtensor_wait(things->request, NULL) == 0, "it was over");
}

/* No other rank can be asked any more. */
static void reports(struct things *things)
{
    static const int code[] = { DTENSOR_EINVAL, DTENSOR_EPEER };

    for (int i = 0; i < 2; i++) {
        things->err.code = code[i];
        need(dtensor_should_report(things->ctx, &things->err) == 1, "%s: "
             "nobody reports it", dtensor_errname(code[i]));
    }
}

/* All that communicates or takes memory is refused; the rest goes on. */
static void rank_finished(int rank, int n, void *path)
{
    static struct things here;
    struct things *things = &here;
    const struct dtensor_call call = { .coll = DTENSOR_BARRIER };
    struct dtensor_request *request;
    struct dtensor *made, *const *to = &here.to;
    enum dtensor_redop op;
    int32_t *elements;
    void *mem;

    make(things, path);
    start(things);                     /* on both: may be over, or not       */
    for (atomic_fetch_add(started, 1); atomic_load(started) < n;)
        usleep(100);
    here.memory[7] = 11;
    dtensor_fini(here.ctx);
    dtensor_fini(here.ctx);
    refuses(dtensor_barrier, here.world);
    reports(things);
    refuses(dtensor_allreduce, here.world, here.in, here.out, 10, DTENSOR_I32,
            DTENSOR_SUM);
    refuses(dtensor_send, here.world, 1 - rank, here.in, 1, DTENSOR_I32);
    refuses(dtensor_call_start, here.world, &call, NULL, NULL, &request);
    refuses(dtensor_persistent_start, here.persistent, &request);
    refuses(dtensor_redistribute, here.tensor, "R", &made);
    refuses(dtensor_full_tensor, here.tensor, here.out, sizeof here.out);
    refuses(dtensor_clone, here.tensor, &made);
    refuses(dtensor_zeros, &here.rows, &made);
    refuses(dtensor_plan_create, &here.rows, &here.cols, NULL, &here.plan);
    refuses(dtensor_plan_run, here.plan, here.tensor, here.to);
    refuses(dtensor_plan_start, here.plan, here.tensor, here.to, &request);
    refuses(dtensor_batch_run, here.batch,
            (const struct dtensor *const *)&here.tensor, to);
    refuses(dtensor_alloc, here.ctx, 10, &mem);
    refuses(dtensor_register, here.ctx, here.out, sizeof here.out);
    refuses(dtensor_redop_premul, here.ctx, 3, &op);
    refuses(dtensor_group_begin, here.ctx);
    finished_request(things);
    elements = dtensor_to_local(here.tensor);
    need(elements[1] == rank * 500 + 1 && here.memory[7] == 11
         && dtensor_rank(here.ctx) == rank
         && dtensor_mesh_size(here.world) == n, "what is left can be read");
    need(dtensor_fill_uniform(here.tensor, 0, 9, here.generator, &here.err)
         == DTENSOR_EINVAL && !strstr(here.err.text, "fini"),
         "of integers, not: %s", here.err.text);
    here.request = NULL;
    for (int k = 0; k < FINI; k++)
        destroy(things, (enum kind)k);
}

/* ----------------------------------------------------------------- NULL --- */

static void test_null(void)
{
    struct dtensor_ctx *ctx = NULL;
    enum dtensor_redop op = DTENSOR_SUM;

    dtensor_destroy(NULL);
    dtensor_plan_destroy(NULL);
    dtensor_batch_destroy(NULL);
    dtensor_persistent_destroy(NULL);
    dtensor_generator_destroy(NULL);
    dtensor_cluster_destroy(NULL);
    dtensor_tape_destroy(NULL);
    dtensor_module_destroy(NULL);
    dtensor_simulation_fini(NULL);
    dtensor_fini(NULL);
    if (dtensor_init(NULL, &ctx, NULL) != 0)
        exit(99);
    dtensor_free(ctx, NULL);
    dtensor_unregister(ctx, NULL);
    dtensor_redop_destroy(ctx, op);
    dtensor_generator_destroy(dtensor_generator_default(ctx));
    dtensor_fini(ctx);
    ok(dtensor_wait(NULL, NULL) == 0, "NULL is a no-op for whatever destroys, "
       "and so is the context's own generator");
}

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 18);

    if (!file || !text || fread(text, 1, (1 << 18) - 1, file) == 0)
        exit(99);
    fclose(file);
    return text;
}

/* Is each function of the header that destroys called above? */
static void test_null_all(void)
{
    static const char *const ends[] = { "destroy(", "_free(", "_fini(",
                                        "_unregister(" };
    const char *srcdir = getenv("srcdir") ? getenv("srcdir") : "..";
    char path[512], *mine, *text, *at, call[80];
    int n = 0, missing = 0;
    glob_t found;

    snprintf(path, sizeof path, "%s/tests/job/test_fini.c", srcdir);
    mine = slurp(path);
    snprintf(path, sizeof path, "%s/lib/dtensor/*.h", srcdir);
    if (glob(path, 0, NULL, &found) != 0)
        exit(99);
    for (size_t f = 0; f < found.gl_pathc; f++) {
        text = slurp(found.gl_pathv[f]);
        for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++)
            for (at = text; (at = strstr(at, ends[e])); at++) {
                char *name = at;

                while (name > text && strncmp(name, "void dtensor_", 13) != 0
                       && *name != '\n')
                    name--;
                if (strncmp(name, "void dtensor_", 13) != 0)
                    continue;
                n++;
                snprintf(call, sizeof call, "    %.*s", (int)(at - name - 5)
                         + (int)strlen(ends[e]), name + 5);
                if (!strstr(mine, call)) {
                    note("%s is not called", call + 4);
                    missing++;
                }
            }
        free(text);
    }
    globfree(&found);
    free(mine);
    ok(n >= 10 && missing == 0, "all %d functions of the header that destroy "
       "were given NULL", n);
}

/* --------------------------------------------------- pointers of others --- */

static void test_foreign(void)
{
    struct dtensor_error err;
    struct dtensor_ctx *ctx = NULL;
    struct dtensor *t = NULL;
    struct dtensor_spec spec;
    const int64_t shape[] = { 100 };
    void *mem = NULL, *other = NULL;
    int here;

    if (dtensor_init(NULL, &ctx, &err) != 0
        || dtensor_alloc(ctx, 1000, &mem, &err) != 0
        || dtensor_alloc(ctx, 1000, &other, &err) != 0
        || dtensor_spec_init(&spec, ctx, "world", "R", DTENSOR_F32, 1, shape,
                             &err) != 0
        || dtensor_ones(&spec, &t, &err) != 0)
        exit(99);
    dtensor_free(ctx, &here);
    dtensor_free(ctx, (char *)mem + 64);
    dtensor_free(ctx, mem);
    dtensor_free(ctx, mem);
    dtensor_free(ctx, dtensor_to_local(t));
    ok(((float *)dtensor_to_local(t))[99] == 1, "dtensor_free() of what is not "
       "of dtensor_alloc(), or was freed, does nothing");
    dtensor_fini(ctx);
    dtensor_destroy(t);
    dtensor_free(ctx, other);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };
    const char *path;

    setenv("DTN_LOG", "error", 1);
    started = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    test_null();
    test_null_all();
    test_foreign();
    test_orders();
    for (int w = 0; w < 2; w++) {
        path = ranks_file(wires[w], 2, NULL);
        atomic_store(started, 0);
        ok(ranks_run(2, 60, rank_orders, (void *)(uintptr_t)path, NULL) == 0,
           "over %s what is under way and what is not is destroyed after "
           "dtensor_fini(), or before", wires[w]);
        atomic_store(started, 0);
        ok(ranks_run(2, 60, rank_finished, (void *)(uintptr_t)path, NULL) == 0,
           "over %s a finished context refuses in words what needs it, and the "
           "rest can be read", wires[w]);
        remove(path);
    }
    return done();
}
