/* model.h - the emitters, what they cost, and which is taken
 *
 * emitters.c  the table
 * model.c     from what an emitter takes of a rank to nanoseconds
 * models.c    where the ranks of a group are; the model of each group, kept
 * choose.c    the cheapest for a call; model_ways.c all of them
 */
#ifndef DTN_COLL_MODEL_H
#define DTN_COLL_MODEL_H

#include "coll/coll.h"

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

/* ---------------------------------------------------------------- model --- */

/* All that a cost depends on besides the call: the same on every rank. */
struct dtn_model {
    enum dtn_reach reach;
    const struct dtn_tuning *tuning;     /* [DTN_NTUNED], or NULL              */
    double ns[DTENSOR_NCOSTS];    /* of one hop, message, byte: model.c says   */
                                  /* where each comes from                     */
    const int *host;              /* [n] of each position; NULL: all on one    */
    int hosts;                    /* of the group                              */
    int locals;                   /* ranks on the host that has most           */
    bool uneven;                  /* another host has fewer                    */
    double sharers;               /* of `locals`, for one network device       */
    double max_scratch;           /* bytes of a rank for one call              */
    double cache_bytes;           /* of a call; beyond them a byte within a    */
    double uncached;              /* host costs so many times as much          */
    double crowding;              /* ranks for each CPU, at least 1            */
    double congestion;            /* a byte between hosts costs so much more   */
                                  /* for each doubling of those that send at   */
                                  /* once to one                               */
};

/* The constants of a cluster: [tuning], or else the built-in ones. */
void dtn_model_costs(const struct dtensor_cluster *cluster,
                     struct dtn_model *model);

/* How many network devices the ranks of a host have between them. */
int dtn_model_devices(const struct dtensor_cluster *cluster, int host);

/* Ranks for each CPU of the fullest host: they share its time. */
void dtn_model_crowd(struct dtn_model *model, double crowding);

/* The model of a group: made at its first use and kept with the context, by the
 * address of the group's list of ranks, which lives as long.  The second
 * function makes one that is not kept; host[n], filled in here, is part of it.
 * Errors: ENOMEM
 */
int dtn_model_of(const struct dtn_group *group,
                 const struct dtn_model **modelp, struct dtensor_error *err);
int dtn_model_make(const struct dtn_group *group, int host[],
                   struct dtn_model *model, struct dtensor_error *err);

/* What a byte of such a call within a host costs, in prices of one in a cache. */
double dtn_model_stretch(const struct dtn_model *model, double whole);

/* The time of a call by an emitter on the busiest rank, in nanoseconds.  load()
 * uses only what all ranks know, so it is the same on all of them, and they
 * choose by it.  told() also uses what only this rank knows: its own sizes.
 */
void dtn_model_told(const struct dtn_model *model, const struct dtn_call *call,
                    const struct dtn_emitter *emitter,
                    double load[DTENSOR_NCOSTS]);
void dtn_model_load(const struct dtn_model *model, const struct dtn_call *call,
                    const struct dtn_emitter *emitter,
                    double load[DTENSOR_NCOSTS]);
double dtn_model_ns(const struct dtn_model *model,
                    const double load[DTENSOR_NCOSTS]);

/* The most scratch that a rank needs for it, in bytes. */
double dtn_model_scratch(const struct dtn_model *model,
                         const struct dtn_call *call,
                         const struct dtn_emitter *emitter);

/* What was chosen for a call. */
struct dtn_pick {
    const struct dtn_emitter *emitter;
    const struct dtn_emitter *next;      /* the best other algorithm, or NULL  */
    double ns;                    /* by what this rank knows                   */
    double scratch;
    double next_ns;
    bool tuned;                   /* [tuning] says so                          */
};

/* Can it run the call? */
bool dtn_emitter_runs(const struct dtn_emitter *emitter,
                      const struct dtn_call *call,
                      const struct dtn_model *model);

/* The emitter for this call: of those that can run it within max_scratch the one
 * that costs least, if none can the one that needs least of it; what [tuning] says
 * for its size goes before.  Every rank chooses the same.
 */
void dtn_choose(const struct dtn_call *call, const struct dtn_model *model,
                struct dtn_pick *pick);

/* Every emitter that can run the call, cheapest first: how many there are, of
 * which the first `max` are told.
 */
int dtn_model_ways(const struct dtn_call *call, const struct dtn_model *model,
                   struct dtensor_way ways[], int max);

/* Why, in short: "3.1 us < tree: 4.7 us". */
char *dtn_pick_text(const struct dtn_pick *pick, char *buf, size_t size);

#endif
