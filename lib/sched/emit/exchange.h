/* exchange.h - private to the emitter of exchanges
 *
 *     exchange.c      the steps
 *     exchange_cut.c  partners and the number of rounds
 *     parcels.c       pieces cut to the size of a window
 */
#ifndef DTN_EMIT_EXCHANGE_H
#define DTN_EMIT_EXCHANGE_H

#include "sched/emit/parcels.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_box;
struct dtn_exchange;
struct dtn_sched;

/* Windows of a receiver for each peer, and packing buffers of a source. */
enum { DTN_PEER_WINDOWS = 3, DTN_PEER_PACKS = 2 };

/* A peer with which this rank exchanges data. */
struct dtn_partner {
    int distance;                 /* from this rank upwards, in positions     */
    int rank;                     /* its position in the group                */
    bool maps;                    /* this rank loads from it                  */
    bool gets;                    /* it receives from this rank               */
    struct dtn_parcel_stream in, out;  /* parcels from it, and to it          */
    size_t window, window_bytes;  /* in TMP, bytes: offset of the first       */
                                  /* window, size of each                     */
    size_t pack, pack_bytes;      /* the same of the packing buffers          */
    int packed;                   /* the last round that was packed           */
    unsigned busy;                /* bit i: puts from packing buffer i are    */
                                  /* not flushed                              */
    int left;                     /* received parcels not applied yet         */
    int came;                     /* the last round whose DATA was awaited    */
};

struct dtn_exchanger {
    struct dtn_sched *sched;      /* the schedule being written               */
    const struct dtn_exchange *x;  /* what to exchange                        */
    size_t elem_bytes;            /* bytes of an element                      */
    size_t row_bytes;             /* shortest run put without packing, bytes  */
    int64_t most;                 /* elements in a window                     */
    bool cuts;                    /* local and loaded pieces go in rounds,    */
                                  /* too, as those that are put               */
    bool uses_acc;                /* the result is accumulated in ACC, not    */
                                  /* OUT                                      */
    struct dtn_parcel_stream own;  /* pieces from this rank to itself         */
    int npartners;                /* length of `partners`                     */
    struct dtn_partner *partners;  /* by distance, so that not all ranks      */
                                   /* begin with the same peer                */
    struct dtn_parcels received, sent;  /* parcels, by round                  */
    int rounds;                   /* most rounds of any partner               */
};

/* List the partners and cut the pieces.  Errors: ENOMEM.  Call fini in any
 * case.
 */
int dtn_exchange_cut(struct dtn_exchanger *ex, struct dtensor_error *err);
void dtn_exchange_fini(struct dtn_exchanger *ex);

/* The partner of that rank; NULL: this rank itself. */
struct dtn_partner *dtn_exchange_partner(const struct dtn_exchanger *ex,
                                         int rank);

/* The strides of a box that is stored row-major, without gaps. */
void dtn_box_flatten(const struct dtn_box *box, int64_t stride[]);

#endif
