/* test_dropout.c - dropout as an operator
 *
 * dtensor_op("dropout") has to take the numbers that dtensor_dropout() takes:
 * the same elements are kept, the same bits come out, and the generator is
 * where it would be.  Terms are reduced first, since half of the terms of an
 * element are not the element.  The gradient goes through the same mask,
 * whether the program asked for it or not.
 *
 * Without this test, a network whose layers are operators could drop others
 * than its twin of calls, or send gradients to what was dropped.
 */
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/tap.h"

#include <string.h>

enum { WORLD = 4, ROWS = 13, COLUMNS = 7 };

static const struct dtensor_op_args args = { .p = 0.25 };

static struct dtensor *tensor(struct job *job, const struct dtensor_mesh *mesh,
                              const char *placements, enum dtensor_dtype dtype)
{
    struct dtensor_spec spec = { .mesh = mesh, .dtype = DTENSOR_F64, .ndim = 2,
                                 .shape = { ROWS, COLUMNS } };
    struct dtensor *wide = NULL, *t = NULL;
    double full[ROWS * COLUMNS];

    for (int i = 0; i < ROWS * COLUMNS; i++)
        full[i] = 1 + i % 16;
    good(dtensor_placements_parse(mesh, placements, 2, spec.placement,
                                  &job->err));
    good(dtensor_distribute(&spec, full, -1, &wide, &job->err));
    good(dtensor_cast(wide, dtype, &t, &job->err));
    dtensor_destroy(wide);
    return t;
}

static bool same(const struct dtensor *a, const struct dtensor *b)
{
    const size_t bytes = dtensor_local_bytes(a);

    return bytes == dtensor_local_bytes(b) &&
           (bytes == 0 || memcmp(dtensor_to_local((struct dtensor *)a),
                                 dtensor_to_local((struct dtensor *)b),
                                 bytes) == 0);
}

static void state_get(struct job *job, unsigned char state[])
{
    dtensor_generator_get_state(dtensor_generator_default(job->ctx), state);
}

/* The same elements as the function, with both outputs, one, and into. */
static void compared(struct job *job, const struct dtensor_mesh *mesh,
                     const char *placements, enum dtensor_dtype dtype)
{
    struct dtensor *x = tensor(job, mesh, placements, dtype);
    const struct dtensor *const in[] = { x };
    struct dtensor *want = NULL, *kept = NULL, *out[2] = { NULL }, *one = NULL;
    unsigned char state[2][DTENSOR_STATE_BYTES];

    good(dtensor_manual_seed(mesh, 11, NULL, &job->err));
    good(dtensor_dropout(x, args.p, NULL, &want, &kept, &job->err));
    state_get(job, state[0]);
    good(dtensor_manual_seed(mesh, 11, NULL, &job->err));
    good(dtensor_op("dropout", 1, in, &args, 2, out, &job->err));
    state_get(job, state[1]);
    need(same(want, out[0]) && same(kept, out[1]), "%s: another result",
         placements);
    need(memcmp(state[0], state[1], DTENSOR_STATE_BYTES) == 0,
         "%s: another state", placements);
    good(dtensor_manual_seed(mesh, 11, NULL, &job->err));
    good(dtensor_op("dropout", 1, in, &args, 1, &one, &job->err));
    need(same(want, one), "%s: another result without the mask", placements);
    good(dtensor_manual_seed(mesh, 11, NULL, &job->err));
    good(dtensor_op_into("dropout", 1, in, &args, 1, out, &job->err));
    need(same(want, out[0]), "%s: another result, into", placements);
    good(dtensor_manual_seed(mesh, 11, NULL, &job->err));
    good(dtensor_op_into("dropout", 1, in, &args, 2,
                         (struct dtensor *const[]){ x, out[1] }, &job->err));
    need(same(want, x) && same(kept, out[1]), "%s: another result, in place",
         placements);
    dtensor_destroy(x);
    dtensor_destroy(want);
    dtensor_destroy(kept);
    dtensor_destroy(out[0]);
    dtensor_destroy(out[1]);
    dtensor_destroy(one);
}

/* Each element of terms is dropped, or the whole of it is kept. */
static void reduced(struct job *job, const struct dtensor_mesh *mesh,
                    const char *placements)
{
    struct dtensor *x = tensor(job, mesh, placements, DTENSOR_F64), *y = NULL;
    double full[ROWS * COLUMNS];
    int kept = 0;

    good(dtensor_op("dropout", 1, (const struct dtensor *const[]){ x }, &args,
                    1, &y, &job->err));
    good(dtensor_full_tensor(y, full, sizeof full, &job->err));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const double whole = (1 + i % 16) / (1 - args.p);

        need(full[i] == 0 || (full[i] > 0.999999 * whole &&
                              full[i] < 1.000001 * whole),
             "%s: element %d is %g", placements, i, full[i]);
        kept += full[i] != 0;
    }
    need(kept > ROWS * COLUMNS / 2 && kept < ROWS * COLUMNS, "%d kept", kept);
    dtensor_destroy(x);
    dtensor_destroy(y);
}

/* The gradient is 1 / (1 - p) where the output is not 0. */
static void differentiated(struct job *job, const struct dtensor_mesh *mesh,
                           const char *placements, bool into)
{
    struct dtensor *x = tensor(job, mesh, placements, DTENSOR_F64);
    struct dtensor *y = NULL, *loss = NULL;
    const struct dtensor *const in[] = { x };
    struct dtensor_tape *tape = NULL;
    double out[ROWS * COLUMNS], grad[ROWS * COLUMNS];

    tape = job_tape(job, x);
    if (into) {
        good(dtensor_empty(dtensor_spec_of(x), &y, &job->err));
        good(dtensor_op_into("dropout", 1, in, &args, 1, &y, &job->err));
    } else {
        good(dtensor_op("dropout", 1, in, &args, 1, &y, &job->err));
    }
    good(dtensor_op("sum", 1, (const struct dtensor *const[]){ y }, NULL, 1,
                    &loss, &job->err));
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    good(dtensor_full_tensor(y, out, sizeof out, &job->err));
    good(dtensor_full_tensor(dtensor_tape_grad(tape, x), grad, sizeof grad,
                             &job->err));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        need(grad[i] == (out[i] == 0 ? 0 : 1 / (1 - args.p)),
             "%s: the gradient of element %d is %g", placements, i, grad[i]);
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(loss);
    dtensor_tape_destroy(tape);
}

static void dropping(int rank, int n, void *arg)
{
    static const char *const lies[] = { "R,R", "S(0),R", "R,S(1)", "S(0),S(1)",
                                        "S(0),S(0)", "SS(0,2),S(1)" };
    static const enum dtensor_dtype dtypes[] = {
        DTENSOR_F64, DTENSOR_F32, DTENSOR_BF16 };
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh = NULL;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL, NULL,
                             &mesh, &job->err));
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
            compared(job, mesh, lies[i], dtypes[t]);
    reduced(job, mesh, "P(sum),R");
    reduced(job, mesh, "S(1),P(avg)");
    reduced(job, mesh, "P(sum),P(sum)");
    differentiated(job, mesh, "S(0),R", false);
    differentiated(job, mesh, "P(sum),S(0)", false);
    differentiated(job, mesh, "R,S(1)", true);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(WORLD, 120, dropping, NULL, NULL) == 0, "the operator drops "
       "what dtensor_dropout() drops, and so does its gradient");
    return done();
}
