/* sched.h - a collective as data: one rank's array of steps */
#ifndef DTN_SCHED_SCHED_H
#define DTN_SCHED_SCHED_H

#include "base/reduce.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dtn_box;

/* The memory of a rank, as a schedule sees it.  TMP and ACC are scratch of the
 * schedule: TMP holds elements, ACC holds partial results, which may be wider
 * than elements (struct dtn_reduction).  Offsets and sizes in ACC are counted
 * as if partial results had the size of elements, so byte 12 of every space
 * belongs to element 3 of an f32.  Peers access TMP or ACC, never both.
 */
enum dtn_space { DTN_IN, DTN_OUT, DTN_TMP, DTN_ACC, DTN_NSPACES };

/* A place in the memory of a rank. */
struct dtn_span {
    int rank;                     /* position in the group; -1: each source   */
    enum dtn_space space;         /* IN, OUT, TMP or ACC                      */
    size_t offset;                /* bytes from the start of the space        */
};

/* What a signal says. */
enum dtn_tag {
    DTN_TAG_READY,                /* rendezvous: clear to send, with          */
                                  /* addresses                                */
    DTN_TAG_DATA,                 /* data that was put, or can be read, is    */
                                  /* complete                                 */
    DTN_TAG_EAGER,                /* eager: the payload is the data           */
    DTN_TAG_DONE,                 /* the peer's memory was read; it is free   */
    DTN_NTAGS
};

/* One step of one rank.  Steps run in order.  Only a PUT may still read its
 * source when the next step starts.
 *
 *   op      peer        dst           src            meaning
 *   PUT     receiver    on the peer   own            write bytes, or a box run
 *                                                    by run, to the peer
 *   FLUSH   receiver                                 sources of puts are free
 *   SIGNAL  receiver                  own, if EAGER  append a signal
 *   WAIT    sender      own, if EAGER                take its next signal
 *   COPY                own           any rank's     dst = src
 *   REDUCE              own           any rank's     dst = dst op src
 *   FOLD                own           rank -1        dst = src of rank
 *                                                    terms[0] op src of rank
 *                                                    terms[1] op ...; but term
 *                                                    `own_term`, if not -1, is
 *                                                    `own`
 *   FOLD                own           own            dst = slot 0 op slot 1 op
 *                                                    ...: `terms` slots of
 *                                                    `bytes` one after another;
 *                                                    but term `own_term`, if
 *                                                    not -1, is `own`
 *   SCALE               own                          dst /= divisor
 *   NEUTRAL             own                          dst = neutral element
 *
 * COPY, REDUCE and FOLD convert elements of IN, OUT and TMP to the accumulator
 * type when they move into ACC or into a reduction.  They finalise partial
 * results when they store them in IN, OUT or TMP.  Example: a sum of bf16 is an
 * f32 in ACC; storing it in OUT divides it, for an average, and rounds it.  A
 * finalised value is a result and cannot be a term any more.  PUT and signals
 * do not convert: both ends are in ACC or neither is, unless both types are the
 * same.
 *
 * COPY, REDUCE and FOLD with a `src` on another rank load through a mapped
 * pointer, or read by cross-memory attach.  This needs a transport that maps,
 * the owner's READY before, and a signal to the owner afterwards, which may
 * then reuse or return the memory.  A PUT needs the receiver's READY before.
 * READY names all exposed spaces.  Or it names one: message_bytes bytes from
 * `src` on; for that peer the space begins there.  Source and destination do
 * not overlap, or they are the very same bytes (a call in place).  Then COPY
 * does nothing, because peers may be reading.
 */
enum dtn_op {
    DTN_OP_PUT, DTN_OP_FLUSH, DTN_OP_SIGNAL, DTN_OP_WAIT, DTN_OP_COPY,
    DTN_OP_REDUCE, DTN_OP_FOLD, DTN_OP_SCALE, DTN_OP_NEUTRAL, DTN_NOPS
};

