/* emitters.h - the emitters, and what each takes of a rank */
#ifndef DTN_SCHED_EMITTERS_H
#define DTN_SCHED_EMITTERS_H

#include "cluster/cluster.h"
#include "sched/call.h"

#include <stdbool.h>
#include <stddef.h>

/* Units of a call: its largest buffer, half of it, the block of one rank. */
enum dtn_measure { DTN_UNIT_NONE, DTN_UNIT_WHOLE, DTN_UNIT_HALF, DTN_UNIT_BLOCK };

/* A number that grows with the ranks: constant + log2n * log2(n), rounded up,
 * + per_peer * (n-1), + not_power_of_two if n is none.
 */
struct dtn_term { double constant, log2n, per_peer, not_power_of_two; };

/* Bytes, as multiples of the whole, of a block and of a chunk. */
struct dtn_amount { struct dtn_term whole, block, chunk; };

/* What a call by an emitter takes of the rank that has most to do. */
struct dtn_weight {
    struct dtn_term hops;         /* signals that wait for one another         */
    struct dtn_term messages;     /* puts and signals that it posts            */
    enum dtn_measure message;     /* size of a message, if it may be eager; a  */
                                  /* longer one is three and one hop more      */
    struct dtn_term each_chunk;   /* more messages, for every chunk            */
    struct {
        enum dtn_measure of;      /* what is cut into chunks                   */
        size_t bytes;             /* of a chunk                                */
        int most;                 /* chunks                                    */
    } chunk;
    struct dtn_amount moved;      /* bytes loaded from peers, or put to them   */
    struct dtn_amount carried;    /* more of them, where messages are eager    */
    struct dtn_amount folded;     /* bytes of terms, read by reductions        */
    struct dtn_amount copied;     /* bytes, within the rank                    */
    struct dtn_amount tmp;        /* bytes of scratch, at most: TMP,           */
    struct dtn_amount caught;     /* of eager messages received,               */
    struct dtn_amount acc;        /* ACC, and                                  */
    struct dtn_amount lifted;     /* of own terms, converted to accumulators   */
    bool neighbours;              /* each rank has one sender, one receiver,   */
                                  /* so that hosts form a ring                 */
    bool incast;                  /* from all others at once, and to all       */
    struct dtn_term largest;      /* with unequal blocks: how often the        */
                                  /* largest passes one rank, or is waited for */
};

/* An emitter for a collective. */
struct dtn_emitter {
    enum dtn_coll coll;
    const char *name;             /* "carry": an algorithm may have several    */
    enum dtn_algorithm algorithm;
    enum dtn_reach needs;         /* the least reach it runs with              */
    size_t max_bytes;             /* limit of dtn_call_edge_bytes()            */
    dtn_emit_f *emit;
    struct dtn_weight weight;     /* over all ranks; of a hierarchy over those */
                                  /* of a host                                 */
    struct dtn_weight rails;      /* of a hierarchy, over the hosts            */
};
extern const struct dtn_emitter dtn_emitters[];  /* emitters.c; emit NULL ends */

/* Does it fold from the left, in the order of the ranks, whatever the size and
 * wherever they are?
 */
bool dtn_emitter_ordered(const struct dtn_emitter *emitter);

#endif
