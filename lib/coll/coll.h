/* coll.h - L3: collectives as data
 *
 * sched.c     the schedule: an array of steps; building and printing it
 * check.c     the checker: proves a set of schedules, one per rank, right;
 *             check_steps.c and check_cells.c are its steps and memory
 * carry.c direct.c spread.c ring.c tree.c exchange.c   emitters: pure functions
 *             from a description of the call to one rank's schedule; emit.c and
 *             emit.h cut buffers into blocks for them
 * hierarchy*.c   emitters for groups that span hosts: who is where, and the
 *             collectives of one buffer and of blocks
 * choose.c    which emitter for which call
 * exec_plan.c exec.c   the executor: a schedule made ready, and run over the
 *             transports
 * plans.c     schedules already made, by call
 * coll.c      one call: checks, plan, run
 * fingerprint.c  what a rank is doing, in 32 bits
 *
 * To add a collective or an algorithm: write an emitter, list it in choose.c,
 * and it is proven by test_check, run by test_coll and shown by dtensor-bench.
 */
#ifndef DTN_COLL_H
#define DTN_COLL_H

#include "net/net.h"

/* ------------------------------------------------------------- schedule --- */

/* Every rank's memory, as a schedule sees it.  TMP is scratch that belongs to
 * the schedule.
 */
enum dtn_space { DTN_IN, DTN_OUT, DTN_TMP, DTN_NSPACES };

/* Bytes from `offset` on in a space of the rank at a position of the group. */
struct dtn_span {
    int rank;
    enum dtn_space space;
    size_t offset;
};

/* What a signal says. */
enum dtn_tag {
    DTN_TAG_READY,                /* my buffers are in place: here they are    */
    DTN_TAG_DATA,                 /* what I put, or let you read, is complete  */
    DTN_TAG_CARRY,                /* the payload is the data                   */
    DTN_TAG_DONE,                 /* I have read what I needed of yours        */
    DTN_NTAGS
};

/* One step of one rank.  Steps run in order; only `put` may still be reading
 * its source when the next step starts.
 *
 *   op      peer        dst           src            meaning
 *   PUT     receiver    on the peer   own            write bytes, or a box run
 *                                                    by run, to the peer
 *   FLUSH   receiver                                 sources of puts are free
 *   SIGNAL  receiver                  own, if CARRY  append a signal
 *   WAIT    sender      own, if CARRY                take its next signal
 *   COPY                own           any rank's     dst = src
 *   REDUCE              own           any rank's     dst = dst op src
 *   FOLD                own           rank -1        dst = src of the first of
 *                                                    `terms` op src of the
 *                                                    second op ...
 *   FOLD                own           own            dst = slot 0 op slot 1 op
 *                                                    ...: slots of `bytes` one
 *                                                    after another
 *   SCALE               own                          dst /= divisor (ends AVG)
 *   NEUTRAL             own                          dst = neutral element
 *
 * COPY, REDUCE and FOLD with a `src` on another rank load through a mapped
 * pointer: only where transports map.  They need the owner's READY before and
 * must be followed by a signal to the owner, after which it may reuse or
 * return the memory; a PUT needs the receiver's READY before.  Source and
 * destination do not overlap, or they are the very same bytes (a call in
 * place): such a COPY does nothing at all, so that peers may be reading.
 */
enum dtn_op {
    DTN_OP_PUT, DTN_OP_FLUSH, DTN_OP_SIGNAL, DTN_OP_WAIT, DTN_OP_COPY,
    DTN_OP_REDUCE, DTN_OP_FOLD, DTN_OP_SCALE, DTN_OP_NEUTRAL, DTN_NOPS
};

struct dtn_step {
    enum dtn_op op;
    enum dtn_tag tag;             /* SIGNAL, WAIT                              */
    int peer;                     /* position in the group                     */
    int box;                      /* PUT, COPY, REDUCE: index of a box, or -1  */
    int slots;                    /* FOLD of own memory: how many              */
    struct dtn_span dst;
    struct dtn_span src;
    size_t bytes;                 /* moved, when box is -1                     */
};

