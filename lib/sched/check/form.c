/* form.c - checks a step by itself, without any state
 *
 * A step has whole elements, ranks and boxes that exist, and memory of this
 * rank where that is required.  A put or an eager payload is not converted.
 * Example: of bf16, "put ACC+0 <- IN+0" would leave 2-byte elements where
 * 4-byte partial results belong, and is an error; of f32 the two types are the
 * same.
 */
#include "base/reduce.h"
#include "sched/check/check.h"
#include "sched/sched.h"
#include "transport/transport.h"

#include <stdbool.h>

static bool span_whole(const struct dtn_checker *check, struct dtn_span span)
{
    return (unsigned)span.space < DTN_NSPACES && span.rank >= -1
        && span.rank < check->n
        && span.offset % check->cells.elem_bytes == 0;
}

bool dtn_check_alike(const struct dtn_checker *check, int me, bool from_acc,
                     bool to_acc)
{
    const struct dtn_reduction *how = &check->scheds[me].reduction;

    return from_acc == to_acc || (from_acc ? !dtn_reduction_finalises(how)
                                           : !dtn_reduction_converts(how));
}

int dtn_check_form(struct dtn_checker *check, int me,
                   const struct dtn_step *step)
{
    bool to_peer = step->op == DTN_OP_PUT || step->op == DTN_OP_FLUSH
                || step->op == DTN_OP_SIGNAL || step->op == DTN_OP_WAIT;
    int writes = step->op == DTN_OP_PUT ? step->peer : me;
    enum dtn_space space = step->op == DTN_OP_SIGNAL ? step->src.space
                                                     : step->dst.space;
    size_t eager = check->scheds[me].eager_bytes;
    size_t carried = step->bytes * (space == DTN_ACC
                     ? dtn_reduction_ratio(&check->scheds[me].reduction) : 1);

    if (to_peer && (step->peer < 0 || step->peer >= check->n
                    || step->peer == me))
        return dtn_check_fail(check, me, "not a peer");
    if (step->bytes % check->cells.elem_bytes != 0
        || !span_whole(check, step->dst) || !span_whole(check, step->src))
        return dtn_check_fail(check, me,
                              "not whole elements of a rank's space");
    if (step->box >= check->scheds[me].nboxes)
        return dtn_check_fail(check, me, "there is no box %d", step->box);
    if (step->op == DTN_OP_FLUSH
        || (to_peer && step->bytes == 0 && step->box < 0))
        return 0;
    if (step->op != DTN_OP_SIGNAL && step->dst.rank != writes)
        return dtn_check_fail(check, me, "writes to rank %d", step->dst.rank);
    if ((step->op == DTN_OP_PUT || step->op == DTN_OP_SIGNAL)
        && step->src.rank != me)
        return dtn_check_fail(check, me, "sends from rank %d", step->src.rank);
    if (step->op == DTN_OP_PUT
        && !dtn_check_alike(check, me, step->src.space == DTN_ACC,
                            step->dst.space == DTN_ACC))
        return dtn_check_fail(check, me, "puts elements as partial results, or "
                              "the reverse");
    if ((step->op == DTN_OP_COPY || step->op == DTN_OP_REDUCE)
        && step->src.rank < 0)
        return dtn_check_fail(check, me, "has no source rank");
    if (to_peer && step->op != DTN_OP_PUT && carried > eager)
        return dtn_check_fail(check, me, "more than %zu bytes in a signal",
                              eager);
    return 0;
}
