/* batch.h - what a batch holds
 *
 * batch.c         who shares an exchange, and its run
 * batch_pieces.c  the pieces of such an exchange
 * sums.c          small allreduces
 */
#ifndef DTN_REDIST_BATCH_H
#define DTN_REDIST_BATCH_H

#include "coll/pack.h"
#include "redist/cost.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/sums.h"
#include "dtensor.h"

#include <stdint.h>

/* One tensor. */
struct dtn_batch_item {
    struct dtn_pack_part part;         /* the own parts; they are packed      */
                                       /* unless it runs alone                */
    struct dtensor_spec src, dst;      /* before and behind                   */
    struct dtn_phase phase;            /* the only one                        */
    int received, sent;                /* pieces of the share up to its last  */
    int sum;                           /* its number in the sums; -1: none    */
    struct dtensor_plan *alone;        /* of one that shares none; NULL: it   */
                                       /* shares one, or is in the sums       */
};

/* One exchange of several tensors. */
struct dtn_batch_share {
    struct dtn_phase phase;            /* of the first: mesh, dtype, redop    */
    struct dtn_exec *exec;             /* it                                  */
    struct dtn_pack pack;              /* its items                           */
    uint64_t hash;                     /* of what is exchanged                */
    double saved_ns;                   /* messages of all as exchanges of     */
                                       /* their own, less the copies          */
    double messages_ns;                /* of the one that needs most          */
};

static inline struct dtn_batch_item *dtn_batch_item_of(
    struct dtn_pack_part *part)
{
    return (struct dtn_batch_item *)part;
}

struct dtensor_batch {
    struct dtensor_ctx *ctx;           /* held                                */
    int n, nshares;                    /* entries of item, share              */
    double bytes;                      /* that shares take, on the largest    */
                                       /* rank                                */
    struct dtn_batch_item *item;       /* [n]                                 */
    struct dtn_batch_share *share;     /* [n] at most                         */
    struct dtn_sums sums;              /* allreduces that go together         */
    struct dtn_cost cost;              /* of the mesh of the last tensor that */
                                       /* needed one exchange                 */
};

/* The pieces of a share, for dtn_pieces_fini() also on failure.
 *   Errors: ENOMEM
 */
int dtn_batch_pieces(const struct dtn_batch_share *share,
                     struct dtn_pieces *received, struct dtn_pieces *sent,
                     struct dtensor_error *err);

#endif
