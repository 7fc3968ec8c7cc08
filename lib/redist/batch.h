/* batch.h - what a batch holds
 *
 * batch.c         who shares an exchange, and its run
 * batch_pieces.c  the pieces of such an exchange
 * sums.c          small allreduces
 */
#ifndef DTN_REDIST_BATCH_H
#define DTN_REDIST_BATCH_H

#include "redist/cost.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/sums.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* One tensor. */
struct dtn_batch_item {
    struct dtensor_spec src, dst;      /* before and behind                   */
    struct dtn_phase phase;            /* the only one                        */
    int next;                          /* the next one of its share, -1: the  */
                                       /* last                                */
    int received, sent;                /* pieces of the share up to its last  */
    size_t in_count, out_count;        /* elements of the own parts           */
    size_t in_at, out_at;              /* where they begin among all in the   */
                                       /* share                               */
    int sum;                           /* its number in the sums; -1: none    */
    struct dtensor_plan *alone;        /* of one that shares none; NULL: it   */
                                       /* shares one, or is in the sums       */
    const void *in;                    /* the own parts, while it is run      */
    void *out;                         /* see above                           */
};

/* One exchange of several tensors. */
struct dtn_batch_share {
    struct dtn_phase phase;            /* of the first: mesh, dtype, redop    */
    struct dtn_exec *exec;             /* it                                  */
    int first, last;                   /* its items, by `next`                */
    size_t in_count, out_count;        /* elements of all                     */
    unsigned char *in, *out;           /* where they are packed               */
    uint64_t hash;                     /* of what is exchanged                */
    double saved_ns;                   /* messages of all as exchanges of     */
                                       /* their own, less the copies          */
    double messages_ns;                /* of the one that needs most          */
};

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
int dtn_batch_pieces(const struct dtensor_batch *batch,
                     const struct dtn_batch_share *share,
                     struct dtn_pieces *received, struct dtn_pieces *sent,
                     struct dtensor_error *err);

#endif
