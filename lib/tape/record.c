/* record.c - notes a call on the tape
 *
 * A call is noted if one of its inputs depends on a leaf: such an input has a
 * value.  Then the float outputs of the call get values too.  The note keeps
 * only the tensors that the gradients of those inputs need: for mul with a
 * constant factor, the constant.  If an input was gathered, the note keeps the
 * tensor that the program passed, or a copy of the gathered one.
 */
#include "tape/express.h"
#include "tape/rules.h"
#include "tape/tape.h"
#include "base/array.h"
#include "base/dtype.h"
#include "base/error.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/spec.h"
#include "op/bound.h"
#include "op/cache.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dtn_tape_depends(const struct dtensor_tape *tape,
                      const struct dtn_called *called)
{
    for (int i = 0; i < called->nin; i++)
        if (dtn_values_find(&tape->values, called->in[i]->content) >= 0)
            return true;
    return false;
}

/* May a tensor have a gradient? */
static bool smooth(const struct dtensor *t)
{
    return dtn_dtype_kind(t->spec.dtype) == DTN_DTYPE_FLOAT;
}

/* As much of a text as there is room for.  snprintf() takes several times as
 * long where libquadmath, which an OpenBLAS loads, has extended it.
 */
static void text_copy(char *to, const char *from, size_t size)
{
    if (!memccpy(to, from, '\0', size))
        to[size - 1] = '\0';
}

static struct dtn_note *note_make(const struct dtensor_tape *tape,
                                  const struct dtn_called *called,
                                  struct dtn_own_backward *own)
{
    const size_t n = (size_t)(called->nin + called->nout);
    struct dtn_note *note = calloc(1, sizeof *note +
                                   n * sizeof note->operand[0]);

    if (!note)
        return NULL;
    text_copy(note->op, called->op, sizeof note->op);
    text_copy(note->where, tape->recorder.where ? tape->recorder.where : "",
              sizeof note->where);
    note->scope = tape->ctx->watcher ? tape->ctx->watcher->scope : 0;
    note->nin = called->nin;
    note->nout = called->nout;
    if (called->args)
        note->args = *called->args;
    for (int i = 0; i < called->nin; i++)
        note->operand[i] = (struct dtn_noted){
            .spec = called->in[i]->spec, .content = called->in[i]->content,
            .value = dtn_values_find(&tape->values, called->in[i]->content) };
    for (int i = 0; i < called->nout; i++)
        note->operand[called->nin + i] = (struct dtn_noted){
            .spec = called->out[i]->spec, .value = -1 };
    note->own = own;
    note->backward = own ? &own->row : dtn_backward_of(note);
    return note;
}

/* The operands that keeps names; see rules.h. */
static unsigned keeps_needs(const char *keeps, const struct dtn_note *note)
{
    unsigned bits = 0;

    if (!keeps || *keeps == '*')
        return keeps ? ~0u : 0;
    if (*keeps < '0' || *keeps > '9')
        return dtn_express_names(keeps, note);
    for (int i = *keeps - '0'; i < note->nin && i < 32; i++)
        bits |= 1u << i;
    return bits;
}

/* The operands that the backward will read: a bit for each. */
static unsigned note_needs(const struct dtn_note *note)
{
    const struct dtn_backward *back = note->backward;
    unsigned bits = 0;

    if (!back)
        return 0;
    if (back->all)
        return keeps_needs(back->keeps, note);
    for (int i = 0; i < note->nin && i < DTN_BACKWARD_IN; i++)
        if (note->operand[i].value >= 0 && back->grad[i])
            bits |= dtn_express_names(back->grad[i], note);
    return bits;
}

/* Was input i redistributed, by a rank that sent something? */
static bool sent(const struct dtn_called *called, int i)
{
    return called->decision && called->decision->bound->input[i].sends;
}

/* A copy of input i as the operator has read it.   Errors: ENOMEM; of copies */
static int copy_used(const struct dtn_called *called, int i,
                     struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtn_decision *d = called->decision;
    struct dtensor *copy = NULL;
    int rc = dtn_tensor_create_all(&d->inferred.want[i], &copy, err);

    if (rc != 0)
        return rc;
    if (copy->bytes > 0)
        rc = dtn_buffer_copy(copy->spec.mesh->ctx, copy->local,
                             d->bound->in[i].data, copy->bytes, err);
    return dtn_tensor_return(copy, rc, tp);
}

/* Hold what the backward needs, before outputs have their new content.
 *   Errors: ENOMEM; of copies
 */
static int note_keep(const struct dtensor_tape *tape, struct dtn_note *note,
                     const struct dtn_called *called,
                     struct dtensor_error *err)
{
    const unsigned needs = note_needs(note);
    int rc = 0;

    for (int i = 0; i < note->nin + note->nout && i < 32 && rc == 0; i++) {
        struct dtn_noted *at = &note->operand[i];

        if (!(needs >> i & 1))
            continue;
        if (i >= note->nin)
            at->kept = dtn_tensor_hold(called->out[i - note->nin]);
        else if (tape->keep == DTENSOR_KEEP_PASSED || !sent(called, i))
            at->kept = dtn_tensor_hold(called->in[i]);
        else
            rc = copy_used(called, i, &at->kept, err);
        if (rc == 0)
            at->content = at->kept->content;
    }
    return rc;
}

