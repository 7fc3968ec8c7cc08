/* coll.h - L3: collectives as data
 *
 * sched.h     schedules and the checker, for those who include this file
 * sched.c     the schedule: an array of steps; building and printing it
 * check/      the checker: proves a set of schedules, one per rank, right
 * emit/       emitters: pure functions from a description of the call to one
 *             rank's schedule, an algorithm a file; emitters.c is their table
 * exec/       the executor: a schedule made ready, and run over the transports
 * call.c      what the buffers of a collective hold
 * redops.c    reductions made at run time; what a call's reduction is
 * model.c     what an emitter costs on these wires; models.c the model of each
 *             group; choose.c the cheapest for a call, and why; model.h what
 *             they offer
 * reach.c     by which wires the ranks of a group reach each other
 * plans.c     schedules already made, by call
 * coll.c      one call: checks, plan, run
 * request.c   the queue of what was started; start.c: collectives in it
 * message.c   sends and receives; group.c: calls that are made at once
 * fingerprint.c  what a rank is doing, in 64 bits
 *
 * To add a collective or an algorithm: write an emitter, list it in
 * emit/emitters.c, and it is proven by test_check, run by test_coll and shown by
 * dtensor-bench.
 */
#ifndef DTN_COLL_H
#define DTN_COLL_H

#include "coll/sched.h"

/* ------------------------------------------------------------- emitters --- */

/* The public ones, and those that have no struct dtensor_call. */
enum dtn_coll {
    DTN_COLL_ALLREDUCE = DTENSOR_ALLREDUCE,
    DTN_COLL_REDUCE = DTENSOR_REDUCE,
    DTN_COLL_BROADCAST = DTENSOR_BROADCAST,
    DTN_COLL_ALLGATHER = DTENSOR_ALLGATHER,
    DTN_COLL_REDUCE_SCATTER = DTENSOR_REDUCE_SCATTER,
    DTN_COLL_ALL_TO_ALL = DTENSOR_ALL_TO_ALL,
    DTN_COLL_GATHER = DTENSOR_GATHER,
    DTN_COLL_SCATTER = DTENSOR_SCATTER,
    DTN_COLL_BARRIER = DTENSOR_BARRIER,
    DTN_COLL_PAIRS = DTENSOR_NCOLLECTIVES,         /* sends and receives       */
    DTN_COLL_EXCHANGE,                             /* a step of a redistribute */
    DTN_NCOLLS
};

/* PAIRS: what goes between this rank and another.  No padding: it is hashed. */
struct dtn_edge {
    int32_t peer;
    uint32_t sends, receives;     /* 1: something, be it of 0 bytes            */
    uint32_t distance;            /* (peer - this rank) modulo the world size; */
                                  /* edges are sorted by it                    */
    uint64_t sent_salt, received_salt;
    struct dtn_range sent;        /* in IN                                     */
    struct dtn_range received;    /* in OUT                                    */
};

/* A call, the same on every rank but for `me`.  Elements, not bytes. */
struct dtn_call {
    enum dtn_coll coll;
    int n;
    int me;
    int root;
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;
    const struct dtn_made *made;  /* what it is, if it was made at run time    */
    int divisor;                  /* the result is divided by it; 0: by n if   */
                                  /* `redop` is AVG                            */
    bool repro;                   /* the bits must not depend on the algorithm */
    bool ordered;                 /* fold from the left, in order of the ranks */
    size_t count;                 /* as in dtensor.h; beside counts that only  */
                                  /* this rank knows, approximate block size   */
    const size_t *counts;         /* NULL: all blocks are `count`; else [n] of */
                                  /* block r.  ALL_TO_ALL: of those that this  */
                                  /* rank sends.  They lie one after another   */
    const size_t *recv_counts;    /* ALL_TO_ALL: of those that it gets         */
    const size_t *starts;         /* [n + 1] sums of the counts before each;   */
    const size_t *recv_starts;    /* NULL: added up when asked for             */
    const struct dtn_edge *edges; /* PAIRS: one for each peer                  */
    int nedges;
    uint32_t number;              /* of the call over its group, 0: unknown    */
    const int *hosts;             /* [n] the host of each position, numbered   */
                                  /* as they appear: 0 0 1 0 2; NULL: all one  */
};

