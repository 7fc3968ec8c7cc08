/* tape.c - creates tapes, activates them, and clears them
 *
 * A tape is a list of notes, one for each call, and a list of values: the
 * tensors that these calls read and wrote, if they depend on a leaf.  With y =
 * x w and loss = sum(y), w watched, there are two notes and three values: w, y
 * and the loss.  x is a constant and has no value.  The note of the product
 * keeps x, because the gradient of w needs it.
 */
#include "tape/tape.h"
#include "base/error.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdlib.h>

int dtensor_tape_create(struct dtensor_ctx *ctx, struct dtensor_tape **tapep,
                        struct dtensor_error *err)
{
    struct dtensor_tape *tape;

    if (!ctx || !tapep)
        return dtn_fail(err, DTENSOR_EINVAL, "tape: %s is NULL",
                        ctx ? "tapep" : "ctx");
    tape = calloc(1, sizeof *tape);
    if (!tape)
        return dtn_fail_nomem(err, "tape", sizeof *tape);
    tape->recorder.record = dtn_tape_record;
    tape->ctx = ctx;
    dtn_ctx_hold(ctx);
    *tapep = tape;
    return 0;
}

void dtensor_tape_clear(struct dtensor_tape *tape)
{
    for (int i = 0; i < tape->nnotes; i++) {
        dtn_note_release(tape->notes[i]);
        dtn_note_free(tape->notes[i]);
    }
    tape->nnotes = 0;
    dtn_values_clear(&tape->values);
    dtn_leaves_forget(tape);
    tape->done = false;
}

void dtensor_tape_destroy(struct dtensor_tape *tape)
{
    struct dtensor_ctx *ctx;

    if (!tape)
        return;
    ctx = tape->ctx;
    if (ctx->recorder == &tape->recorder)
        ctx->recorder = NULL;
    dtensor_tape_clear(tape);
    dtn_leaves_destroy(tape);
    dtn_values_free(&tape->values);
    free(tape->notes);
    free(tape);
    dtn_ctx_release(ctx);
}

int dtensor_tape_begin(struct dtensor_tape *tape, struct dtensor_error *err)
{
    int rc;

    if (tape->ctx->recorder)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_begin: %s (end it first)",
                        tape->ctx->recorder == &tape->recorder
                        ? "the tape is active" : "another tape of the "
                          "context is active");
    if (tape->done)
        dtensor_tape_clear(tape);
    tape->recorder.where = NULL;
    rc = dtn_leaves_enter(tape, err);
    if (rc == 0)
        tape->ctx->recorder = &tape->recorder;
    return rc;
}

int dtensor_tape_keep(struct dtensor_tape *tape, enum dtensor_keep keep,
                      struct dtensor_error *err)
{
    if (!tape)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_keep: tape is NULL");
    if (keep != DTENSOR_KEEP_PASSED && keep != DTENSOR_KEEP_USED)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_keep: %d is no choice (give "
                        "DTENSOR_KEEP_PASSED or DTENSOR_KEEP_USED)", keep);
    tape->keep = keep;
    return 0;
}

int dtensor_tape_end(struct dtensor_tape *tape, struct dtensor_error *err)
{
    if (tape->ctx->recorder != &tape->recorder)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_end: the tape is not "
                        "active (begin it first)");
    tape->ctx->recorder = NULL;
    return 0;
}