/* Outputs have their new content from here on, inputs that they are too. */
static void note_fill(struct dtensor_tape *tape, struct dtn_note *note,
                      const struct dtn_called *called)
{
    for (int k = 0; k < note->nout; k++) {
        struct dtn_noted *at = &note->operand[note->nin + k];

        if (smooth(called->out[k]))
            dtn_values_add(&tape->values, called->out[k]->content, &at->value,
                           NULL);                /* room is there             */
        at->content = called->out[k]->content;
    }
}

static void renew(const struct dtn_called *called)
{
    for (int i = 0; i < called->nout; i++)
        dtn_tensor_renew(called->out[i]);
}

/* The note, and room for what it adds; NULL: no gradient passes. */
static int note_begin(struct dtensor_tape *tape,
                      const struct dtn_called *called,
                      struct dtn_own_backward *own, struct dtn_note **notep,
                      struct dtensor_error *err)
{
    struct dtn_note *note = note_make(tape, called, own);
    int rc;

    if (!note) {
        free(own);
        return dtn_fail_nomem(err, "tape", sizeof *note);
    }
    rc = dtn_values_reserve(&tape->values, called->nout, err);
    if (rc == 0
        && !dtn_array_reserve(&tape->notes, &tape->notes_room, tape->nnotes + 1,
                              sizeof tape->notes[0]))
        rc = dtn_fail_nomem(err, "tape", sizeof tape->notes[0]);
    if (rc != 0 || (note->backward && dtn_backward_stops(note->backward))) {
        dtn_note_free(note);
        note = NULL;
    }
    *notep = note;
    return rc;
}

int dtn_tape_record_own(struct dtensor_tape *tape,
                        const struct dtn_called *called,
                        struct dtn_own_backward *own,
                        struct dtensor_error *err)
{
    struct dtn_note *note = NULL;
    int rc = note_begin(tape, called, own, &note, err);

    if (note)
        rc = note_keep(tape, note, called, err);
    renew(called);
    if (note && rc != 0) {
        dtn_note_release(note);
        dtn_note_free(note);
        return rc;
    }
    if (note) {
        note_fill(tape, note, called);
        tape->notes[tape->nnotes++] = note;
    }
    return rc;
}

int dtn_tape_record(struct dtn_recorder *recorder,
                    const struct dtn_called *called,
                    struct dtensor_error *err)
{
    struct dtensor_tape *tape = (struct dtensor_tape *)recorder;
    struct dtn_own_backward *own = NULL;
    int rc = 0;

    if (dtn_tape_depends(tape, called))
        rc = dtn_own_backward_of(tape->ctx, called->op, &own, err);
    if (rc == 0 && dtn_tape_depends(tape, called))
        return dtn_tape_record_own(tape, called, own, err);
    renew(called);
    return rc;
}

/* ------------------------------------------------------------- printing --- */

static void operand_print(const struct dtn_noted *at, FILE *stream)
{
    char text[400];

    dtensor_spec_format(&at->spec, text, sizeof text);
    if (at->value >= 0)
        fprintf(stream, " #%d", at->value);
    fprintf(stream, " %s", text);
    if (!at->kept)
        return;
    dtensor_placements_format(at->spec.mesh, at->kept->spec.placement, text,
                              sizeof text);
    if (dtn_spec_equal(&at->kept->spec, &at->spec))
        fprintf(stream, " (kept)");
    else
        fprintf(stream, " (kept as %s)", text);
}

/* "gradient of #0 came as P(sum), is R" */
static void leaf_print(const struct dtn_leaf *leaf, FILE *stream)
{
    char came[200], is[200];

    if (!leaf->grad)
        return;
    dtensor_placements_format(leaf->came.mesh, leaf->came.placement, came,
                              sizeof came);
    dtensor_placements_format(leaf->grad->spec.mesh,
                              leaf->grad->spec.placement, is, sizeof is);
    fprintf(stream, "gradient of #%d came as %s, is %s\n", leaf->value, came,
            is);
}

int dtensor_tape_print(const struct dtensor_tape *tape, FILE *stream,
                       struct dtensor_error *err)
{
    for (int i = 0; i < tape->nnotes; i++) {
        const struct dtn_note *note = tape->notes[i];

        fprintf(stream, "%s%s:", note->op,
                note->backward ? "" : " (no backward)");
        for (int k = 0; k < note->nin + note->nout; k++) {
            if (k == note->nin)
                fprintf(stream, " ->");
            operand_print(&note->operand[k], stream);
        }
        fprintf(stream, "\n");
    }
    for (int i = 0; i < tape->nleaves; i++)
        leaf_print(&tape->leaves[i], stream);
    return fflush(stream) == 0 && !ferror(stream) ? 0
         : dtn_fail(err, DTENSOR_ESYS, "tape_print: cannot write");
}