struct dtn_step {
    enum dtn_op op;               /* what to do                               */
    enum dtn_tag tag;             /* SIGNAL, WAIT                             */
    int peer;                     /* position in the group                    */
    int box;                      /* PUT, COPY, REDUCE: index of a box, or -1 */
    int terms;                    /* FOLD of own memory: number of terms      */
    int own_term;                 /* index of the term without slot, or -1    */
    struct dtn_span own;          /* place of that term                       */
    uint64_t match_bits;          /* SIGNAL, WAIT: xored into the             */
                                  /* fingerprint; both sides must have the    */
                                  /* same; mostly 0                           */
    bool is_recv;                 /* SIGNAL, WAIT with match bits. true: data */
                                  /* comes from the peer; false: it goes to   */
                                  /* the peer                                 */
    size_t message_bytes;         /* size of that data; READY: bytes from     */
                                  /* `src` on, 0: to the end of the space     */
    struct dtn_span dst;          /* destination                              */
    struct dtn_span src;          /* source                                   */
    size_t bytes;                 /* size if box is -1                        */
};

/* Part of a space. */
struct dtn_range {
    size_t offset;                /* bytes from its start                     */
    size_t bytes;                 /* size                                     */
};

/* How peers of the same host access exposed buffers in private memory (outside
 * the arena) in the first run of a plan.  Later runs measure and choose.
 */
enum dtn_expose {
    DTN_EXPOSE_CMA,               /* cross-memory attach to the buffer        */
    DTN_EXPOSE_STAGED,            /* through a bounce buffer                  */
    DTN_EXPOSE_STAGED_ONLY        /* bounce buffer in every run: peers need   */
                                  /* pointers                                 */
};

struct dtn_sched {
    int n;                        /* ranks in the group                       */
    int me;                       /* position of this rank                    */
    int divisor;                  /* of SCALE; n unless an emitter sets it    */
    enum dtensor_dtype dtype;     /* of the elements                          */
    struct dtn_reduction reduction;    /* of REDUCE, FOLD, NEUTRAL and of     */
                                       /* copies to or from ACC               */
    const char *name;             /* "allreduce ring", a static string        */
    size_t bytes[DTN_NSPACES];    /* size of each space on this rank, bytes   */
    bool exposed[DTN_NSPACES];    /* peers access this space of this rank     */
    struct dtn_range exposed_range[DTN_NSPACES];   /* only this part; 0       */
                                                   /* bytes: all. No step of  */
                                                   /* this rank crosses the   */
                                                   /* edge of OUT's part      */
    size_t eager_bytes;           /* the longest eager message; else READY    */
    enum dtn_expose expose;       /* how private memory is exposed            */
    int nsteps;                   /* used                                     */
    int nprivate;                 /* more steps, see dtn_sched_private()      */
    int steps_capacity;           /* allocated; -1: out of memory             */
    struct dtn_step *steps;       /* [nsteps + nprivate]                      */
    bool is_private;              /* steps are appended to the private ones   */
    int nboxes, boxes_capacity;   /* used and allocated; -1: out of memory    */
    struct dtn_box *boxes;        /* [nboxes] strides in elements of dtype    */
    bool streams;                 /* devices may signal each other: ranks     */
                                  /* that signal DATA or DONE have exchanged  */
                                  /* READY before any copy or fold            */
    bool lent;                    /* TMP is lent to each run, not kept        */
    int rounds;                   /* rounds of an exchange                    */
    int nterms;                   /* length of `terms`                        */
    int *terms;                   /* [nterms] positions that FOLD of rank -1  */
                                  /* loads from, in order; NULL: all n        */
};

void dtn_sched_init(struct dtn_sched *sched, const char *name, int n, int me,
                    enum dtensor_dtype dtype, enum dtensor_redop redop);
void dtn_sched_fini(struct dtn_sched *sched);

/* Append a step.  Running out of memory is remembered, and _finish reports it,
 * so that emitters read like algorithms.  A step of zero bytes is not appended,
 * unless it is a signal or a wait.
 */
void dtn_sched_put(struct dtn_sched *sched, int peer, struct dtn_span dst,
                   struct dtn_span src, size_t bytes);