/* A reduction made at run time.  `hash` is what ranks compare. */
struct dtn_made {
    enum dtensor_redop op;
    unsigned flags;
    uint64_t hash;
    double factor;                /* of a premultiplied sum                    */
    dtensor_reduce_f *fn;         /* or a function of the caller's             */
    void *arg;
};
const struct dtn_made *dtn_made_find(const struct dtensor_ctx *ctx,
                                     enum dtensor_redop op);
void dtn_redops_destroy(struct dtn_redops *redops);

/* For tests: as if that many numbers had been given out. */
void dtn_redops_skip(struct dtensor_ctx *ctx, int numbers);

/* Find the reduction of a call, and the order that it and the context ask for.
 * Errors: EINVAL  none such, or not for this type or mode
 */
int dtn_call_resolve(const struct dtensor_ctx *ctx, struct dtn_call *call,
                     struct dtensor_error *err);
struct dtn_reduction dtn_call_reduction(const struct dtn_call *call);

/* Is it a call that can be made?  n and me are filled in; `rank` is the own one
 * in the world.   Errors: EINVAL, in words
 */
int dtn_call_check(const struct dtn_call *call, int rank, const void *in,
                   const void *out, struct dtensor_error *err);

/* The same but for its buffers. */
int dtn_call_check_form(const struct dtn_call *call, int rank,
                        struct dtensor_error *err);

/* Emit the schedule of rank call->me into *sched (initialised here). */
typedef int dtn_emit_f(const struct dtn_call *call, struct dtn_sched *sched,
                       struct dtensor_error *err);

/* Who in a group loads from whom.  What runs at one runs at all that follow. */
enum dtn_reach {
    DTN_REACH_PUT,                /* perhaps nobody                            */
    DTN_REACH_HOST,               /* ranks of one host, of which there are     */
                                  /* several, some with several ranks          */
    DTN_REACH_MAP                 /* everyone from everyone                    */
};

/* What the buffers of a collective hold: call.c. */
enum dtn_holds { DTN_NONE, DTN_ONE, DTN_EACH };
struct dtn_shape {
    const char *name;
    enum dtn_holds in, out;
    bool in_at_root, out_at_root;   /* elsewhere there is none                 */
    bool reduces;
    bool in_place;                  /* may be                                  */
};
extern const struct dtn_shape dtn_shapes[DTN_NCOLLS];
const char *dtn_coll_name(enum dtn_coll coll);

/* Has some buffer a block for each rank? */
bool dtn_call_blocked(const struct dtn_call *call);

/* Are its counts known to this rank only?  Then decisions that must be the same
 * on all ranks cannot depend on them; predictions of this rank may.
 */
static inline bool dtn_call_private(const struct dtn_call *call)
{
    return (call->coll == DTN_COLL_ALL_TO_ALL && call->counts)
        || call->coll == DTN_COLL_PAIRS;
}

/* Bytes of this rank's IN or OUT; false when no memory could hold them. */
bool dtn_call_bytes_of(const struct dtn_call *call, enum dtn_space space,
                       size_t *bytes);

/* May IN and OUT of so many bytes stand there?  Apart, or in place: where one
 * holds all blocks and the other the own one, that is its place among them.
 */
bool dtn_call_fits(const struct dtn_call *call, const void *in, const void *out,
                   const size_t bytes[]);

/* The most that goes from one rank to another: `count`, or the largest block;
 * SIZE_MAX when only this rank knows.
 */
size_t dtn_call_edge_bytes(const struct dtn_call *call);

/* The size of the call for [tuning]: that of the largest buffer of a rank.  If
 * only this rank knows its counts: the approximate block size that the call
 * gives, times the number of ranks; 0 if it gives none.
 */
