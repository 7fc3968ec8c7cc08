/* check.h - private to the checker
 *
 *     check.c     runs all ranks, rounds, deadlocks
 *     form.c      checks a step by itself
 *     steps.c     what each step does to signals and cells
 *     state.c     ranks, pairs of ranks, and the text of a violation
 *     cells.c     symbolic memory: values, and who may access them
 */
#ifndef DTN_CHECK_CHECK_H
#define DTN_CHECK_CHECK_H

#include "base/box.h"
#include "base/compiler.h"
#include "sched/check.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_step;

/* The rank that acts.  The time of a rank is counted in epochs, from 1; a rank
 * begins a new epoch after each signal it sends.  The actor knows everything
 * that rank q did in epochs up to clock[q]; clock[rank] is its own epoch.
 */
struct dtn_actor {
    int rank;                     /* position in the group                    */
    const uint32_t *clock;        /* [n] vector clock, in epochs              */
};

/* One element of a space. */
struct dtn_spot {
    int rank;                     /* position in the group                    */
    enum dtn_space space;         /* IN, OUT, TMP or ACC                      */
    int64_t index;                /* element in that space                    */
};

struct dtn_cells_rank;

struct dtn_cells {
    int n;                        /* ranks                                    */
    size_t elem_bytes;            /* bytes of an element                      */
    struct dtn_cells_rank *ranks;  /* [n] the memory of each rank             */
    char why[200];                /* the reason, after a function returned    */
                                  /* false                                    */
};

/* Errors: ENOMEM.  Call fini in any case. */
int dtn_cells_init(struct dtn_cells *cells, const struct dtn_sched scheds[],
                   int n, const int64_t alias[], struct dtensor_error *err);
void dtn_cells_fini(struct dtn_cells *cells);

/* A round begins: the owner has filled IN; OUT and TMP are undefined. */
void dtn_cells_begin(struct dtn_cells *cells, struct dtn_actor owner);

/* Did every access to the owner's memory happen before now? */
bool dtn_cells_end(struct dtn_cells *cells, struct dtn_actor owner);

bool dtn_cells_read(struct dtn_cells *cells, struct dtn_actor actor,
                    struct dtn_spot spot, struct dtn_cell *value);
bool dtn_cells_write(struct dtn_cells *cells, struct dtn_actor actor,
                     struct dtn_spot spot, const struct dtn_cell *value);

/* One element of a put.  launch: it is in flight, and `src` is busy until
 * freed.  land: the receiver has seen a later signal.  free: `src` is flushed.
 */
bool dtn_cells_launch(struct dtn_cells *cells, struct dtn_actor actor,
                      struct dtn_spot dst, struct dtn_spot src);
void dtn_cells_land(struct dtn_cells *cells, struct dtn_actor receiver,
                    struct dtn_spot dst);
void dtn_cells_free(struct dtn_cells *cells, struct dtn_actor sender,
                    struct dtn_spot src);

/* The value without an access; NULL if outside of the space. */
const struct dtn_cell *dtn_cells_peek(const struct dtn_cells *cells,
                                      struct dtn_spot spot);

/* Two spots of one rank: the distance from a to b in memory, in elements. */
int64_t dtn_cells_distance(const struct dtn_cells *cells, struct dtn_spot a,
                           struct dtn_spot b);

/* May it be a term of a reduction?  *acc = *acc op *term. */
bool dtn_cell_term(struct dtn_cells *cells, const struct dtn_cell *term);
bool dtn_cell_reduce(struct dtn_cells *cells, struct dtn_cell *acc,
                     const struct dtn_cell *term);
bool dtn_cell_scale(struct dtn_cells *cells, struct dtn_cell *acc);
struct dtn_cell dtn_cell_neutral(void);

/* ------------------------------------------------------------ the machine */

struct dtn_check_signal {
    enum dtn_tag tag;             /* what it says                             */
    size_t bytes;                 /* bytes of the payload                     */
    uint64_t match_bits;          /* of its step                              */
    struct dtn_span from;         /* READY: where the space begins for the    */
                                  /* peer; EAGER: source of the payload       */
    int nputs;                    /* puts of the pair that came before it     */
    struct dtn_cell *payload;     /* [bytes / elem_bytes], or NULL            */
    uint32_t clock[];             /* [n] vector clock of the sender           */
};

struct dtn_check_put {
    struct dtn_spot dst;          /* first element at the receiver            */
    struct dtn_spot src;          /* first element at the sender              */
    struct dtn_box box;           /* what is put                              */
};

/* What goes from one rank to another. */
struct dtn_check_pair {
    int nsignals, nwaits;         /* in a round: of the sender, the receiver  */
    struct dtn_check_signal *queue[DTN_QUEUE_DEPTH];  /* signals that nobody  */
                                                      /* waited for yet, a    */
                                                      /* ring                 */
    int head;                     /* index of the oldest signal               */
    int len;                      /* signals in the queue                     */
    int ready_round;              /* last round in which the receiver saw     */
                                  /* READY                                    */
    size_t base[DTN_NSPACES];     /* where each space begins for the peer,    */
                                  /* bytes                                    */
    struct dtn_check_put *puts;   /* all puts so far                          */
    int nputs;                    /* number of puts                           */
    int capacity;                 /* allocated puts                           */
    int nflushed;                 /* puts whose source is free                */
    int nlanded;                  /* puts that have landed                    */
};

struct dtn_check_rank {
    int pc;                       /* index of the next step                   */
    int round;                    /* from 1; rounds + 1: the rank is done     */
    uint32_t *clock;              /* [n] vector clock, in epochs              */
};

struct dtn_checker {
    const struct dtn_sched *scheds;  /* [n] the schedules to check            */
    int n;                        /* ranks                                    */
    int rounds;                   /* how often the schedules are run          */
    struct dtn_cells cells;       /* the memory of all ranks                  */
    struct dtn_check_pair *pairs;  /* [n][n] by sender and receiver           */
    struct dtn_check_rank *ranks;  /* [n]                                     */
    uint32_t *clocks;             /* [n][n] memory of the clocks              */
    dtn_check_expect_f *expect;   /* checks an element of OUT                 */
    const void *arg;              /* argument of expect                       */
    struct dtensor_error *err;    /* receives the violation                   */
};

/* EINVAL; the message begins with the rank and its step. */
int dtn_check_fail(struct dtn_checker *check, int me, const char *fmt, ...)
    DTN_PRINTF(3, 4);

/* form.c: 0, or the violation of the step by itself. */
int dtn_check_form(struct dtn_checker *check, int me,
                   const struct dtn_step *step);

/* May bytes move between these kinds of spaces without conversion? */
bool dtn_check_alike(const struct dtn_checker *check, int me, bool from_acc,
                     bool to_acc);

/* Does a step of this rank cross the edge of the exposed part of OUT? */
int dtn_check_edges(struct dtn_checker *check, int me,
                    const struct dtn_step *step);

/* Take one step: 0, EAGAIN if it must wait, or the violation. */
int dtn_check_step(struct dtn_checker *check, int me,
                   const struct dtn_step *step);

struct dtn_check_pair *dtn_check_pair(struct dtn_checker *check, int from,
                                      int to);
struct dtn_actor dtn_check_actor(const struct dtn_checker *check, int me);

/* The number of elements in so many bytes. */
int64_t dtn_check_count(const struct dtn_checker *check, size_t bytes);

void dtn_check_signal_destroy(struct dtn_check_signal *sig);

#endif