struct dtn_sched {
    int n;                        /* ranks in the group                        */
    int me;
    int divisor;                  /* of SCALE: n unless an emitter says else   */
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;
    const char *name;             /* "allreduce ring": static                  */
    size_t bytes[DTN_NSPACES];    /* size of each space on this rank           */
    bool exposed[DTN_NSPACES];    /* peers read or write it on this rank       */
    bool needs_map;               /* some step loads from a peer: set by the   */
                                  /* functions that append it                  */
    int nsteps, steps_capacity;
    struct dtn_step *steps;
    int nboxes, boxes_capacity;
    struct dtn_box *boxes;        /* strides in elements of dtype              */
    int nterms;                   /* positions that FOLD of rank -1 loads from,*/
    int *terms;                   /* in order; NULL: all n                     */
};

void dtn_sched_init(struct dtn_sched *sched, const char *name, int n, int me,
                    enum dtensor_dtype dtype, enum dtensor_redop redop);
void dtn_sched_fini(struct dtn_sched *sched);

/* Append; running out of memory is remembered and reported by _finish, so
 * that emitters read as algorithms.  Zero bytes append nothing (except
 * signals and waits).
 */
void dtn_sched_put(struct dtn_sched *sched, int peer, struct dtn_span dst,
                   struct dtn_span src, size_t bytes);
void dtn_sched_put_box(struct dtn_sched *sched, int peer, struct dtn_span dst,
                       struct dtn_span src, const struct dtn_box *box);
void dtn_sched_flush(struct dtn_sched *sched, int peer);
void dtn_sched_signal(struct dtn_sched *sched, int peer, enum dtn_tag tag);
void dtn_sched_wait(struct dtn_sched *sched, int peer, enum dtn_tag tag);
void dtn_sched_carry(struct dtn_sched *sched, int peer, struct dtn_span src,
                     size_t bytes);                /* bytes <= DTN_CARRY_MAX   */
void dtn_sched_catch(struct dtn_sched *sched, int peer, struct dtn_span dst,
                     size_t bytes);                /* the matching wait        */
void dtn_sched_copy(struct dtn_sched *sched, struct dtn_span dst,
                    struct dtn_span src, size_t bytes);
void dtn_sched_reduce(struct dtn_sched *sched, struct dtn_span dst,
                      struct dtn_span src, size_t bytes);
void dtn_sched_copy_box(struct dtn_sched *sched, struct dtn_span dst,
                        struct dtn_span src, const struct dtn_box *box);
void dtn_sched_reduce_box(struct dtn_sched *sched, struct dtn_span dst,
                          struct dtn_span src, const struct dtn_box *box);
void dtn_sched_terms(struct dtn_sched *sched, const int ranks[], int n);
void dtn_sched_fold(struct dtn_sched *sched, struct dtn_span dst,
                    struct dtn_span src, size_t bytes);    /* of each source   */
void dtn_sched_fold_slots(struct dtn_sched *sched, struct dtn_span dst,
                          struct dtn_span src, size_t bytes, int slots);
void dtn_sched_scale(struct dtn_sched *sched, struct dtn_span dst,
                     size_t bytes);
void dtn_sched_neutral(struct dtn_sched *sched, struct dtn_span dst,
                       size_t bytes);

/* 0, or ENOMEM if any append failed. */
int dtn_sched_finish(struct dtn_sched *sched, struct dtensor_error *err);

/* One step a line, for people and golden tests. */
void dtn_sched_print(const struct dtn_sched *sched, FILE *stream);

/* One step, without its number: "put     -> 1  OUT+64 <- OUT+0  64 bytes". */
char *dtn_step_text(const struct dtn_sched *sched, const struct dtn_step *step,
                    char *buf, size_t size);

