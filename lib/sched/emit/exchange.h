/* exchange.h - private to the coll room: what of an exchange goes when
 *
 * exchange.c      the steps
 * exchange_cut.c  who with whom, and in how many rounds
 * parcels.c       pieces cut into what goes at a time
 */
#ifndef DTN_COLL_EXCHANGE_H
#define DTN_COLL_EXCHANGE_H

#include "sched/emit/parcels.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_box;
struct dtn_exchange;
struct dtn_sched;

/* Windows of a receiver for each peer, and what a source packs in. */
enum { EXCHANGE_WINDOWS = 3, EXCHANGE_PACKS = 2 };

/* A rank that gives or gets anything. */
struct dtn_partner {
    int distance;                 /* in positions, upwards from this rank      */
    int rank;
    bool maps;
    bool gives, gets;
    struct dtn_parcel_stream in, out;
    size_t window, window_bytes;  /* in TMP: the first of them, of each        */
    size_t pack, pack_bytes;
    int packed;                   /* the last round of which anything was      */
    unsigned busy;                /* bit i: puts from pack i are not flushed   */
    int left;                     /* parcels still to be applied               */
    int came;                     /* the last round of which it said DATA      */
};

struct dtn_exchanger {
    struct dtn_sched *sched;
    const struct dtn_exchange *x;
    size_t elem_bytes;
    size_t row_bytes;
    int64_t most;                 /* elements of a window                      */
    bool cuts;                    /* own pieces and loaded ones go in rounds,  */
                                  /* to meet those that come in them           */
    bool lifts;                   /* OUT is put together in ACC                */
    struct dtn_parcel_stream own;
    int npartners;                /* nearest first: everyone begins elsewhere  */
    struct dtn_partner *partners;
    struct dtn_parcels received, sent;
    int rounds;
};

/* Everyone in the lists, and the pieces cut.   Errors: ENOMEM.  Fini in any
 * case.
 */
int dtn_exchange_cut(struct dtn_exchanger *ex, struct dtensor_error *err);
void dtn_exchange_fini(struct dtn_exchanger *ex);

/* NULL: this rank itself. */
struct dtn_partner *dtn_exchange_partner(const struct dtn_exchanger *ex, int rank);

/* Lay a box out row-major, without gaps, on one side. */
void dtn_box_flatten(const struct dtn_box *box, int64_t stride[]);

#endif
