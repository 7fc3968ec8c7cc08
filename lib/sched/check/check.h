/* check.h - what the files of the checker share
 *
 * check.c     runs all ranks, rounds, deadlocks
 * form.c      whether a step is good by itself
 * steps.c     what each step does to signals and cells
 * state.c     ranks, pairs of ranks, and the words of a violation
 * cells.c     symbolic memory: values, and who may touch them
 */
#ifndef DTN_COLL_CHECK_H
#define DTN_COLL_CHECK_H

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

/* Who acts.  Time of a rank is counted in epochs, from 1; a new one begins
 * after each signal it sends.  The actor has been told of everything that
 * rank q did in epochs up to clock[q]; clock[rank] is its own epoch.
 */
struct dtn_actor {
    int rank;
    const uint32_t *clock;
};

/* One element of a space. */
struct dtn_spot {
    int rank;
    enum dtn_space space;
    int64_t index;
};

struct dtn_cells_rank;

struct dtn_cells {
    int n;
    size_t elem_bytes;
    struct dtn_cells_rank *ranks;
    char why[200];                /* what was wrong, after a false             */
};

/* Errors: ENOMEM.  Fini is due in any case. */
int dtn_cells_init(struct dtn_cells *cells, const struct dtn_sched scheds[],
                   int n, const int64_t alias[], struct dtensor_error *err);
void dtn_cells_fini(struct dtn_cells *cells);

/* The owner fills IN and knows nothing of OUT and TMP: a round begins. */
void dtn_cells_begin(struct dtn_cells *cells, struct dtn_actor owner);

/* Everything that was done to the owner's memory came before now. */
bool dtn_cells_end(struct dtn_cells *cells, struct dtn_actor owner);

bool dtn_cells_read(struct dtn_cells *cells, struct dtn_actor actor,
                    struct dtn_spot spot, struct dtn_cell *value);
bool dtn_cells_write(struct dtn_cells *cells, struct dtn_actor actor,
                     struct dtn_spot spot, const struct dtn_cell *value);

/* One element of a put: into flight from `src`, which is busy until freed,
 * and landed when the receiver has seen a later signal.
 */
bool dtn_cells_launch(struct dtn_cells *cells, struct dtn_actor actor,
                      struct dtn_spot dst, struct dtn_spot src);
void dtn_cells_land(struct dtn_cells *cells, struct dtn_actor receiver,
                    struct dtn_spot dst);
void dtn_cells_free(struct dtn_cells *cells, struct dtn_actor sender,
                    struct dtn_spot src);

/* As it is, without reading it; NULL when outside. */
const struct dtn_cell *dtn_cells_peek(const struct dtn_cells *cells,
                                      struct dtn_spot spot);

/* Spots of one rank: how far b is after a in memory, in elements. */
int64_t dtn_cells_distance(const struct dtn_cells *cells, struct dtn_spot a,
                           struct dtn_spot b);

/* Can it be a term?  *acc = *acc op *term. */
bool dtn_cell_term(struct dtn_cells *cells, const struct dtn_cell *term);
bool dtn_cell_reduce(struct dtn_cells *cells, struct dtn_cell *acc,
                     const struct dtn_cell *term);
bool dtn_cell_scale(struct dtn_cells *cells, struct dtn_cell *acc);
struct dtn_cell dtn_cell_neutral(void);

/* ------------------------------------------------------------ the machine */

struct dtn_check_signal {
    enum dtn_tag tag;
    size_t bytes;
    uint64_t match_bits;
    struct dtn_span from;         /* READY: where the peer's space begins;     */
                                  /* CARRY: what is carried                    */
    int nputs;                    /* this many puts of the pair came before    */
    struct dtn_cell *payload;
    uint32_t clock[];             /* [n] of the sender                         */
};

struct dtn_check_put {
    struct dtn_spot dst;
    struct dtn_spot src;
    struct dtn_box box;
};

/* From one rank to another. */
struct dtn_check_pair {
    struct dtn_check_signal *queue[DTN_QUEUE_DEPTH];
    int head;
    int len;
    int ready_round;              /* the receiver has seen READY of this round */
    size_t base[DTN_NSPACES];     /* from where on, in bytes                   */
    struct dtn_check_put *puts;
    int nputs;
    int capacity;
    int nflushed;
    int nlanded;
};

struct dtn_check_rank {
    int pc;
    int round;                    /* from 1; rounds + 1: done                  */
    uint32_t *clock;              /* [n]                                       */
};

struct dtn_checker {
    const struct dtn_sched *scheds;
    int n;
    int rounds;
    struct dtn_cells cells;
    struct dtn_check_pair *pairs; /* [n][n] from, to                           */
    struct dtn_check_rank *ranks;
    uint32_t *clocks;
    dtn_expect_f *expect;
    const void *arg;
    struct dtensor_error *err;
};

/* EINVAL, with the rank and the step it is at before the words. */
int dtn_check_fail(struct dtn_checker *check, int me, const char *fmt, ...)
    DTN_PRINTF(3, 4);

/* form.c: 0, or what is wrong with the step itself. */
int dtn_check_form(struct dtn_checker *check, int me,
                   const struct dtn_step *step);

/* May bytes go from a space to another as they are? */
bool dtn_check_alike(const struct dtn_checker *check, int me, bool from_acc,
                     bool to_acc);

/* Does the rank itself touch its OUT across the edge of what it shows? */
int dtn_check_edges(struct dtn_checker *check, int me,
                    const struct dtn_step *step);

/* Take one step: 0, EAGAIN when it must wait, or what is wrong with it. */
int dtn_check_step(struct dtn_checker *check, int me,
                   const struct dtn_step *step);

struct dtn_check_pair *dtn_check_pair(struct dtn_checker *check, int from,
                                      int to);
struct dtn_actor dtn_check_actor(const struct dtn_checker *check, int me);

/* Bytes as elements. */
int64_t dtn_check_count(const struct dtn_checker *check, size_t bytes);

void dtn_check_signal_destroy(struct dtn_check_signal *sig);

#endif
