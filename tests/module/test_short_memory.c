/* test_short_memory.c - calls on tensors when the n-th allocation fails, for
 * every n
 *
 * Operators, tapes, modules, attention and files; tests/job/test_out_of_memory
 * is the same of what is below them.  Each call gets a new context, and one
 * allocation fails.  It returns ENOMEM in words, and then the same call
 * succeeds; at the end nothing is left.  Some calls do without that memory.
 *
 * Without this test, a program that is short of memory could crash, leak, or
 * get a result that is not set.
 */
#include "dtensor.h"
#include "tests/job/held.h"
#include "tests/job/life.h"
#include "tests/support/tap.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 6, TENSORS = 8 };

/* What a call works with. */
struct scene {
    struct dtensor_ctx *ctx;               /* a job of one rank, or ...       */
    bool plans;                            /* ... one that only plans         */
    const struct dtensor_mesh *mesh;       /* of all its ranks                */
    struct dtensor *t[TENSORS];            /* what it makes; NULL: not yet    */
    int n;                                 /* entries of t                    */
};

/* -------------------------------------------------------------- helpers --- */

/* A tensor of SIDE^ndim elements that are i % 5 + 1; NULL: *rcp says why. */
static struct dtensor *make(struct scene *s, const char *placements, int ndim,
                            enum dtensor_dtype dtype, int *rcp,
                            struct dtensor_error *err)
{
    const int64_t shape[] = { SIDE, SIDE, SIDE, SIDE };
    static double full[SIDE * SIDE * SIDE * SIDE];
    static int64_t index[SIDE];
    const bool ints = dtype == DTENSOR_I64;
    struct dtensor_spec spec;

    for (int i = 0; i < SIDE * SIDE * SIDE * SIDE; i++)
        full[i] = i % 5 + 1;
    for (int i = 0; i < SIDE; i++)
        index[i] = i % 3;
    if (*rcp == 0)
        *rcp = dtensor_spec_on(&spec, s->mesh, placements, dtype, ndim, shape,
                               err);
    if (*rcp == 0)
        *rcp = s->plans ? dtensor_empty(&spec, &s->t[s->n], err)
             : dtensor_distribute(&spec, ints ? (void *)index : full, -1,
                                  &s->t[s->n], err);
    return *rcp == 0 ? s->t[s->n++] : NULL;
}

/* An operator; the first output is kept. */
static struct dtensor *op(struct scene *s, const char *name, const char *text,
                          int nin, const struct dtensor *const in[], int *rcp,
                          struct dtensor_error *err)
{
    struct dtensor_op_args args;

    if (*rcp == 0)
        *rcp = dtensor_op_args_parse(text, &args, err);
    if (*rcp == 0)
        *rcp = dtensor_op(name, nin, in, &args, 1, &s->t[s->n], err);
    return *rcp == 0 ? s->t[s->n++] : NULL;
}

static FILE *nowhere;
static const char *bad;           /* a wrong result of a call that succeeded  */

/* ---------------------------------------------------------------- calls --- */

/* On 2x2x2 ranks: combinations in a heap, costs of routes. */
static int infers(struct scene *s, struct dtensor_error *err)
{
    const int64_t shape[] = { 512, 512 };
    struct dtensor_spec in[2], want[2], out[1];
    struct dtensor_op_info info = { .scratch_bytes = 7 };
    const struct dtensor_op_call call = { .op = "matmul", .nin = 2, .in = in };
    static size_t scratch;        /* of the first one that succeeded          */
    const struct dtensor_mesh *cube = NULL;
    int rc = dtensor_mesh_create(s->ctx, 3, (const int[]){ 2, 2, 2 }, NULL,
                                 NULL, &cube, err);

    if (rc == 0)
        rc = dtensor_spec_on(&in[0], cube, "S(0),S(1),R", DTENSOR_F32, 2, shape,
                             err);
    if (rc == 0)
        rc = dtensor_spec_on(&in[1], cube, "R,P(sum),S(1)", DTENSOR_F32, 2,
                             shape, err);
    if (rc == 0)
        rc = dtensor_op_infer(&call, want, 1, out, &info, err);
    if (rc == 0 && scratch == 0)
        scratch = info.scratch_bytes;
    if (rc == 0 && info.scratch_bytes != scratch)
        bad = "the bytes of scratch are not set";
    return rc == 0 ? dtensor_op_print(&call, nowhere, err) : rc;
}