size_t dtn_call_bytes(const struct dtn_call *call);

/* The same, but in that case the larger buffer of this rank. */
size_t dtn_call_own_bytes(const struct dtn_call *call);

const char *dtn_algorithm_name(enum dtn_algorithm algorithm);

/* ------------------------------------------------------------- exchange --- */

/* A box of elements that goes from one rank's IN to another's OUT. */
struct dtn_piece {
    int source;                   /* positions in the group                    */
    int receiver;
    size_t src_offset;            /* of its first element, in elements         */
    size_t dst_offset;
    bool accumulate;              /* dst op= src; else dst = src               */
    struct dtn_box box;
};

/* All of one rank's part in an exchange: the pieces it receives and those it
 * sends, each in the order they are to be applied.  Every rank derives both
 * lists from the same description, so they agree pair by pair.
 */
struct dtn_exchange {
    const char *name;             /* static                                    */
    int n;
    int me;
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;     /* of accumulating pieces                    */
    size_t in_count;              /* elements of own IN and OUT                */
    size_t out_count;
    bool neutral;                 /* OUT starts as the neutral element         */
    int scale;                    /* > 1: OUT is divided by it at the end      */
    bool folds;                   /* some piece accumulates, on any rank       */
    bool (*maps)(const void *whose, int position);
    const void *whose;            /* does this rank load from that one?        */
    size_t row_bytes;             /* shortest run put by itself, the same on   */
                                  /* every rank; 0: DTN_ROW_BYTES             */
    size_t window_bytes;          /* the most that is packed for, or unpacked  */
                                  /* from, a peer at a time, the same on every */
                                  /* rank; 0: all there is                     */
    int nreceived;
    const struct dtn_piece *received;
    int nsent;
    const struct dtn_piece *sent;
};

/* Each put costs about as much as copying this many bytes twice: some 100 ns
 * to post a write, some 80 to pack and unpack 256 bytes.
 */
#define DTN_ROW_BYTES 256

/* The shortest run that any transport of the job should put by itself. */
size_t dtn_group_row_bytes(const struct dtn_group *group);

/* Emit it: from ranks that map (mapped[source]) each piece is loaded straight
 * from the source's IN into OUT; from others it is put by the source, run by
 * run, from IN into OUT.  Where runs would be shorter than row_bytes, it is
 * packed in the source's TMP; where they would be so in OUT, or where it
 * accumulates, it goes to the receiver's TMP and is unpacked there, in rounds
 * of what fits the windows: TMP has at most 5 of them for a peer, 3 to unpack and
 * 2 to pack.  Mapping is symmetric; what does not accumulate does not overlap.
 * Terms of an element that go in rounds come in the same one, if the pieces of
 * their sources are alike.
 */
int dtn_emit_exchange(const struct dtn_exchange *exchange,
                      struct dtn_sched *sched, struct dtensor_error *err);
#define DTN_EXCHANGE_WINDOWS 5

/* ------------------------------------------------------------- executor --- */

/* A schedule made ready to run again and again over a group: connected to
 * every peer it names, TMP allocated, nothing left to allocate.
 */
struct dtn_plan;

/* Make it.  Takes over *sched (zeroed) on success. */
int dtn_plan_create(const struct dtn_group *group, struct dtn_sched *sched,
                    struct dtn_plan **planp, struct dtensor_error *err);
void dtn_plan_says(struct dtn_plan *plan, const struct dtn_said *said);
void dtn_plan_destroy(struct dtn_plan *plan);
const struct dtn_sched *dtn_plan_sched(const struct dtn_plan *plan);

/* Connect to the ranks the schedule names, which the first run does otherwise.
 * Collective: yes, these ranks.   Blocks: until connected.
 */
int dtn_plan_connect(struct dtn_plan *plan, struct dtensor_error *err);

/* Run it once.  `fingerprint` is compared with every peer's before its data
 * is taken; see dtn_fingerprint().  Memory that peers must reach and cannot
 * is staged through the context's bounce buffers.
 */
