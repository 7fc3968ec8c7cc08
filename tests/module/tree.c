/* tree.c - modules whose parameters are whole numbers */
#include "tests/module/tree.h"
#include "job/ctx.h"
#include "sched/call.h"
#include "sched/fingerprint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ELEMENTS_MAX = 512 };

struct job *job;
const struct dtensor_mesh *world;

struct dtensor *tensor(enum dtensor_dtype dtype, int ndim,
                              const int64_t shape[], int seed)
{
    static int64_t numbers[ELEMENTS_MAX];
    static double full[ELEMENTS_MAX];
    int64_t n = 1;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    for (int d = 0; d < ndim; d++)
        n *= shape[d];
    need(n <= ELEMENTS_MAX, "%d elements", (int)n);
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = (i * 5 + seed) % 8;
        full[i] = (double)((i * 11 + seed) % 7 - 3);
    }
    good(dtensor_spec_on(&spec, world, "R", dtype, ndim, shape, &job->err));
    good(dtensor_distribute(&spec, dtype == DTENSOR_I64 ? (void *)numbers
                            : full, -1, &t, &job->err));
    return t;
}

struct dtensor_module *module(struct dtensor_module *parent,
                                     const char *name, const char *type)
{
    struct dtensor_module *m = NULL;

    good(dtensor_module_create(job->ctx, type, NULL, NULL, &m, &job->err));
    if (parent)
        good(dtensor_module_add(parent, name, m, &job->err));
    return m;
}

void param(struct dtensor_module *m, const char *name, int ndim,
                  const int64_t shape[], int seed)
{
    good(dtensor_module_set(m, name, tensor(DTENSOR_F64, ndim, shape, seed),
                            &job->err));
}

static void weigh(struct dtensor_module *m, int64_t to, int64_t from, int seed)
{
    param(m, "weight", 2, (const int64_t[]){ to, from }, seed);
}

static void linear(struct dtensor_module *parent, const char *name, int64_t to,
                   int64_t from, int seed)
{
    struct dtensor_module *m = module(parent, name, "linear");

    weigh(m, to, from, seed);
    param(m, "bias", 1, (const int64_t[]){ to }, seed + 1);
}

struct dtensor_module *mlp(struct dtensor_module *parent,
                                  const char *name)
{
    struct dtensor_module *m = module(parent, name, "sequential");

    linear(m, "up", 16, 8, 1);
    module(m, "act", "relu");
    linear(m, "down", 8, 16, 2);
    return m;
}

struct dtensor_module *single(const char *type)
{
    struct dtensor_module *top = module(NULL, NULL, "sequential"), *m;

    if (strcmp(type, "linear") == 0) {
        linear(top, "m", 16, 8, 3);
    } else if (strcmp(type, "embedding") == 0) {
        m = module(top, "m", type);
        param(m, "weight", 2, (const int64_t[]){ 8, 16 }, 3);
    } else if (strcmp(type, "mlp") == 0) {
        mlp(top, "m");
    } else if (strcmp(type, "bare mlp") == 0) {
        m = module(top, "m", "sequential");
        weigh(module(m, "up", "linear"), 16, 8, 1);
        module(m, "act", "relu");
        weigh(module(m, "down", "linear"), 8, 16, 2);
    } else {
        m = module(top, "m", type);
        param(m, "weight", 1, (const int64_t[]){ 8 }, 3);
        param(m, "bias", 1, (const int64_t[]){ 8 }, 4);
    }
    return top;
}

const char *placement(const struct dtensor *t, char text[80])
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);

    dtensor_placements_format(spec->mesh, spec->placement, text, 80);
    return text;
}

const char *lies(struct dtensor_module *top, const char *path,
                        const char *name, char text[80])
{
    struct dtensor_module *m = NULL;

    good(dtensor_module_find(top, path, &m, &job->err));
    return placement(dtensor_module_param(m, name), text);
}

void same(const struct dtensor *a, const struct dtensor *b,
                 const char *what)
{
    int equal = 0;

    good(dtensor_equal(a, b, &equal, &job->err));
    need(equal, "%s: other numbers than on whole tensors", what);
}

/* How the tensors of "redistribute of f64[4,8] S(0) -> R on world" lay, and how
 * they lie; 0: it is no such text.
 */
static char said_from(const char *text)
{
    const char *arrow = text ? strstr(text, " -> ") : NULL;

    while (arrow && arrow > text && arrow[-1] != ' ')
        arrow--;
    return arrow ? *arrow : 0;
}