static int computes(struct scene *s, struct dtensor_error *err)
{
    int rc = 0;
    struct dtensor *x = make(s, "S(0)", 2, DTENSOR_F64, &rc, err);
    const struct dtensor *const two[] = { x, x };
    struct dtensor *y = op(s, "add", "", 2, two, &rc, err);
    struct dtensor *all[SIDE] = { NULL };

    op(s, "matmul", "", 2, two, &rc, err);
    op(s, "softmax", "dim=0", 1, two, &rc, err);
    op(s, "sort", "dim=1", 1, two, &rc, err);
    op(s, "cat", "dim=0", 2, two, &rc, err);
    if (rc == 0)
        rc = dtensor_op_into("add", 2, two, NULL, 1, &y, err);
    if (rc == 0)
        rc = dtensor_op("unbind", 1, (const struct dtensor *const[]){ x },
                        &(struct dtensor_op_args){ .ndims = 1, .dim = { 1 } },
                        SIDE, all, err);
    for (int i = 0; i < SIDE; i++)
        dtensor_destroy(all[i]);
    return rc;
}

static int twice(const struct dtensor_op_run *run, struct dtensor_error *err)
{
    for (int64_t i = 0; i < run->out[0].count; i++)
        ((double *)run->out[0].data)[i] = 2 * ((double *)run->in[0].data)[i];
    return 0;
}

static int registers(struct scene *s, struct dtensor_error *err)
{
    int rc = dtensor_op_register(s->ctx, &(struct dtensor_op_def){
        .name = "twice", .letters = "*->*", .terms = "L>L", .local = twice,
        .grad = { "scale(g,2)" } }, err);
    const struct dtensor *x = make(s, "S(0)", 2, DTENSOR_F64, &rc, err);

    op(s, "twice", "", 1, &x, &rc, err);
    return rc;
}

/* Calls that are differentiated by an expression, a function, and again. */
static int differentiates(struct scene *s, struct dtensor_error *err)
{
    struct dtensor_tape *tape = NULL;
    const struct dtensor *x, *i;
    struct dtensor *y;
    uint64_t bytes;
    int rc = 0;

    x = make(s, "S(0)", 2, DTENSOR_F64, &rc, err);
    i = make(s, "R", 1, DTENSOR_I64, &rc, err);
    if (rc == 0)
        rc = dtensor_tape_create(s->ctx, &tape, err);
    if (rc == 0)
        rc = dtensor_tape_watch(tape, x, err);
    if (rc == 0)
        rc = dtensor_tape_begin(tape, err);
    y = op(s, "linear", "", 2, (const struct dtensor *const[]){ x, x }, &rc,
           err);
    y = op(s, "layer_norm", "", 1, (const struct dtensor *const[]){ y }, &rc,
           err);
    y = op(s, "sort", "dim=1", 1, (const struct dtensor *const[]){ y }, &rc,
           err);
    y = op(s, "embedding", "", 2, (const struct dtensor *const[]){ y, i }, &rc,
           err);
    y = op(s, "cross_entropy", "reduction=mean", 2,
           (const struct dtensor *const[]){ y, i }, &rc, err);
    if (rc == 0)
        rc = dtensor_tape_bytes(tape, NULL, &bytes, err);
    if (rc == 0)
        rc = dtensor_tape_backward(tape, y, NULL, err);
    if (rc == 0 && !dtensor_tape_grad(tape, x))
        bad = "there is no gradient";
    dtensor_tape_destroy(tape);
    return rc;
}

/* A module of that type, added to `top`; the last tensor is its weight. */
static int adds(struct scene *s, struct dtensor_module *top, const char *type,
                bool weighs, struct dtensor_error *err)
{
    struct dtensor_module *module = NULL;
    int rc = dtensor_module_create(s->ctx, type, NULL, NULL, &module, err);

    if (rc == 0 && weighs)
        rc = dtensor_module_set(module, "weight", s->t[s->n - 1], err);
    if (rc == 0)
        s->n -= weighs;
    if (rc == 0)
        rc = dtensor_module_add(top, type, module, err);
    if (rc != 0)
        dtensor_module_destroy(module);
    return rc;
}

static int modules(struct scene *s, struct dtensor_error *err)
{
    static const struct dtensor_style plan[] = { { "linear", "colwise" } };
    struct dtensor_module *top = NULL;
    const struct dtensor *x;
    int rc = 0;

    x = make(s, "R", 2, DTENSOR_F64, &rc, err);
    if (make(s, "R", 2, DTENSOR_F64, &rc, err))
        rc = dtensor_module_create(s->ctx, "sequential", NULL, NULL, &top, err);
    if (rc == 0)
        rc = adds(s, top, "linear", true, err);
    if (rc == 0)
        rc = adds(s, top, "relu", false, err);
    if (rc == 0)
        rc = dtensor_parallelize(top, s->mesh, 1, plan, -1, err);
    if (rc == 0)
        rc = dtensor_module_call(top, 1, &x, 1, &s->t[s->n], err);
    s->n += rc == 0;
    dtensor_module_destroy(top);
    return rc;
}

