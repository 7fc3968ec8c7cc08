/* backward.c - from the gradient of a result to the gradients of the leaves
 *
 * Notes are processed from the last to the first.  When a note is reached, all
 * calls that read its outputs are done, so the gradients of its outputs are
 * complete.  They are turned into gradients of its inputs, and the note is
 * freed. A note whose outputs have no gradient is skipped.
 */
#include "tape/express.h"
#include "tape/rules.h"
#include "tape/tape.h"
#include "base/error.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "op/cache.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------- one gradient --- */

/* Sum what was broadcast: of a bias of 8 that was added to 16x8 the 16. */
static int fit(struct dtensor **tp, const struct dtensor_spec *to,
               struct dtensor_error *err)
{
    const struct dtensor_spec *spec = &(*tp)->spec;
    const int more = spec->ndim - to->ndim;
    struct dtensor_op_args args = { .ndims = 0 };
    int rc = 0;

    for (int d = 0; d < spec->ndim; d++)
        if (d < more || (to->shape[d - more] == 1 && spec->shape[d] != 1))
            args.dim[args.ndims++] = d;
    if (args.ndims > 0)
        rc = dtn_express_step("sum", &args, tp, err);
    return rc == 0 ? dtn_express_reshape(tp, to->ndim, to->shape, err) : rc;
}

/* Fit it, and give it to the value of input i. */
static int give(struct dtensor_tape *tape, const struct dtn_note *note, int i,
                struct dtensor **gradp, struct dtensor_error *err)
{
    int rc = fit(gradp, &note->operand[i].spec, err);

    if (rc != 0)
        return rc;
    rc = dtn_values_give(&tape->values, note->operand[i].value, *gradp, err);
    *gradp = NULL;
    return rc;
}

/* ------------------------------------------------------------- one note --- */

static int note_fail(const struct dtn_note *note, struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: %s has no backward "
                    "(see dtensor_tape_create(3))", note->op);
}

static int note_each(struct dtensor_tape *tape, struct dtn_express *e,
                     struct dtensor_error *err)
{
    const struct dtn_note *note = e->note;
    int rc = 0;

    for (int i = 0; i < note->nin && rc == 0; i++) {
        struct dtensor *grad = NULL;

        e->input = i;
        if (note->operand[i].value < 0 || !note->backward->grad[i])
            continue;
        rc = dtn_express(e, note->backward->grad[i], &grad, err);
        if (rc == 0)
            rc = give(tape, note, i, &grad, err);
        dtensor_destroy(grad);
    }
    return rc;
}

static int note_all(struct dtensor_tape *tape, const struct dtn_express *e,
                    struct dtensor_error *err)
{
    const struct dtn_note *note = e->note;
    struct dtensor **grad = calloc((size_t)note->nin, sizeof *grad);
    int rc;

    if (!grad)
        return dtn_fail_nomem(err, "tape", (size_t)note->nin * sizeof *grad);
    rc = note->backward->all(e, grad, err);
    for (int i = 0; i < note->nin; i++) {
        if (rc == 0 && grad[i] && note->operand[i].value >= 0)
            rc = give(tape, note, i, &grad[i], err);
        dtensor_destroy(grad[i]);
    }
    free(grad);
    return rc;
}

/* The gradients of the outputs, which the values give up; false: none. */
static bool grads_take(struct dtensor_tape *tape, const struct dtn_note *note,
                       struct dtensor *grad[])
{
    bool some = false;

    for (int k = 0; k < note->nout; k++) {
        const int i = note->operand[note->nin + k].value;

        grad[k] = i >= 0 && tape->values.value[i].grad
                ? dtn_tensor_hold(tape->values.value[i].grad) : NULL;
        some |= grad[k] != NULL;
    }
    return some;
}

/* Those of leaves are kept to the end. */
static void grads_drop(struct dtensor_tape *tape, const struct dtn_note *note)
{
    for (int k = 0; k < note->nout; k++) {
        const int value = note->operand[note->nin + k].value;
        bool watched = value < 0;

        for (int i = 0; i < tape->nleaves; i++)
            watched |= tape->leaves[i].value == value;
        if (watched)
            continue;
        dtensor_destroy(tape->values.value[value].grad);
        tape->values.value[value].grad = NULL;
    }
}

/* Begin the text with the module whose call is differentiated. */
static int note_named(const struct dtn_note *note, int rc,
                      struct dtensor_error *err)
{
    struct dtensor_error inner;

    if (rc == 0 || !err || !note->where[0])
        return rc;
    inner = *err;
    snprintf(err->text, sizeof err->text, "%s: backward of %s: %.*s",
             note->where, note->op,
             (int)(sizeof err->text - sizeof note->where - sizeof note->op -
                   16), inner.text);
    return rc;
}

