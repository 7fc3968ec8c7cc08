/* meet.h - two ranks meet: queue pair numbers by datagram */
#ifndef DTN_TRANSPORT_VERBS_MEET_H
#define DTN_TRANSPORT_VERBS_MEET_H

#include "base/seal.h"
#include "cluster/cluster.h"
#include "transport/transport.h"
#include "transport/verbs/queue.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdint.h>

struct dtn_verbs;

/* The port of a rail, as its peers must know it. */
struct dtn_verbs_end {
    union ibv_gid gid;            /* all zeros: none                          */
    uint32_t rate_mbps;           /* Mb/s; 0: not known                       */
    uint16_t lid;                 /* address on InfiniBand                    */
    uint8_t mtu;                  /* enum ibv_mtu, active                     */
    uint8_t ethernet;             /* 1: RoCE                                  */
    char device[IBV_SYSFS_NAME_MAX]; /* name on its host, for messages        */
};

/* The address blob of a rank: where it is met. */
struct dtn_verbs_address {
    uint64_t magic;               /* marks an address of verbs                */
    unsigned char key[DTN_SECRET_BYTES]; /* greetings to it prove that their  */
                                  /* sender has it                            */
    uint32_t datagram_qpn;        /* number of its datagram queue, on rail 0  */
    uint32_t nrails;              /* of `end`                                 */
    struct dtn_verbs_end end[DTN_MAX_RAILS]; /* its port on each rail         */
};
_Static_assert(sizeof(struct dtn_verbs_address) <= DTN_BLOB_MAX,
               "a blob holds it");

/* What one rank tells another so that their queue pairs can be joined. */
struct dtn_verbs_greeting {
    uint64_t magic;               /* marks a greeting                         */
    uint64_t lane;                /* address of the sender's lane for it      */
    uint32_t lane_key[DTN_MAX_RAILS]; /* key of that lane on each rail        */
    int32_t rank;                 /* of the sender                            */
    uint32_t ready;               /* the sender's queue pairs can receive     */
    uint32_t seen;                /* it knows that the receiver's can         */
    uint32_t in_order;            /* its device writes in order: plain lines  */
    uint32_t nqueues;             /* of qpn and psn                           */
    uint32_t qpn[DTN_VERBS_QUEUES_MAX]; /* numbers of its queue pairs         */
    uint32_t psn[DTN_VERBS_QUEUES_MAX]; /* their first packet numbers         */
    unsigned char proof[DTN_SECRET_BYTES]; /* of all before it, for the       */
                                  /* receiver's key                           */
};

/* Make the datagram queue.   Errors: ENOMEM, ESYS */
int dtn_verbs_meet_open(struct dtn_verbs *verbs, struct dtensor_error *err);
void dtn_verbs_meet_close(struct dtn_verbs *verbs);

/* What is known of a rank, from now on; NULL: no memory. */
struct dtn_verbs_peer *dtn_verbs_met(struct dtn_verbs *verbs, int rank);

/* Work toward queue pairs that are joined on both sides.  EAGAIN: call again */
int dtn_verbs_meet(struct dtn_verbs *verbs, int peer,
                   struct dtensor_error *err);

/* Answer the greetings that came. */
int dtn_verbs_meet_progress(struct dtn_verbs *verbs);

#endif