/* -------------------------------------------------------------- checker --- */

/* Run the schedules of all n ranks on symbolic elements, `rounds` times in a
 * row, for every order the signals allow, without any transport.  Proves: no
 * deadlock with queues of DTN_QUEUE_DEPTH; no read of a byte before the
 * signal that orders it after its write, no unordered pair of accesses; no
 * access outside a space, or to a space not exposed, or before READY; put
 * sources untouched until flushed; no peer touches a rank's memory after its
 * last step; tags match.  Then calls `expect` for every OUT element.
 *
 * Symbolic element: which ranks' element `index` of IN is in it, as a bit set
 * (reducing the same rank in twice is refused), or undefined.  `tree` is a
 * hash of the order in which they were put together: equal trees, equal bits.
 */
#define DTN_CHECK_RANKS_MAX 256
struct dtn_cell {
    bool defined;
    bool scaled;
    uint32_t ranks[DTN_CHECK_RANKS_MAX / 32];  /* bit r: rank r contributed    */
    int64_t index;                /* of IN; -1: neutral, no rank is in it      */
    uint64_t tree;
};
typedef bool dtn_expect_f(int rank, size_t elem, const struct dtn_cell *cell,
                          const void *arg);

/* 0, or EINVAL with the first violation in words: which rank, step, bytes.
 * alias NULL: IN and OUT are apart; else in place: OUT begins alias[r] bytes
 * after IN on rank r (0 for allreduce; less than 0 for allgather).
 */
int dtn_check(const struct dtn_sched scheds[], int n, int rounds,
              const int64_t alias[], dtn_expect_f *expect, const void *arg,
              struct dtensor_error *err);

/* ------------------------------------------------------------- emitters --- */

enum dtn_coll {
    DTN_COLL_ALLREDUCE, DTN_COLL_REDUCE, DTN_COLL_BROADCAST,
    DTN_COLL_ALLGATHER, DTN_COLL_REDUCE_SCATTER, DTN_COLL_ALL_TO_ALL,
    DTN_COLL_BARRIER, DTN_COLL_EXCHANGE, DTN_NCOLLS
};

/* A call, the same on every rank but for `me`.  Elements, not bytes. */
struct dtn_call {
    enum dtn_coll coll;
    int n;
    int me;
    int root;
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;
    size_t count;                 /* as in dtensor.h                           */
    const size_t *counts;         /* NULL: all blocks are `count`.             */
                                  /* ALLGATHER, REDUCE_SCATTER: [n] of block r */
                                  /* ALL_TO_ALL: [n*n], from i to j at i*n+j   */
                                  /* Blocks lie one after another              */
    const int *hosts;             /* [n] where each position is, any numbers;  */
                                  /* NULL: all on one host                     */
};

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

/* An emitter for a collective. */
struct dtn_emitter {
    enum dtn_coll coll;
    enum dtn_algorithm algorithm;
    enum dtn_reach needs;         /* the least it runs with                    */
    size_t max_bytes;             /* of dtn_call_edge_bytes()                  */
    dtn_emit_f *emit;
};
extern const struct dtn_emitter dtn_emitters[];    /* choose.c; emit NULL ends */

/* The most that goes from one rank to another: `count`, or the largest block. */
size_t dtn_call_edge_bytes(const struct dtn_call *call);

/* The size of the call as [tuning] means it: of the largest buffer of a rank. */
size_t dtn_call_bytes(const struct dtn_call *call);

const char *dtn_coll_name(enum dtn_coll coll);
const char *dtn_algorithm_name(enum dtn_algorithm algorithm);

/* The emitter for this call: what [tuning] says for its size if that can run
 * here, else the built-in choice.
 */
const struct dtn_emitter *dtn_choose(const struct dtn_call *call,
                                     enum dtn_reach reach,
                                     const struct dtn_tuning tuning[]);

/* ------------------------------------------------------------- exchange --- */