int dtn_plan_run(struct dtn_plan *plan, const void *in, void *out,
                 uint64_t fingerprint, struct dtensor_error *err);

/* The same in pieces: start it - EAGAIN: another run has the bounce buffer that
 * it needs, or a peer is not connected yet - then poll until it returns other
 * than EAGAIN.  Neither waits for a peer: each does what can be done now.
 * One run of a plan at a time; `in` and `out` stay as they are until it is over.
 */
int dtn_plan_start(struct dtn_plan *plan, const void *in, void *out,
                   uint64_t fingerprint, struct dtensor_error *err);
int dtn_plan_poll(struct dtn_plan *plan, struct dtensor_error *err);

/* Have what a run of it with such buffers needs, so that it allocates nothing. */
int dtn_plan_warm(struct dtn_plan *plan, const void *in, void *out,
                  struct dtensor_error *err);

/* A plan of its own for a call, n and me filled in, and its fingerprint; the
 * caller destroys it.
 */
int dtn_call_plan(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_plan **planp, uint64_t *fingerprintp,
                  struct dtensor_error *err);

/* The call of a rank in 64 bits: collective, dtype and reduction in readable
 * form (so that an error can show both sides of a mismatch), and a 51-bit hash
 * of everything else.  Values that are known later are mixed into the hash,
 * each kind with a hash of its own, so that a size is not taken for a number.
 */
uint64_t dtn_fingerprint(enum dtn_coll coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint64_t hash);
uint64_t dtn_fingerprint_dtype(enum dtensor_dtype dtype);  /* the bits of it   */
enum dtn_coll dtn_fingerprint_coll(uint64_t fingerprint);
size_t dtn_fingerprint_size(uint64_t fingerprint);     /* of an element, >= 1  */

enum dtn_mix {
    DTN_MIX_CALL,                /* all that is known when a plan is made     */
    DTN_MIX_NUMBER,              /* of a call over its ranks                  */
    DTN_MIX_BYTES,               /* that go between two ranks                 */
    DTN_MIX_MESSAGE,             /* its count, and those before it            */
    DTN_MIX_TURN                 /* the number of a message between two ranks */
};

/* Different values have different hashes (before they are cut to 51 bits): the
 * finalizer of SplitMix64, 2 multiplications.
 */
