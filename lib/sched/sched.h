/* sched.h - a collective as data: one rank's array of steps */
#ifndef DTN_SCHED_SCHED_H
#define DTN_SCHED_SCHED_H

#include "base/reduce.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dtn_box;

/* Every rank's memory, as a schedule sees it.  TMP and ACC are scratch that
 * belongs to the schedule: TMP holds elements, ACC partial results, which may
 * be wider (struct dtn_reduction).  Offsets and sizes of ACC are counted as if
 * they were not, so that byte 12 of every space belongs to element 3 of an f32.
 * Of TMP and ACC peers reach one at most.
 */
enum dtn_space { DTN_IN, DTN_OUT, DTN_TMP, DTN_ACC, DTN_NSPACES };

/* Bytes from `offset` on in a space of the rank at a position of the group. */
struct dtn_span {
    int rank;
    enum dtn_space space;
    size_t offset;
};

/* What a signal says. */
enum dtn_tag {
    DTN_TAG_READY,                /* rendezvous: clear to send, and where to   */
    DTN_TAG_DATA,                 /* what was put, or may be read, is complete */
    DTN_TAG_EAGER,                /* the payload is the data                   */
    DTN_TAG_DONE,                 /* the peer's memory was read: it is free    */
    DTN_NTAGS
};

/* One step of one rank.  Steps run in order; only a PUT may still
 * read its source when the next step starts.
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
 *                                                    after another; but term
 *                                                    `own_term`, if not -1, is
 *                                                    `own` and has no slot
 *   SCALE               own                          dst /= divisor
 *   NEUTRAL             own                          dst = neutral element
 *
 * COPY, REDUCE and FOLD convert elements to the accumulator type when they go from IN,
 * OUT and TMP into ACC or into a reduction, and finalise them when they go from there
 * into IN, OUT or TMP: a sum of bf16 in ACC is an f32; storing it in OUT divides it, for
 * an average, and rounds it.  What was finalised is a result and no term any more.
 * PUT and signals do not convert, so both their ends are ACC or neither is, unless both
 * types are the same.
 *
 * COPY, REDUCE and FOLD with a `src` on another rank load through a mapped pointer, or
 * read by cross-memory attach: only where transports map.  They need the owner's READY
 * before, and after them a signal to the owner, who may then reuse or return the
 * memory.  A PUT needs the receiver's READY before.  READY names all exposed spaces; or
 * one, from `src` on, with message_bytes bytes, which for that peer begins there.
 * Source and destination do not overlap, or they are the very same bytes (a call in
 * place): then COPY does nothing at all, because peers may be reading.
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
    int terms;                    /* FOLD of own memory: number of terms       */
    int own_term;                 /* index of the term that has no slot, or -1 */
    struct dtn_span own;          /* where that term is                        */
    uint64_t match_bits;          /* SIGNAL, WAIT: what both sides must agree  */
                                  /* on beyond the call, xored into the        */
                                  /* fingerprint; mostly 0                     */
    bool is_recv;                 /* SIGNAL, WAIT with match bits: data comes  */
                                  /* from the peer, else it goes to the peer   */
    size_t message_bytes;         /* of that data; READY: bytes from `src` on, */
                                  /* 0: to the end of the space                */
    struct dtn_span dst;
    struct dtn_span src;
    size_t bytes;                 /* moved, when box is -1                     */
};

/* Part of a space, in bytes. */
struct dtn_range {
    size_t offset;
    size_t bytes;
};

/* How peers access exposed buffers that are private memory (outside the arena) of a
 * process of their host: in the first run; later runs measure and choose.
 */
enum dtn_expose {
    DTN_EXPOSE_CMA,               /* by cross-memory attach, where they are    */
    DTN_EXPOSE_STAGED,            /* in a bounce buffer                        */
    DTN_EXPOSE_STAGED_ONLY        /* in every run: they use pointers           */
};

struct dtn_sched {
    int n;                        /* ranks in the group                        */
    int me;                       /* own position                              */
    int divisor;                  /* of SCALE: n unless an emitter says else   */
    enum dtensor_dtype dtype;
    struct dtn_reduction reduction;    /* of REDUCE, FOLD, NEUTRAL and copies  */
                                  /* to or from ACC                            */
    const char *name;             /* "allreduce ring": static                  */
    size_t bytes[DTN_NSPACES];    /* size of each space on this rank           */
    bool exposed[DTN_NSPACES];    /* peers read or write it on this rank, only */
    struct dtn_range exposed_range[DTN_NSPACES];   /* here; 0 bytes: anywhere. */
                                  /* An own step is inside of OUT's range or   */
                                  /* outside, never across its edge            */
    bool needs_map;               /* some step loads from a peer: set by the   */
                                  /* functions that append it                  */
    enum dtn_expose expose;       /* how private memory is exposed             */
    int nsteps, steps_capacity;
    struct dtn_step *steps;       /* [nsteps]                                  */
    int nboxes, boxes_capacity;
    struct dtn_box *boxes;        /* [nboxes] strides in elements of dtype     */
    int rounds;                   /* of an exchange                            */
    int nterms;                   /* positions that FOLD of rank -1 loads from,*/
    int *terms;                   /* [nterms] in order; NULL: all n            */
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
void dtn_sched_send_eager(struct dtn_sched *sched, int peer, struct dtn_span src,
                     size_t bytes);                /* bytes <= DTN_EAGER_MAX   */
void dtn_sched_recv_eager(struct dtn_sched *sched, int peer, struct dtn_span dst,
                     size_t bytes);                /* the matching wait        */
void dtn_sched_offer(struct dtn_sched *sched, int peer,
                     struct dtn_span src,
                     size_t bytes);                /* READY, from there on     */
void dtn_sched_match(struct dtn_sched *sched, uint64_t match_bits,
                     size_t message_bytes,
                     bool is_recv);                /* the last signal or wait  */
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
void dtn_sched_fold_with(struct dtn_sched *sched, struct dtn_span dst,
                         struct dtn_span src, size_t bytes,
                         struct dtn_span own);     /* n terms, `me` is own     */
void dtn_sched_scale(struct dtn_sched *sched, struct dtn_span dst,
                     size_t bytes);
void dtn_sched_neutral(struct dtn_sched *sched, struct dtn_span dst,
                       size_t bytes);

/* Peers touch this part of a space of this rank. */
void dtn_sched_expose_range(struct dtn_sched *sched, enum dtn_space space,
                    struct dtn_range range);

/* Memory that TMP and ACC take together. */
size_t dtn_sched_scratch(const struct dtn_sched *sched);

/* 0, or ENOMEM if any append failed. */
int dtn_sched_finish(struct dtn_sched *sched, struct dtensor_error *err);

/* One step a line, for people and golden tests. */
void dtn_sched_print(const struct dtn_sched *sched, FILE *stream);

/* One step, without its number: "put     -> 1  OUT+64 <- OUT+0  64 bytes". */
char *dtn_step_text(const struct dtn_sched *sched, const struct dtn_step *step,
                    char *buf, size_t size);

#endif