/* A box of elements that goes from one rank's IN to another's OUT. */
struct dtn_piece {
    int source;                   /* positions in the group                    */
    int receiver;
    size_t src_offset;            /* of its first element, in elements         */
    size_t dst_offset;
    size_t slot;                  /* where its elements, flat, are put in the  */
                                  /* receiver's TMP: apart from the slots of   */
                                  /* all that the receiver gets from anyone    */
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
    size_t row_bytes;             /* shortest run put by itself, the same on   */
                                  /* every rank; 0: DTN_ROW_BYTES             */
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
 * accumulates, it goes to the receiver's TMP and is unpacked there.  Mapping
 * is symmetric; what does not accumulate does not overlap.
 */
int dtn_emit_exchange(const struct dtn_exchange *exchange, const bool mapped[],
                      struct dtn_sched *sched, struct dtensor_error *err);

/* ------------------------------------------------------------- executor --- */

/* A schedule made ready to run again and again over a group: connected to
 * every peer it names, TMP allocated, nothing left to allocate.
 */
struct dtn_plan;

/* Make it.  Takes over *sched (zeroed) on success.
 * Collective: yes, the ranks the schedule names.   Blocks: until connected.
 */
int dtn_plan_create(const struct dtn_group *group, struct dtn_sched *sched,
                    struct dtn_plan **planp, struct dtensor_error *err);
void dtn_plan_destroy(struct dtn_plan *plan);
const struct dtn_sched *dtn_plan_sched(const struct dtn_plan *plan);

/* Run it once.  `fingerprint` is compared with every peer's before its data
 * is taken; see dtn_fingerprint().  Memory that peers must reach and cannot
 * is staged through the context's bounce buffers.
 */
int dtn_plan_run(struct dtn_plan *plan, const void *in, void *out,
                 uint32_t fingerprint, struct dtensor_error *err);

/* The same in pieces: start it, then poll until it returns other than EAGAIN.  A
 * poll does what can be done without waiting for a peer's signal; it may wait
 * while a peer's queue of signals is full.  One run of a plan at a time; `in` and
 * `out` stay as they are until it is over.
 */
int dtn_plan_start(struct dtn_plan *plan, const void *in, void *out,
                   uint32_t fingerprint, struct dtensor_error *err);
int dtn_plan_poll(struct dtn_plan *plan, struct dtensor_error *err);

/* A plan of its own for a call, n and me filled in, and its fingerprint; the
 * caller destroys it.
 */
int dtn_call_plan(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_plan **planp, uint32_t *fingerprintp,
                  struct dtensor_error *err);

/* What a rank is doing, in 32 bits: collective, dtype and reduction readable
 * (so that both sides of a mismatch can be worded), the rest hashed.
 */
uint32_t dtn_fingerprint(int coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint32_t hash);
char *dtn_fingerprint_words(uint32_t fingerprint, char *buf, size_t size);

/* Can every pair of ranks of the group load from each other? mapped[] (NULL:
 * not wanted) gets it for each position against the own one.
 */
bool dtn_group_mapped(const struct dtn_group *group, bool mapped[]);

/* The same for all pairs, the same on every rank; hosts[] gets the index in the
 * cluster of each position's host.
 */
enum dtn_reach dtn_group_reach(const struct dtn_group *group, int hosts[]);

/* The name of the wire it uses: "shm", "tcp", ..., or "shm+net" for both. */
const char *dtn_group_wire(const struct dtn_group *group);

/* Check the arguments and carry out the call; n and me are filled in here.
 * The group's ranks array identifies it: it must live as long as the context.
 * Collective, blocks, errors: as the public function of that name.
 */
int dtn_call_run(const struct dtn_group *group, struct dtn_call *call,
                 const void *in, void *out, struct dtensor_error *err);

/* Free the context's plans. */
void dtn_plans_destroy(struct dtn_plans *plans);

#endif
