/* peer.h - all that is known of one peer */
#ifndef DTN_TRANSPORT_VERBS_PEER_H
#define DTN_TRANSPORT_VERBS_PEER_H

#include "cluster/cluster.h"
#include "transport/transport.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/queue.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct dtn_verbs_peer {
    int rank;                     /* of the peer                              */
    int index;                    /* in verbs->met                            */
    int nqueues;                  /* of `queue`; 0: not made yet              */
    struct dtn_verbs_queue queue[DTN_VERBS_QUEUES_MAX]; /* ours, to it        */
    struct ibv_ah *way;           /* for datagrams to it                      */
    struct dtn_verbs_address address; /* set when `called`                    */
    bool called;                  /* connect() was called for it              */
    bool greeted;                 /* its greeting is in `greeting`            */
    bool ready;                   /* our queue pairs are up                   */
    bool joined;                  /* so are the peer's                        */
    bool plain;                   /* lines to and from it are plain           */
    int64_t next_greeting_ns;     /* when to greet again: dtn_now_ns()        */
    struct dtn_verbs_greeting greeting; /* the peer's, set when `greeted`     */
    struct dtn_verbs_lane *lane;  /* ours, for it; NULL: not met yet          */
    struct ibv_mr *lane_mr[DTN_MAX_RAILS]; /* of `lane`, on each rail         */
    uint64_t keys_told;           /* version of our keys that the peer has    */
    uint64_t sent;                /* signals to the peer                      */
    uint64_t acked;               /* of these, read by the peer as it told    */
    uint64_t consumed;            /* signals of the peer that were read       */
    uint64_t told;                /* of these, what the peer was last told    */
    bool arrived;                 /* the next signal is in `incoming`         */
    struct dtn_signal incoming;   /* what peek() shows                        */
    bool striped;                 /* other queues had puts since a signal     */
    uint16_t stripes;             /* times that happened                      */
    bool to_device;               /* puts into its device since a signal      */
    bool reading;                 /* READs of our device are on their way     */
    uint64_t reads[DTN_MAX_RAILS]; /* numbers of the last such READs          */
    uint16_t stripes_seen;        /* in the peer's last signal                */
    int64_t next_beat_ns;         /* when to write a beat: dtn_now_ns()       */
    enum ibv_wc_status error;     /* first bad completion of any queue, or 0  */
    uint32_t vendor_error;        /* the device's own code of `error`         */
    int error_rail;               /* number of the rail of `error`            */
    bool narrow;                  /* only its longest packet was not answered */
};

#endif
