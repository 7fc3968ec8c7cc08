/* verbs.h - the open verbs transport
 *
 * Each file has one concept, and its header what the others use of it.  From
 * the device up:
 *
 * verbs_look      the devices there are, as facts (device.h)
 * verbs_device    opens the one that device.c chose, and logs it
 * verbs_events    what the device says of itself: port down, GID gone
 * verbs_limits    what the machine allows: locked memory, queue pairs, MTU
 * verbs_fail      what the device refused, with the limit that explains it
 * verbs_rail      the devices of this rank
 * verbs_completions   the completion queue of each
 * verbs_register  makes a range of memory known to the cards of all rails
 * verbs_keys      keys of a region on all rails, told to peers
 * verbs_memory    memory regions, registered once
 * verbs_queue     queue pairs: made, and joined to the peer's
 * verbs_post      writes: strung to chains, posted, completed
 * verbs_lane      the memory through which two ranks signal to each other
 * verbs_meet      two ranks meet: queue pair numbers by datagram
 * verbs_readback  a read by the card that makes its writes into a GPU visible
 * verbs_probe     does the network carry packets as long as both ports say?
 * verbs_words     completion statuses as words
 * verbs_put       puts: by which rails, from where, until when
 * verbs_signal    signals: their room, and what orders them behind puts
 * verbs           the table
 */
#ifndef DTN_TRANSPORT_VERBS_H
#define DTN_TRANSPORT_VERBS_H

#include "base/seal.h"
#include "cluster/cluster.h"
#include "transport/transport.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/rail.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct dtn_verbs_datagrams;

struct dtn_verbs {
    struct dtn_transport base;    /* first: a dtn_transport points here       */
    struct dtn_open_args args;    /* pointers borrowed                        */
    int nrails;                   /* of `rail`                                */
    struct dtn_verbs_rail rail[DTN_MAX_RAILS]; /* the devices of this rank    */
    struct dtn_verbs_memory memory; /* what the rails may read and write      */
    struct ibv_qp *datagram;      /* on rail 0                                */
    struct ibv_cq *datagram_cq;   /* completions of `datagram`                */
    struct dtn_verbs_datagrams *datagrams; /* its buffers                     */
    struct dtn_verbs_chain chain; /* requests that are not posted yet         */
    struct dtn_verbs_held held;   /* a put that waits for its signal          */
    unsigned long posts;          /* counter: requests posted                 */
    unsigned long doorbells;      /* counter: calls that posted them          */
    unsigned long readbacks;      /* counter: READs of device memory          */
    bool reads_back;              /* a signal behind puts into the device     */
                                  /* waits for a READ                         */
    unsigned char *stage;         /* [DTN_VERBS_STAGE_BYTES] bounce buffer    */
    struct ibv_mr *stage_mr;      /* of `stage`, on rail 0                    */
    struct dtn_verbs_peer *stage_user; /* whose put still reads it, or NULL   */
    unsigned turns;               /* calls of progress(); may wrap            */
    int64_t next_ack_ns;          /* when to acknowledge again: dtn_now_ns()  */
    unsigned char key[DTN_SECRET_BYTES]; /* greetings to us prove it          */
    bool unlike_said;             /* a peer's MTU differs: warned once        */
    struct dtn_verbs_peer **peers; /* [nranks] sparse; NULL: not met          */
    struct dtn_verbs_peer **met;  /* [nmet] the others, in order of `index`   */
    int nmet, met_capacity;       /* in use; allocated                        */
};

static inline struct dtn_verbs *dtn_verbs_of(const struct dtn_transport *tp)
{
    return (struct dtn_verbs *)tp;
}

static inline struct dtn_verbs_peer *
dtn_verbs_peer(const struct dtn_transport *tp, int peer)
{
    return dtn_verbs_of(tp)->peers[peer];
}

#endif