static int note_run(struct dtensor_tape *tape, struct dtn_note *note,
                    struct dtensor_error *err)
{
    struct dtensor **grad = calloc((size_t)note->nout, sizeof *grad);
    struct dtn_express e = { .note = note, .grad = grad };
    int rc = 0;

    if (!grad)
        return dtn_fail_nomem(err, "tape", (size_t)note->nout * sizeof *grad);
    if (grads_take(tape, note, grad)) {
        grads_drop(tape, note);
        rc = !note->backward ? note_fail(note, err)
           : note->backward->all ? note_all(tape, &e, err)
           : note_each(tape, &e, err);
    }
    for (int k = 0; k < note->nout; k++)
        dtensor_destroy(grad[k]);
    free(grad);
    dtn_note_release(note);
    return note_named(note, rc, err);
}

/* ---------------------------------------------------------------- begin --- */

static int check(const struct dtensor_tape *tape, const struct dtensor *loss,
                 const struct dtensor *grad, struct dtensor_error *err)
{
    char one[400], other[400];

    if (!tape || !loss)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: %s is NULL",
                        tape ? "loss" : "tape");
    dtn_spec_format(&loss->spec, one, sizeof one);
    if (tape->done)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: there was a "
                        "backward, which freed what was kept (begin again)");
    if (dtn_values_find(&tape->values, loss->content) < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: %s depends on no "
                        "watched tensor, or was computed while the tape was "
                        "not active", one);
    if (!grad && dtn_numel(loss->spec.ndim, loss->spec.shape) != 1)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: %s has several "
                        "elements (give its gradient, or reduce it)", one);
    if (grad && (grad->spec.mesh != loss->spec.mesh ||
                 !dtn_spec_same_tensor(&grad->spec, &loss->spec)))
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: %s is no gradient "
                        "of %s (dtype, shape and mesh must be the same)",
                        dtn_spec_format(&grad->spec, other, sizeof other),
                        one);
    return 0;
}

/* Give the loss its gradient. */
static int seed(struct dtensor_tape *tape, const struct dtensor *loss,
                const struct dtensor *grad, struct dtensor_error *err)
{
    const struct dtensor_spec spec = dtn_spec_reduced(loss->spec);
    struct dtensor *ones = NULL;
    int rc = 0;

    if (grad)
        ones = dtn_tensor_hold(grad);
    else
        rc = dtensor_ones(&spec, &ones, err);
    return rc == 0 ? dtn_values_give(&tape->values,
                                     dtn_values_find(&tape->values,
                                                     loss->content), ones, err)
                   : rc;
}

/* Run a note, reported to the watcher, if there is one. */
static int note_told(struct dtensor_tape *tape, struct dtn_note *note,
                     struct dtensor_error *err)
{
    struct dtn_watcher *watcher = tape->ctx->watcher;
    int rc;

    if (watcher)
        watcher->begin(watcher, &(struct dtn_activity){
            .kind = DTN_WATCHED_BACKWARD, .name = note->op,
            .scope = note->scope });
    rc = note_run(tape, note, err);
    if (watcher)
        watcher->end(watcher);
    return rc;
}

/* Bring the gradients home, told of in the same way. */
static int collect_told(struct dtensor_tape *tape, struct dtensor_error *err)
{
    struct dtn_watcher *watcher = tape->ctx->watcher;
    int rc;

    if (watcher)
        watcher->begin(watcher, &(struct dtn_activity){
            .kind = DTN_WATCHED_BACKWARD, .name = "gradients" });
    rc = dtn_leaves_collect(tape, err);
    if (watcher)
        watcher->end(watcher);
    return rc;
}

static int walk(struct dtensor_tape *tape, struct dtensor_error *err)
{
    int rc = 0;

    for (int i = tape->nnotes - 1; i >= 0 && rc == 0; i--)
        rc = note_told(tape, tape->notes[i], err);
    if (rc == 0)
        rc = collect_told(tape, err);
    for (int i = 0; i < tape->nnotes; i++)
        dtn_note_release(tape->notes[i]);
    dtn_values_clear(&tape->values);
    return rc;
}

int dtensor_tape_backward(struct dtensor_tape *tape,
                          const struct dtensor *loss,
                          const struct dtensor *grad,
                          struct dtensor_error *err)
{
    struct dtn_recorder *recorder;
    enum dtensor_implied implied;
    int rc = check(tape, loss, grad, err);

    if (rc != 0)
        return rc;
    recorder = tape->ctx->recorder;
    implied = dtn_op_implied(tape->ctx);
    tape->ctx->recorder = NULL;
    rc = dtensor_op_implied(tape->ctx, DTENSOR_IMPLIED_ALLOWED, err);
    if (rc == 0)
        rc = seed(tape, loss, grad, err);
    if (rc == 0)
        rc = walk(tape, err);
    tape->done = true;
    dtensor_op_implied(tape->ctx, implied, NULL);
    if (recorder != &tape->recorder)
        tape->ctx->recorder = recorder;
    return rc;
}