static int attends(struct scene *s, struct dtensor_error *err)
{
    struct dtensor *q;
    int rc = 0;

    q = make(s, "S(2)", 4, DTENSOR_F64, &rc, err);
    if (rc == 0)
        rc = dtensor_attention(q, q, q, NULL, &s->t[s->n], err);
    s->n += rc == 0;
    return rc;
}

static int files(struct scene *s, struct dtensor_error *err)
{
    struct dtensor *x, *y = NULL;
    int rc = 0, same = 0;

    x = make(s, "S(0)", 2, DTENSOR_F64, &rc, err);
    if (rc == 0)
        rc = dtensor_save(x, "short_memory.npy", err);
    if (rc == 0)
        rc = dtensor_load(dtensor_spec_of(x), "short_memory.npy", &y, err);
    if (rc == 0)
        rc = dtensor_equal(x, y, &same, err);
    if (rc == 0 && !same)
        bad = "another tensor was loaded";
    unlink("short_memory.npy");
    dtensor_destroy(y);
    return rc;
}

static int others(struct scene *s, struct dtensor_error *err)
{
    struct dtensor *x, *mask = NULL, *out = NULL, *permuted = NULL;
    struct dtensor_spec spec;
    int rc = 0, same = 0;

    x = make(s, "R", 2, DTENSOR_F64, &rc, err);
    if (rc == 0)
        rc = dtensor_print(x, nowhere, err);
    if (rc == 0)
        rc = dtensor_replicas_equal(x, &same, err);
    if (rc == 0)
        rc = dtensor_dropout(x, 0.5, NULL, &out, &mask, err);
    if (rc == 0)
        rc = dtensor_spec_on(&spec, s->mesh, "S(0)", DTENSOR_I64, 1,
                             (const int64_t[]){ 100 }, err);
    if (rc == 0)
        rc = dtensor_randperm(&spec, NULL, &permuted, err);
    dtensor_destroy(out);
    dtensor_destroy(mask);
    dtensor_destroy(permuted);
    return rc;
}

static const struct call {
    const char *name;
    int (*run)(struct scene *s, struct dtensor_error *err);
    int ranks;                    /* of a context that only plans; 0: a job   */
} calls[] = {
    { "op_infer and op_print", infers, 8 },
    { "operators", computes, 0 },
    { "operators of a program", registers, 0 },
    { "a tape", differentiates, 0 },
    { "a tape that only plans", differentiates, 4 },
    { "modules", modules, 0 },
    { "attention", attends, 0 },
    { "attention that only plans", attends, 3 },
    { "save and load", files, 0 },
    { "print, compare, dropout, randperm", others, 0 },
};

/* --------------------------------------------------------------- trials --- */

static void scene_drop(struct scene *s)
{
    while (s->n > 0)
        dtensor_destroy(s->t[--s->n]);
}

static void scene_begin(struct scene *s, int ranks)
{
    struct dtensor_error err;
    int rc = ranks > 0 ? dtensor_init_offline(NULL, ranks, ranks, &s->ctx, &err)
                       : dtensor_init(NULL, &s->ctx, &err);

    if (rc == 0)
        rc = dtensor_mesh_find(s->ctx, "world", &s->mesh, &err);
    if (rc != 0)
        bad = "there is no context";
}

/* The n-th allocation fails, and the call is made again.  Returns true when
 * there were fewer.
 */
static bool trial(const struct call *call, long n, const char **wrong)
{
    struct dtensor_error err = { .text = "" };
    struct scene s = { .plans = call->ranks > 0 };
    bool unused;
    int rc;

    bad = NULL;
    scene_begin(&s, call->ranks);
    allocations_left = n;
    rc = call->run(&s, &err);
    unused = allocations_left >= 0;
    allocations_left = -1;
    scene_drop(&s);
    if (bad)
        *wrong = bad;
    else if (rc != 0 && (rc != DTENSOR_ENOMEM || !says_memory(&err) || unused))
        *wrong = "another error";
    else if (rc != 0 && call->run(&s, &err) != 0)
        *wrong = "the call cannot be made again";
    scene_drop(&s);
    dtensor_fini(s.ctx);
    if (!*wrong && nlive != 0)
        *wrong = "something is left behind";
    if (*wrong)
        note("allocation %ld: %s: %s; %ld blocks", n, *wrong, err.text,
             (long)nlive);
    return unused;
}

int main(void)
{
    nowhere = fopen("/dev/null", "w");
    setvbuf(nowhere, NULL, _IONBF, 0);
    nlive = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const char *wrong = NULL;
        long n = 0;

        while (!wrong && !trial(&calls[i], n, &wrong))
            n++;
        ok(!wrong && n > 3, "%s: each of %ld allocations may fail: ENOMEM in "
           "words, nothing is left, and it can be done again", calls[i].name,
           n);
    }
    return done();
}
