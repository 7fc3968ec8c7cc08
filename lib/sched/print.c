/* print.c - a schedule as text
 *
 * "1 wait    <- 0  EAGER -> TMP+0  8 bytes" is step 1: wait for the signal of
 * rank 0 with 8 bytes of data, which go to TMP.  A space that peers access has
 * a star, "TMP* 64", and the memory of another rank its position, "2:IN+0".
 */
#include "sched/sched.h"
#include "base/box.h"
#include "base/compiler.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const op_names[DTN_NOPS] = {
    [DTN_OP_PUT] = "put",       [DTN_OP_FLUSH] = "flush",
    [DTN_OP_SIGNAL] = "signal", [DTN_OP_WAIT] = "wait",
    [DTN_OP_COPY] = "copy",     [DTN_OP_REDUCE] = "reduce",
    [DTN_OP_FOLD] = "fold",     [DTN_OP_SCALE] = "scale",
    [DTN_OP_NEUTRAL] = "neutral",
};

static const char *const tag_names[DTN_NTAGS] = {
    [DTN_TAG_READY] = "READY", [DTN_TAG_DATA] = "DATA",
    [DTN_TAG_EAGER] = "EAGER", [DTN_TAG_DONE] = "DONE",
};

static const char *const space_names[DTN_NSPACES] = {
    [DTN_IN] = "IN", [DTN_OUT] = "OUT", [DTN_TMP] = "TMP", [DTN_ACC] = "ACC",
};

/* Append to the text in buf. */
static void text_add(char *buf, size_t size, const char *fmt, ...)
    DTN_PRINTF(3, 4);

static void text_add(char *buf, size_t size, const char *fmt, ...)
{
    size_t used = strlen(buf);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf + used, size - used, fmt, ap);
    va_end(ap);
}

static void text_span(char *buf, size_t size, int me,
                      const struct dtn_span *span)
{
    if (span->rank < 0)
        text_add(buf, size, "*:");
    else if (span->rank != me)
        text_add(buf, size, "%d:", span->rank);
    text_add(buf, size, "%s+%zu", space_names[span->space], span->offset);
}

/* Sizes and strides: "box 3x4 (8,1) <- (4,1)". */
static void text_box(char *buf, size_t size, const struct dtn_box *box)
{
    text_add(buf, size, "  box ");
    for (int d = 0; d < box->ndim; d++)
        text_add(buf, size, d ? "x%lld" : "%lld", (long long)box->size[d]);
    text_add(buf, size, " (");
    for (int d = 0; d < box->ndim; d++)
        text_add(buf, size, d ? ",%lld" : "%lld",
                 (long long)box->dst_stride[d]);
    text_add(buf, size, ") <- (");
    for (int d = 0; d < box->ndim; d++)
        text_add(buf, size, d ? ",%lld" : "%lld",
                 (long long)box->src_stride[d]);
    text_add(buf, size, ")");
}

/* A signal or a wait; an eager payload comes from or goes to a span. */
static void text_signal(char *buf, size_t size, int me,
                        const struct dtn_step *step)
{
    bool sends = step->op == DTN_OP_SIGNAL;

    text_add(buf, size, "%s %d  %s", sends ? "->" : "<-", step->peer,
             tag_names[step->tag]);
    if (step->tag == DTN_TAG_READY && sends && step->src.offset > 0) {
        text_add(buf, size, " of ");
        text_span(buf, size, me, &step->src);
    }
    if (step->tag != DTN_TAG_EAGER)
        return;
    text_add(buf, size, sends ? " <- " : " -> ");
    text_span(buf, size, me, sends ? &step->src : &step->dst);
    text_add(buf, size, "  %zu bytes", step->bytes);
}

/* The terms of a fold. */
static void text_fold(char *buf, size_t size, int me,
                      const struct dtn_step *step)
{
    const bool with = step->own_term >= 0;

    if (step->src.rank >= 0)
        text_add(buf, size, "  %d slots of", step->terms - with);
    text_add(buf, size, "%s%zu bytes", step->src.rank < 0 ? "  " : " ",
             step->bytes);
    if (!with)
        return;
    text_add(buf, size, " with ");
    text_span(buf, size, me, &step->own);
    text_add(buf, size, " as term %d", step->own_term);
}

/* A step that moves or writes bytes. */
static void text_move(char *buf, size_t size, const struct dtn_sched *sched,
                      const struct dtn_step *step)
{
    struct dtn_span dst = step->dst;

    if (step->op == DTN_OP_PUT) {
        text_add(buf, size, "-> %d  ", step->peer);
        dst.rank = sched->me;                  /* "-> 1" already names the    */
                                               /* rank                        */
    }
    text_span(buf, size, sched->me, &dst);
    if (step->op != DTN_OP_SCALE && step->op != DTN_OP_NEUTRAL) {
        text_add(buf, size, " <- ");
        text_span(buf, size, sched->me, &step->src);
    }
    if (step->box >= 0)
        text_box(buf, size, &sched->boxes[step->box]);
    else if (step->op == DTN_OP_FOLD)
        text_fold(buf, size, sched->me, step);
    else
        text_add(buf, size, "  %zu bytes", step->bytes);
}

char *dtn_step_text(const struct dtn_sched *sched, const struct dtn_step *step,
                    char *buf, size_t size)
{
    snprintf(buf, size, "%-7s ", op_names[step->op]);
    if (step->op == DTN_OP_FLUSH)
        text_add(buf, size, "-> %d", step->peer);
    else if (step->op == DTN_OP_SIGNAL || step->op == DTN_OP_WAIT)
        text_signal(buf, size, sched->me, step);
    else
        text_move(buf, size, sched, step);
    return buf;
}

void dtn_sched_print(const struct dtn_sched *sched, FILE *stream)
{
    char text[256];

    fprintf(stream, "%s: rank %d of %d, %s %s,", sched->name, sched->me,
            sched->n, dtensor_dtype_name(sched->dtype),
            dtensor_redop_name(sched->reduction.op));
    for (int s = 0; s < DTN_NSPACES; s++)
        if (s != DTN_ACC || sched->bytes[s] > 0)
            fprintf(stream, " %s%s %zu", space_names[s],
                    sched->exposed[s] ? "*" : "", sched->bytes[s]);
    fprintf(stream, "\n");
    for (int i = 0; i < sched->nsteps; i++)
        fprintf(stream, "%3d %s\n", i,
                dtn_step_text(sched, &sched->steps[i], text, sizeof text));
}
