/* post.h - writes: strung to chains, posted, completed */
#ifndef DTN_TRANSPORT_VERBS_POST_H
#define DTN_TRANSPORT_VERBS_POST_H

#include "transport/transport.h"
#include "transport/verbs/device.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_verbs;
struct dtn_verbs_peer;
struct dtn_verbs_queue;

enum { DTN_VERBS_CHAIN = 16 };    /* requests of one call of the device       */

/* One RDMA write. */
struct dtn_verbs_write {
    uint64_t to;                  /* address in the peer's memory             */
    uint32_t key;                 /* that opens it                            */
    const void *from;             /* address here                             */
    size_t size;                  /* bytes, at most request_max               */
    const struct ibv_mr *mr;      /* of the source; NULL: inline              */
};

/* Requests to one queue that will be posted in one call. */
struct dtn_verbs_chain {
    struct dtn_verbs_queue *queue; /* to which; not set while n is 0          */
    int n;                        /* requests in wr                           */
    bool tells;                   /* the last one asks for a completion       */
    size_t last_bytes;            /* of the last request                      */
    struct ibv_send_wr wr[DTN_VERBS_CHAIN]; /* linked in this order           */
    struct ibv_sge sge[DTN_VERBS_CHAIN][DTN_VERBS_PIECES]; /* their sources   */
};

/* A small put that is held back for the signal that may carry it. */
struct dtn_verbs_held {
    struct dtn_verbs_peer *peer;  /* to which; NULL: no put is held           */
    struct dtn_eager put;         /* its bytes, unchanged until flush()       */
                                  /* returns 0                                */
};

/* Free places of a queue; polls for completions when they get few. */
int dtn_verbs_room(struct dtn_verbs *verbs, struct dtn_verbs_queue *queue);

/* Append one write to the chain of queue `q` of a peer, or make it one more
 * piece of the last write.  There must be room.   Errors: ESYS
 */
int dtn_verbs_post(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer, int q,
                   const struct dtn_verbs_write *write);

/* The same for a put, whose source flush() waits for. */
int dtn_verbs_post_put(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                       int q, const struct dtn_verbs_write *write);

/* Append up to n rows to the last request, which is a put of the row before
 * them: they are adjacent to it at the peer, and `step` bytes apart here.
 * Returns how many.
 */
size_t dtn_verbs_post_rows(struct dtn_verbs *verbs, const unsigned char *row,
                           size_t size, size_t step, size_t n);

/* Post the chain.   Errors: ESYS */
int dtn_verbs_ring(struct dtn_verbs *verbs);

/* Append the held put to the chain as a write of its own; release() posts the
 * chain, too.   Errors: ENOMEM, ESYS
 */
int dtn_verbs_unhold(struct dtn_verbs *verbs);
int dtn_verbs_release(struct dtn_verbs *verbs);

/* Take completions of all rails.   Errors: ESYS */
int dtn_verbs_poll(struct dtn_verbs *verbs);

#endif