static inline uint64_t dtn_fingerprint_hash(enum dtn_mix part, uint64_t value)
{
    value += ((uint64_t)part + 1) * UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* What to xor a fingerprint with for a part of it. */
static inline uint64_t dtn_fingerprint_mix(enum dtn_mix part, uint64_t value)
{
    return dtn_fingerprint_hash(part, value) >> 13;
}

static inline uint64_t dtn_fingerprint_numbered(uint64_t fingerprint,
                                                uint32_t number)
{
    return fingerprint ^ dtn_fingerprint_mix(DTN_MIX_NUMBER, number);
}

/* A call of this rank in numbers, and anyone's in words: ctx->words. */
struct dtn_said dtn_call_said(const struct dtn_group *group,
                              const struct dtn_call *call,
                              uint64_t fingerprint);
char *dtn_said_describe(const struct dtn_said *said, char *buf, size_t size);
bool dtn_said_recall(const struct dtensor_ctx *ctx, uint64_t fingerprint,
                     struct dtn_said *said);
bool dtn_said_numbered(const struct dtensor_ctx *ctx, uint64_t group,
                       uint32_t number, struct dtn_said *said);
extern const struct dtn_coll_words dtn_coll_words;     /* exec/said.c          */

/* Do this rank and that at a position load from each other?  And every pair of
 * the group?
 */
bool dtn_group_maps(const struct dtn_group *group, int position);
bool dtn_group_mapped(const struct dtn_group *group);

/* The name of the wire it uses: "shm", "tcp", ..., or "shm+net" for both. */
const char *dtn_group_wire(const struct dtn_group *group);

/* Check the arguments and carry out the call; n and me are filled in here.
 * The group's ranks array identifies it: it must live as long as the context.
 * Collective, blocks, errors: as the public function of that name.
 */
int dtn_call_run(const struct dtn_group *group, struct dtn_call *call,
                 const void *in, void *out, struct dtensor_error *err);

/* The checks and the plan of a call that is to be made now, and what to do when
 * there is none: the others may have made theirs and wait, so they are told.
 */
struct dtn_cached_plan;
int dtn_call_find(const struct dtn_group *group, struct dtn_call *call,
                  const void *in, void *out, struct dtn_cached_plan **cachedp,
                  struct dtensor_error *err);
int dtn_call_nomem(struct dtensor_ctx *ctx, const char *what, size_t bytes,
                   struct dtensor_error *err);    /* of a message or group */
int dtn_call_give_up(const struct dtn_group *group, int rc,
                     const struct dtensor_error *why,
                     struct dtensor_error *err);

/* ------------------------------------------------------------- requests --- */

/* What is done for a request.  begin and poll: 0, EAGAIN (later), or failed. */
struct dtn_work {
    int (*begin)(struct dtensor_request *request, struct dtensor_error *err);
    int (*poll)(struct dtensor_request *request, struct dtensor_error *err);
    void (*end)(struct dtensor_request *request);    /* over; NULL: nothing    */
};

/* Every kind of request begins with this.  It is memory of malloc() unless
 * kept.  The function that makes a request that is not kept holds the context,
 * and dtensor_wait() releases it.
 */
struct dtensor_request {
    const struct dtn_work *work;
    struct dtensor_ctx *ctx;
    const int *ranks;             /* it takes part with, of the world          */
    int nranks;
    bool kept;                    /* dtensor_wait() does not free it           */
    bool waited;                  /* kept: for the last start of it            */
    bool begun;
    bool done;
    int rc;
    struct dtensor_error err;     /* when rc < 0                               */
    struct dtensor_request *next; /* started after it                          */
};

/* Put it at the end of the queue, and do what can be done now. */
void dtn_request_start(struct dtensor_request *request);

/* Finish all there are: for calls that do not go through the queue. */
int dtn_requests_finish(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Finish them with the failure of the context. */
void dtn_requests_abandon(struct dtensor_ctx *ctx);

/* As dtn_call_run(), but started; a call made ready to be started often. */
int dtn_call_start(const struct dtn_group *group, struct dtn_call *call,
                   const void *in, void *out,
                   struct dtensor_request **requestp,
                   struct dtensor_error *err);
int dtn_persistent_create(const struct dtn_group *group, struct dtn_call *call,
                          const void *in, void *out,
                          struct dtensor_persistent **persistentp,
                          struct dtensor_error *err);

/* ------------------------------------------- messages, groups of calls --- */

/* A send or receive, with a position of the group.  While the context records
 * it is written down only.
 */
struct dtn_message {
    bool sends;
    int peer;
    const void *in;               /* of a send                                 */
    void *out;                    /* of a receive                              */
    size_t count;
    enum dtensor_dtype dtype;
};
int dtn_message(const struct dtn_group *group, struct dtn_message message,
                struct dtensor_error *err);

/* Write calls down from now on (ctx->recorded); one of them; make them all. */
int dtn_group_begin(struct dtensor_ctx *ctx, struct dtensor_error *err);
int dtn_group_record(const struct dtn_group *group,
                     const struct dtn_call *call, const void *in, void *out,
                     struct dtensor_error *err);
int dtn_group_end(struct dtensor_ctx *ctx, struct dtensor_error *err);
void dtn_recorded_destroy(struct dtn_recorded *recorded);

/* NULL is a no-op. */
void dtn_models_destroy(struct dtn_models *models);

/* Free what this room has in a finished context, except its reductions, which
 * the program destroys.
 */
void dtn_coll_fini(struct dtensor_ctx *ctx);

#endif