static char said_to(const char *text)
{
    const char *arrow = text ? strstr(text, " -> ") : NULL;

    return arrow ? arrow[4] : 0;
}

/* A reduce-scatter of few bytes is an allreduce of which each rank keeps its
 * part: two calls with the text of one redistribute.
 */
void calls_count(uint64_t before, char counts[40])
{
    const uint64_t calls = job->ctx->calls;
    int gathered = 0, reduced = 0, scattered = 0;

    need(calls - before <= DTN_RECORD_MAX, "too many calls to count");
    for (uint64_t i = before + 1; i <= calls; i++) {
        const struct dtn_call_record *call =
            &job->ctx->recent_calls[i % DTN_RECORD_MAX];
        const char from = said_from(call->text), to = said_to(call->text);
        const bool sum =
            dtn_fingerprint_coll(call->fingerprint) == DTN_COLL_ALLREDUCE;

        gathered += from == 'S' && to != 'P';
        reduced += sum && to != 'S';
        scattered += from == 'P' && to == 'S' && !sum;
    }
    snprintf(counts, 40, "%d %d %d", gathered, reduced, scattered);
}

struct moves moved;
static struct dtensor_placement was;      /* before the hook of a style      */

static int note_before(const struct dtensor_hook *call,
                       struct dtensor_error *err)
{
    was = dtensor_spec_of(call->t[0])->placement[0];
    return 0;
}

static int note_behind(const struct dtensor_hook *call,
                       struct dtensor_error *err)
{
    const struct dtensor_placement is =
        dtensor_spec_of(call->t[0])->placement[0];
    const bool term = was.kind == DTENSOR_PARTIAL;
    const bool shard = was.kind == DTENSOR_SHARD;

    moved.reduced += term && is.kind == DTENSOR_REPLICATE;
    moved.scattered += term && is.kind == DTENSOR_SHARD;
    moved.gathered += shard && is.kind == DTENSOR_REPLICATE;
    moved.other += shard && (is.kind == DTENSOR_PARTIAL ||
                             (is.kind == DTENSOR_SHARD &&
                              is.dim != was.dim));
    return 0;
}

static int note_add(struct dtensor_module *m, void *arg,
                    struct dtensor_error *err)
{
    int rc = dtensor_module_on_input(m, *(dtensor_hook_f **)arg, NULL, err);

    return rc ? rc : dtensor_module_on_output(m, *(dtensor_hook_f **)arg, NULL,
                                              err);
}

void notes_before(struct dtensor_module *top)
{
    dtensor_hook_f *hook = note_before;

    good(dtensor_module_walk(top, note_add, &hook, &job->err));
}

void notes_behind(struct dtensor_module *top)
{
    dtensor_hook_f *hook = note_behind;

    good(dtensor_module_walk(top, note_add, &hook, &job->err));
}

static void (*part_run)(void);

static void part(int rank, int n, void *arg)
{
    struct job the_job;

    job = &the_job;
    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    part_run();
    dtensor_fini(job->ctx);
}

int tree_steps(int few)
{
    const char *text = getenv("DTN_TEST_STEPS");

    return text ? atoi(text) : few;
}

/* Many steps may take as long as they need. */
bool tree_ranks(void (*run)(void))
{
    part_run = run;
    return ranks_run(WORLD, 60 + tree_steps(0) / 20, part, NULL, NULL) == 0;
}

bool tree_ranks_but(int killed, void (*run)(void))
{
    int status[WORLD];

    part_run = run;
    return ranks_run(WORLD, 60, part, NULL, status) == 1 &&
           WIFSIGNALED(status[killed]);
}

struct leaves leaves;

static dtensor_visit_f watch_leaves;

static int watch_leaves(struct dtensor_module *m, void *tape,
                        struct dtensor_error *err)
{
    struct dtensor *t;
    const char *name;
    int rc = 0;

    for (int i = 0; rc == 0 && (t = dtensor_module_param_at(m, i, &name));
         i++) {
        need(leaves.n < LEAVES, "too many parameters");
        leaves.t[leaves.n++] = t;
        rc = dtensor_tape_watch(tape, t, err);
    }
    return rc;
}

void tree_watch(struct dtensor_module *top, struct dtensor_tape *tape)
{
    leaves.n = 0;
    good(dtensor_module_walk(top, watch_leaves, tape, &job->err));
}
