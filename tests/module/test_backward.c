/* test_backward.c - gradients of modules that are spread over ranks
 *
 * tests/golden has what PyTorch's styles move, forward and backward.  The same
 * modules with the same styles move that here; their gradients lie as their
 * parameters, and have the bits of the one-rank run, since all numbers are
 * whole.  A model is trained for many steps: memory stays as it is.  A rank
 * that dies is named with the module that waits for it.
 *
 * Without this test, a style could be right forward and lose a term, or send a
 * message more than it has to, on the way back; or each step could leak.
 */
#include "dtensor.h"
#include "job/ctx.h"
#include "tests/module/golden_counts.h"
#include "tests/module/tree.h"

#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WARM = 50, STEPS = 400, SLACK = 4096 };

/* ------------------------------------------------------------ gradients --- */

/* Forward and backward with gradients of ones, and what they moved. */
static struct dtensor_tape *differentiate(struct dtensor_module *top,
                                          struct dtensor *x, bool watched,
                                          char forward[40], char backward[40])
{
    struct dtensor *y = NULL, *ones = NULL;
    struct dtensor_tape *tape = NULL;
    uint64_t before;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    tree_watch(top, tape);
    if (watched) {
        good(dtensor_tape_watch(tape, x, &job->err));
        leaves.t[leaves.n++] = x;
    }
    good(dtensor_tape_begin(tape, &job->err));
    before = job->ctx->calls;
    good(dtensor_module_apply(top, "", x, &y, &job->err));
    calls_count(before, forward);
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_ones(dtensor_spec_of(y), &ones, &job->err));
    before = job->ctx->calls;
    good(dtensor_tape_backward(tape, y, ones, &job->err));
    calls_count(before, backward);
    dtensor_destroy(y);
    dtensor_destroy(ones);
    return tape;
}

/* Each gradient lies as its tensor, and has the bits of the whole one. */
static void grads_check(const struct dtensor_tape *tape,
                        const struct dtensor *const whole[], const char *what)
{
    char lies_so[80], should[80];

    for (int i = 0; i < leaves.n; i++) {
        const struct dtensor *grad = dtensor_tape_grad(tape, leaves.t[i]);

        need(grad, "%s: no gradient %d", what, i);
        need(strcmp(placement(grad, lies_so), placement(leaves.t[i], should))
             == 0, "%s: gradient %d is %s, its tensor %s", what, i, lies_so,
             should);
        same(grad, whole[i], what);
    }
}

static void golden_run(const struct golden *g)
{
    const int64_t rows[] = { 4, 8 };
    const bool index = strcmp(g->type, "embedding") == 0;
    struct dtensor_module *top = single(g->type);
    struct dtensor *x = tensor(index ? DTENSOR_I64 : DTENSOR_F64,
                               index ? 1 : 2, rows, 5), *in = NULL;
    const struct dtensor *whole[LEAVES];
    struct dtensor_tape *alone, *tape;
    char forward[40], backward[40], what[200];

    snprintf(what, sizeof what, "%s %s of %s", g->type, g->plan[0].style,
             g->input);
    alone = differentiate(top, x, g->watched, forward, backward);
    for (int i = 0; i < leaves.n; i++)
        whole[i] = dtensor_tape_grad(alone, leaves.t[i]);
    good(dtensor_redistribute(x, g->input, &in, &job->err));
    good(dtensor_parallelize(top, world, golden_styles(g), g->plan, -1,
                             &job->err));
    tape = differentiate(top, in, g->watched, forward, backward);
    need(strcmp(forward, g->forward) == 0, "%s: forward %s, not %s", what,
         forward, g->forward);
    need(strcmp(backward, g->backward) == 0, "%s: backward %s, not %s", what,
         backward, g->backward);
    grads_check(tape, whole, what);
    dtensor_tape_destroy(alone);
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(in);
    dtensor_module_destroy(top);
}

static void goldens(void)
{
    for (int i = 0; i < GOLDEN_COUNTS; i++)
        golden_run(&golden[i]);
}

/* --------------------------------------------------------------- memory --- */

static void descend(const struct dtensor_tape *tape)
{
    struct dtensor *down;

    for (int i = 0; i < leaves.n; i++) {
        down = NULL;
        good(dtensor_scale(dtensor_tape_grad(tape, leaves.t[i]), -1e-6, &down,
                           &job->err));
        good(dtensor_op_into("add_", 2, (const struct dtensor *const[]){
                             leaves.t[i], down }, NULL, 1, &leaves.t[i],
                             &job->err));
        dtensor_destroy(down);
    }
}

/* Bytes of this process that malloc() has given and not got back. */
static size_t held(void)
{
    return mallinfo2().uordblks;
}

