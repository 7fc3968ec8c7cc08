/* terms.h - the terms of a reduction
 *
 * A copy has one term; dst = dst op src has two; a fold has the same bytes of
 * several ranks, or slots in this rank's memory.
 */
#ifndef DTN_EXEC_TERMS_H
#define DTN_EXEC_TERMS_H

#include "sched/sched.h"

#include <stddef.h>

static inline int dtn_terms_count(const struct dtn_sched *sched,
                                  const struct dtn_step *step)
{
    if (step->op != DTN_OP_FOLD)
        return step->op == DTN_OP_REDUCE ? 2 : 1;
    if (step->src.rank >= 0)
        return step->terms;
    return dtn_sched_nterms(sched);
}

/* Term i.  `slot` is used for a term whose span is not stored in the step. */
static inline const struct dtn_span *
dtn_terms_span(const struct dtn_sched *sched, const struct dtn_step *step,
               int i, struct dtn_span *slot)
{
    if (step->op != DTN_OP_FOLD)
        return step->op == DTN_OP_REDUCE && i == 0 ? &step->dst : &step->src;
    if (i == step->own_term)
        return &step->own;
    *slot = step->src;
    if (step->src.rank >= 0)
        slot->offset += (size_t)(i - (step->own_term >= 0
                                      && i > step->own_term)) * step->bytes;
    else
        slot->rank = dtn_sched_term(sched, i);
    return slot;
}

#endif
