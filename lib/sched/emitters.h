/* emitters.h - the table of emitters and what each costs a rank */
#ifndef DTN_SCHED_EMITTERS_H
#define DTN_SCHED_EMITTERS_H

#include "cluster/cluster.h"
#include "sched/call.h"

#include <stdbool.h>
#include <stddef.h>

/* Units of a call: its largest buffer, half of it, or the block of one rank. */
enum dtn_unit {
    DTN_UNIT_NONE, DTN_UNIT_WHOLE, DTN_UNIT_HALF, DTN_UNIT_BLOCK
};

/* A number that grows with the ranks: constant + log2n * log2(n), rounded up, +
 * per_peer * (n-1), + not_power_of_two if n is not a power of two.
 */
struct dtn_growth { double constant, log2n, per_peer, not_power_of_two; };

/* Bytes, as multiples of the whole buffer, of a block and of a chunk. */
struct dtn_amount { struct dtn_growth whole, block, chunk; };

/* Which ranks of a host send to other hosts at the same time, with ranks in the
 * order of hosts.
 */
enum dtn_senders {
    DTN_SENDERS_ALL,              /* all of them, to peers at all distances   */
    DTN_SENDERS_SHIFT,            /* all, each to the rank a distance away:   */
                                  /* short ones lead the last to other hosts  */
    DTN_SENDERS_ONE,              /* one: a tree, or the root with all        */
    DTN_SENDERS_ROOT,             /* the root, which moves all bytes itself   */
    DTN_SENDERS_TWO,              /* two: two trees                           */
    DTN_SENDERS_TREES,            /* all, each in two trees of its rail       */
    DTN_SENDERS_RING,             /* the last, to the next host (rings.c)     */
    DTN_SENDERS_LOCKSTEP          /* the same, but the first pass waits until */
                                  /* the next rank is ready                   */
};

/* The cost of a call by an emitter on the busiest rank. */
struct dtn_weight {
    struct dtn_growth hops;       /* signals that wait for each other         */
    struct dtn_growth messages;   /* puts and signals that it posts           */
    struct dtn_growth offers;     /* those of them before any data            */
    enum dtn_unit message;        /* message size, if messages may be eager;  */
                                  /* rendezvous takes 3 messages for each and */
                                  /* 1 more hop                               */
    double busiest;               /* the bytes of the busiest rank, as a      */
                                  /* multiple of those that decide whether    */
                                  /* messages are eager; 0: 1                 */
    struct dtn_growth puts;       /* more messages, to peers whose block is   */
                                  /* not empty                                */
    struct dtn_growth each_chunk; /* more messages for each chunk             */
    struct {
        enum dtn_unit of;         /* what is cut into chunks                  */
        size_t bytes;             /* smallest size of a chunk; of halves, as  */
                                  /* two trees have them: the largest         */
        int most;                 /* largest number of chunks                 */
    } chunk;                      /* chunks of a pipelined message            */
    struct dtn_amount moved;      /* bytes loaded from or put to peers        */
    struct dtn_amount rooted;     /* more such bytes, by the root alone       */
    double thinned;               /* of whole more bytes for each doubling of */
                                  /* the ranks above the blocks that are not  */
                                  /* empty: they pass over the empty ones     */
    struct dtn_growth fanned;     /* levels of a tree at which a rank sends   */
                                  /* the whole buffer to all its children     */
    struct dtn_amount eager_moved; /* more such bytes if messages are eager   */
    struct dtn_amount folded;     /* bytes of terms that reductions read      */
    struct dtn_amount copied;     /* bytes copied within the rank             */
    struct dtn_amount tmp;        /* maximum scratch in bytes: of TMP,        */
    struct dtn_amount eager_received; /* of eager messages received, in TMP,  */
    struct dtn_amount acc;        /* of ACC,                                  */
    struct dtn_amount converted;  /* of own terms converted to the            */
                                  /* accumulator type, in ACC                 */
    enum dtn_senders senders;     /* to other hosts                           */
    double overlaps;              /* share that is posted at once: between    */
                                  /* hosts a message is posted while another  */
                                  /* moves                                    */
    double stalls;                /* of two trees: how much longer bytes take */
                                  /* between hosts, as ranks wait for both    */
    bool incast;                  /* incast: every rank receives from all     */
                                  /* others at once                           */
    double waits;                 /* of the host for its device, if it copies */
                                  /* and folds there; 0: one for each peer    */
    struct dtn_growth largest;    /* with unequal blocks: how often the       */
                                  /* largest block passes one rank, or is     */
                                  /* waited for                               */
};

/* On which hosts an emitter runs, if its reach is there. */
enum dtn_hosts_needed {
    DTN_HOSTS_ANY,                /* any number of them                       */
    DTN_HOSTS_SEVERAL,            /* two or more                              */
    DTN_HOSTS_EQUAL               /* two or more, all with as many ranks      */
};

/* An emitter for a collective. */
struct dtn_emitter {
    enum dtn_coll coll;           /* of which collective                      */
    const char *name;             /* "ring"; an algorithm may have several    */
                                  /* emitters                                 */
    enum dtn_algorithm algorithm;  /* as [tuning] names it                    */
    enum dtn_reach needs;         /* the least reach that it needs            */
    enum dtn_hosts_needed hosts;  /* the hosts that it needs                  */
    size_t max_bytes;             /* upper limit of dtn_call_edge_bytes();    */
                                  /* DTN_EAGER_MAX: an eager message          */
    dtn_emit_f *emit;             /* writes the schedule                      */
    struct dtn_weight weight;     /* cost over all ranks; of a hierarchy:     */
                                  /* over the ranks of one host               */
    struct dtn_weight between_hosts; /* cost of a hierarchy over the hosts    */
    double hides;                 /* of a hierarchy: share of the bytes that  */
                                  /* move between hosts while others are      */
                                  /* reduced inside                           */
    bool hides_own;               /* or while those of the own host are moved */
    bool undivided;               /* or each rank sends as much between hosts */
                                  /* as the call has, not its share           */
};
extern const struct dtn_emitter dtn_emitters[];  /* ends with emit NULL       */

/* The schedules of calls in which some rank's buffers are private memory; NULL:
 * there is none.  They have the results of the direct emitters, for ranks that
 * map, and access no IN or OUT of a peer.
 */
extern dtn_emit_f *const dtn_window_emitters[DTN_NCOLLS];

/* May it be used for this call?  Then it depends on nothing that the call
 * points to.
 */
bool dtn_window_suits(const struct dtn_call *call);

/* Does it fold from the left in the order of the ranks, for every size and
 * every placement of the ranks on hosts?
 */
bool dtn_emitter_ordered(const struct dtn_emitter *emitter);

#endif