void dtn_sched_put_box(struct dtn_sched *sched, int peer, struct dtn_span dst,
                       struct dtn_span src, const struct dtn_box *box);
void dtn_sched_flush(struct dtn_sched *sched, int peer);
void dtn_sched_signal(struct dtn_sched *sched, int peer, enum dtn_tag tag);
void dtn_sched_wait(struct dtn_sched *sched, int peer, enum dtn_tag tag);
void dtn_sched_send_eager(struct dtn_sched *sched, int peer,
                          struct dtn_span src,
                     size_t bytes);                /* up to eager_bytes       */
void dtn_sched_recv_eager(struct dtn_sched *sched, int peer,
                          struct dtn_span dst,
                     size_t bytes);                /* the matching wait       */
void dtn_sched_offer(struct dtn_sched *sched, int peer,
                     struct dtn_span src,
                     size_t bytes);                /* READY for one place     */
void dtn_sched_match(struct dtn_sched *sched, uint64_t match_bits,
                     size_t message_bytes,
                     bool is_recv);                /* sets it in the last     */
                                                   /* step                    */
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
                    struct dtn_span src, size_t bytes);    /* bytes of each   */
                                                           /* source          */
void dtn_sched_fold_slots(struct dtn_sched *sched, struct dtn_span dst,
                          struct dtn_span src, size_t bytes, int slots);
void dtn_sched_fold_with(struct dtn_sched *sched, struct dtn_span dst,
                         struct dtn_span src, size_t bytes,
                         struct dtn_span own);     /* n terms, `me` is own    */
void dtn_sched_scale(struct dtn_sched *sched, struct dtn_span dst,
                     size_t bytes);
void dtn_sched_neutral(struct dtn_sched *sched, struct dtn_span dst,
                       size_t bytes);
void dtn_sched_add(struct dtn_sched *sched,
                   const struct dtn_step *step);           /* as it is        */

/* Peers access only this part of a space of this rank. */
void dtn_sched_expose_range(struct dtn_sched *sched, enum dtn_space space,
                    struct dtn_range range);

/* The steps from here on take the place of those after the last WAIT of READY
 * if OUT of some rank is private memory, of which its READY gives no address.
 * So all ranks expose OUT as a whole, and exchange READY before they move a
 * byte.  TMP is lent to these steps.
 */
void dtn_sched_private(struct dtn_sched *sched);

/* All steps, those for private memory too. */
static inline int dtn_sched_all(const struct dtn_sched *sched)
{
    return sched->nsteps + sched->nprivate;
}

/* The terms of a FOLD of `src` rank -1: their number, and whose term i is. */
static inline int dtn_sched_nterms(const struct dtn_sched *sched)
{
    return sched->terms ? sched->nterms : sched->n;
}

static inline int dtn_sched_term(const struct dtn_sched *sched, int i)
{
    return sched->terms ? sched->terms[i] : i;
}

/* The size of a step, which may have a box. */
size_t dtn_step_bytes(const struct dtn_sched *sched,
                      const struct dtn_step *step);

/* Append the steps of another schedule of the same rank, whose position p is
 * position[p] here.  They are for a simulation: boxes become bytes, and a FOLD
 * of the sources -1 becomes a COPY of each peer's term and a FOLD in own
 * memory.  Offsets stay as they are.
 */
void dtn_sched_append(struct dtn_sched *sched, const struct dtn_sched *more,
                      const int position[]);

/* Memory that is kept for TMP and ACC together, in bytes. */
size_t dtn_sched_scratch(const struct dtn_sched *sched);

/* 0, or ENOMEM if any append failed. */
int dtn_sched_finish(struct dtn_sched *sched, struct dtensor_error *err);

/* Print one step per line, for people and golden tests. */
void dtn_sched_print(const struct dtn_sched *sched, FILE *stream);

/* One step, without its number: "put     -> 1  OUT+64 <- OUT+0  64 bytes". */
char *dtn_step_text(const struct dtn_sched *sched, const struct dtn_step *step,
                    char *buf, size_t size);

#endif
