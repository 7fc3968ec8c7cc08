/* emitters.h - the emitters, and what each takes of a rank */
#ifndef DTN_SCHED_EMITTERS_H
#define DTN_SCHED_EMITTERS_H

#include "cluster/cluster.h"
#include "sched/call.h"

#include <stdbool.h>
#include <stddef.h>

/* Units of a call: its largest buffer, half of it, what is one rank's. */
enum dtn_measure { DTN_UNIT_NONE, DTN_UNIT_WHOLE, DTN_UNIT_HALF, DTN_UNIT_BLOCK };

/* A number that grows with the ranks: one + levels * log2(n), rounded up, +
 * others * (n-1), + odd if n is no power of two.
 */
struct dtn_term { double one, levels, others, odd; };

/* Bytes, as so many wholes, blocks and chunks. */
struct dtn_amount { struct dtn_term whole, block, chunk; };

/* What a call by an emitter takes of the rank that has most to do. */
struct dtn_weight {
    struct dtn_term hops;         /* signals, each after the last has come     */
    struct dtn_term messages;     /* puts and signals that it hands over       */
    enum dtn_measure message;        /* of how much each is that goes with a      */
                                  /* signal if it fits; longer ones are three  */
                                  /* and take one hop more                     */
    struct dtn_term each_chunk;   /* more of them, for every chunk             */
    struct { enum dtn_measure of; size_t bytes; int most; } chunk;
    struct dtn_amount moved;      /* loaded from peers, or put to them         */
    struct dtn_amount carried;    /* more of it, where it goes with signals    */
    struct dtn_amount folded;     /* terms read by reductions                  */
    struct dtn_amount copied;     /* within the rank                           */
    struct dtn_amount tmp;        /* scratch, at most: TMP,                    */
    struct dtn_amount caught;     /* what comes with signals, if it does,      */
    struct dtn_amount acc;        /* ACC, and                                  */
    struct dtn_amount lifted;     /* more of it for own terms that are lifted  */
    bool neighbours;              /* to one rank, from one: hosts lie in a row */
    bool fan;                     /* to all others at once, and from all       */
    struct dtn_term largest;      /* of unequal blocks: how often the largest  */
                                  /* goes through one rank, or is waited for   */
};

/* An emitter for a collective. */
struct dtn_emitter {
    enum dtn_coll coll;
    const char *name;             /* "carry": an algorithm may have several    */
    enum dtn_algorithm algorithm;
    enum dtn_reach needs;         /* the least it runs with                    */
    size_t max_bytes;             /* of dtn_call_edge_bytes()                  */
    dtn_emit_f *emit;
    struct dtn_weight weight;     /* over all ranks; of a hierarchy those of a */
    struct dtn_weight rails;      /* host, and this over the hosts             */
};
extern const struct dtn_emitter dtn_emitters[];  /* emitters.c; emit NULL ends */

/* Does it fold from the left, in the order of the ranks, whatever the size and
 * wherever they are?
 */
bool dtn_emitter_ordered(const struct dtn_emitter *emitter);

#endif