static void memory(void)
{
    static const struct dtensor_style plan[] = {
        { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } };
    struct dtensor_module *top = single("mlp");
    struct dtensor *x = tensor(DTENSOR_F64, 2, (const int64_t[]){ 4, 8 }, 5);
    struct dtensor *y = NULL, *ones = NULL;
    struct dtensor_tape *tape = NULL;
    const int steps = tree_steps(STEPS);
    size_t warm = 0;

    good(dtensor_parallelize(top, world, 2, plan, -1, &job->err));
    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    tree_watch(top, tape);
    for (int i = 0; i < steps; i++) {
        if (i == WARM)
            warm = held();
        good(dtensor_tape_begin(tape, &job->err));
        good(dtensor_module_apply(top, "", x, &y, &job->err));
        good(dtensor_tape_end(tape, &job->err));
        if (!ones)
            good(dtensor_ones(dtensor_spec_of(y), &ones, &job->err));
        good(dtensor_tape_backward(tape, y, ones, &job->err));
        descend(tape);
        dtensor_destroy(y);
        y = NULL;
    }
    if (job->rank == 0)
        note("%d steps: %zu bytes after %d of them, %zu at the end", steps,
             warm, WARM, held());
    need(held() <= warm + SLACK, "%d steps grew from %zu to %zu bytes", steps,
         warm, held());
    dtensor_destroy(x);
    dtensor_destroy(ones);
    dtensor_tape_destroy(tape);
    dtensor_module_destroy(top);
}

/* -------------------------------------------------------------- failure --- */

enum { VICTIM = 2 };

/* What a hook has noted passes gradients on; rank 2 dies there. */
static int gate_back(const struct dtensor_op_gradient *g, struct dtensor *in[],
                     struct dtensor_error *err)
{
    if (job->rank == VICTIM)
        raise(SIGKILL);
    return dtensor_redistribute(g->grad[0], "S(1)", &in[0], err);
}

static int gate(const struct dtensor_hook *hook, struct dtensor_error *err)
{
    const struct dtensor_tape_call call = { .name = "gate", .nin = 1,
        .nout = 1, .in = hook->t, .out = hook->made, .backward = gate_back };
    int rc = dtensor_from_local(dtensor_spec_of(hook->t[0]),
                                dtensor_to_local(hook->t[0]),
                                dtensor_local_bytes(hook->t[0]),
                                &hook->made[0], err);

    return rc != 0 ? rc : dtensor_tape_note(hook->arg, &call, err);
}

/* An MLP whose rank 2 dies: between forward and backward, or inside, when the
 * gradients have passed m.down and have not reached m.up.
 */
static void die(bool inside, const char *words)
{
    static const struct dtensor_style plan[] = {
        { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } };
    struct dtensor_module *top = single("mlp"), *down = NULL;
    struct dtensor *all = tensor(DTENSOR_F64, 2, (const int64_t[]){ 4, 8 }, 5);
    struct dtensor *x = NULL, *y = NULL, *ones = NULL;
    struct dtensor_tape *tape = NULL;
    int rc;

    good(dtensor_redistribute(all, "S(0)", &x, &job->err));
    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    good(dtensor_module_find(top, "m.down", &down, &job->err));
    if (inside)
        good(dtensor_module_on_input(down, gate, tape, &job->err));
    good(dtensor_parallelize(top, world, 2, plan, -1, &job->err));
    good(dtensor_tape_watch(tape, x, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_module_apply(top, "", x, &y, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_ones(dtensor_spec_of(y), &ones, &job->err));
    good(dtensor_barrier(world, &job->err));
    if (!inside && job->rank == VICTIM)
        raise(SIGKILL);
    rc = dtensor_tape_backward(tape, y, ones, &job->err);
    need(rc == DTENSOR_EPEER && job->err.rank == VICTIM, "%d, rank %d: %s", rc,
         job->err.rank, job->err.text);
    need(strncmp(job->err.text, words, strlen(words)) == 0, "%s",
         job->err.text);
    dtensor_destroy(all);
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(ones);
    dtensor_tape_destroy(tape);
    dtensor_module_destroy(top);
}

static void death_before(void)
{
    die(false, "m.down: backward of redistribute: ");
}

static void death_inside(void)
{
    die(true, "m.up: backward of redistribute: ");
}

int main(void)
{
    static const struct { void (*run)(void); const char *claim; } parts[] = {
        { goldens, "gradients move as PyTorch's, with the bits of one rank" },
        { memory, "memory stays as it is over many steps" }
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ok(tree_ranks(parts[i].run), "%s", parts[i].claim);
    ok(tree_ranks_but(VICTIM, death_before), "a rank that dies before the "
       "backward is named with the module whose gradient needs it");
    ok(tree_ranks_but(VICTIM, death_inside), "so is one that dies inside it, "
       "by all others");
    return done();
}
