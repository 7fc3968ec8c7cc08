/* sched.c - the schedule: what one rank does, as data
 *
 * A collective is an array of steps for each rank.  This is all that rank 1 of
 * 2 does in an allreduce of two f32, with one signal each way:
 *
 *     allreduce eager: rank 1 of 2, f32 sum, IN 8 OUT 8 TMP 8
 *       0 signal  -> 0  EAGER <- IN+0  8 bytes
 *       1 wait    <- 0  EAGER -> TMP+0  8 bytes
 *       2 fold    OUT+0 <- TMP+0  1 slots of 8 bytes with IN+0 as term 1
 *
 * A schedule is data, so it can be checked (check/), run (coll/exec/) and
 * printed (print.c).
 */
#include "sched/sched.h"
#include "base/array.h"
#include "base/box.h"
#include "base/error.h"
#include "base/reduce.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void dtn_sched_init(struct dtn_sched *sched, const char *name, int n, int me,
                    enum dtensor_dtype dtype, enum dtensor_redop redop)
{
    memset(sched, 0, sizeof *sched);
    sched->name = name;
    sched->n = n;
    sched->me = me;
    sched->eager_bytes = DTN_EAGER_MAX;
    sched->divisor = n;
    sched->dtype = dtype;
    sched->reduction = dtn_reduction(dtype, redop, n);
}

void dtn_sched_fini(struct dtn_sched *sched)
{
    free(sched->steps);
    free(sched->boxes);
    free(sched->terms);
    memset(sched, 0, sizeof *sched);
}

/* --------------------------------------------------------------- building */

/* Make room for one more element in an array of `count`; false: not enough
 * memory.  A capacity of -1 remembers the failure: nothing is appended any
 * more.
 */
static bool sched_grow(void *arrayp, int count, int *capacity, size_t size)
{
    if (*capacity >= 0 && !dtn_array_reserve(arrayp, capacity, count + 1, size))
        *capacity = -1;
    return *capacity >= 0;
}

static void sched_push(struct dtn_sched *sched, const struct dtn_step *step)
{
    const int n = dtn_sched_all(sched);

    if (!sched_grow(&sched->steps, n, &sched->steps_capacity, sizeof *step))
        return;
    sched->steps[n] = *step;
    if (sched->is_private)
        sched->nprivate++;
    else
        sched->nsteps++;
}

void dtn_sched_private(struct dtn_sched *sched)
{
    sched->is_private = sched->lent = true;
}

static bool box_equal(const struct dtn_box *a, const struct dtn_box *b)
{
    const size_t bytes = (size_t)a->ndim * sizeof a->size[0];

    return a->ndim == b->ndim && memcmp(a->size, b->size, bytes) == 0
        && memcmp(a->dst_stride, b->dst_stride, bytes) == 0
        && memcmp(a->src_stride, b->src_stride, bytes) == 0;
}

/* The index of a box in the schedule, or -1 if out of memory.  The boxes of
 * regular shards are equal: equal boxes in a row are stored once.
 */
static int sched_push_box(struct dtn_sched *sched, const struct dtn_box *box)
{
    if (sched->nboxes > 0 && box_equal(&sched->boxes[sched->nboxes - 1], box))
        return sched->nboxes - 1;
    if (!sched_grow(&sched->boxes, sched->nboxes, &sched->boxes_capacity,
                    sizeof *box)) {
        sched->steps_capacity = -1;
        return -1;
    }
    sched->boxes[sched->nboxes] = *box;
    return sched->nboxes++;
}

void dtn_sched_put(struct dtn_sched *sched, int peer, struct dtn_span dst,
                   struct dtn_span src, size_t bytes)
{
    if (bytes > 0)
        sched_push(sched, &(struct dtn_step){ .op = DTN_OP_PUT, .peer = peer,
                   .box = -1, .dst = dst, .src = src, .bytes = bytes });
}

void dtn_sched_put_box(struct dtn_sched *sched, int peer, struct dtn_span dst,
                       struct dtn_span src, const struct dtn_box *box)
{
    struct dtn_step step = { .op = DTN_OP_PUT, .peer = peer, .dst = dst,
                             .src = src };

    if (dtn_box_count(box) == 0)
        return;
    step.box = sched_push_box(sched, box);
    sched_push(sched, &step);
}

void dtn_sched_flush(struct dtn_sched *sched, int peer)
{
    sched_push(sched, &(struct dtn_step){ .op = DTN_OP_FLUSH, .peer = peer,
               .box = -1 });
}

void dtn_sched_signal(struct dtn_sched *sched, int peer, enum dtn_tag tag)
{
    sched_push(sched, &(struct dtn_step){ .op = DTN_OP_SIGNAL, .tag = tag,
               .peer = peer, .box = -1 });
}

void dtn_sched_wait(struct dtn_sched *sched, int peer, enum dtn_tag tag)
{
    sched_push(sched, &(struct dtn_step){ .op = DTN_OP_WAIT, .tag = tag,
               .peer = peer, .box = -1 });
}

void dtn_sched_send_eager(struct dtn_sched *sched, int peer,
                          struct dtn_span src,
                     size_t bytes)
{
    sched_push(sched, &(struct dtn_step){ .op = DTN_OP_SIGNAL,
               .tag = DTN_TAG_EAGER, .peer = peer, .box = -1, .src = src,
               .bytes = bytes });
}

void dtn_sched_recv_eager(struct dtn_sched *sched, int peer,
                          struct dtn_span dst,
                     size_t bytes)
{
    sched_push(sched, &(struct dtn_step){ .op = DTN_OP_WAIT,
               .tag = DTN_TAG_EAGER, .peer = peer, .box = -1, .dst = dst,
               .bytes = bytes });
}

void dtn_sched_offer(struct dtn_sched *sched, int peer, struct dtn_span src,
                     size_t bytes)
{
    sched_push(sched, &(struct dtn_step){ .op = DTN_OP_SIGNAL,
               .tag = DTN_TAG_READY, .peer = peer, .box = -1,
               .message_bytes = bytes, .src = src });
}

void dtn_sched_match(struct dtn_sched *sched, uint64_t match_bits,
                     size_t message_bytes,
                    bool is_recv)
{
    struct dtn_step *last;

    if (sched->nsteps == 0 || sched->steps_capacity < 0)
        return;
    last = &sched->steps[sched->nsteps - 1];
    last->match_bits = match_bits;
    last->message_bytes = message_bytes;
    last->is_recv = is_recv;
}

/* COPY and REDUCE: `peer` is the owner of the source. */
static void sched_move(struct dtn_sched *sched, enum dtn_op op,
                       struct dtn_span dst, struct dtn_span src, size_t bytes,
                       const struct dtn_box *box)
{
    struct dtn_step step = { .op = op, .peer = src.rank, .box = -1,
                             .dst = dst, .src = src, .bytes = bytes };

    if (box ? dtn_box_count(box) == 0 : bytes == 0)
        return;
    if (box)
        step.box = sched_push_box(sched, box);
    sched_push(sched, &step);
}

void dtn_sched_copy(struct dtn_sched *sched, struct dtn_span dst,
                    struct dtn_span src, size_t bytes)
{
    sched_move(sched, DTN_OP_COPY, dst, src, bytes, NULL);
}

void dtn_sched_reduce(struct dtn_sched *sched, struct dtn_span dst,
                      struct dtn_span src, size_t bytes)
{
    sched_move(sched, DTN_OP_REDUCE, dst, src, bytes, NULL);
}

void dtn_sched_copy_box(struct dtn_sched *sched, struct dtn_span dst,
                        struct dtn_span src, const struct dtn_box *box)
{
    sched_move(sched, DTN_OP_COPY, dst, src, 0, box);
}

void dtn_sched_reduce_box(struct dtn_sched *sched, struct dtn_span dst,
                          struct dtn_span src, const struct dtn_box *box)
{
    sched_move(sched, DTN_OP_REDUCE, dst, src, 0, box);
}

void dtn_sched_terms(struct dtn_sched *sched, const int ranks[], int n)
{
    sched->terms = malloc((size_t)n * sizeof *ranks);
    if (!sched->terms) {
        sched->steps_capacity = -1;
        return;
    }
    memcpy(sched->terms, ranks, (size_t)n * sizeof *ranks);
    sched->nterms = n;
}

static void sched_fold(struct dtn_sched *sched, struct dtn_step step)
{
    step.op = DTN_OP_FOLD;
    step.peer = step.box = -1;
    if (step.bytes == 0)
        return;
    sched_push(sched, &step);
}

void dtn_sched_fold(struct dtn_sched *sched, struct dtn_span dst,
                    struct dtn_span src, size_t bytes)
{
    sched_fold(sched, (struct dtn_step){ .dst = dst, .src = src,
               .terms = src.rank < 0 ? 0 : sched->n, .own_term = -1,
               .bytes = bytes });
}

void dtn_sched_fold_slots(struct dtn_sched *sched, struct dtn_span dst,
                          struct dtn_span src, size_t bytes, int slots)
{
    sched_fold(sched, (struct dtn_step){ .dst = dst, .src = src,
               .terms = slots, .own_term = -1, .bytes = bytes });
}

void dtn_sched_fold_with(struct dtn_sched *sched, struct dtn_span dst,
                         struct dtn_span src, size_t bytes,
                         struct dtn_span own)
{
    sched_fold(sched, (struct dtn_step){ .dst = dst, .src = src,
               .terms = sched->n, .own_term = sched->me, .own = own,
               .bytes = bytes });
}

void dtn_sched_scale(struct dtn_sched *sched, struct dtn_span dst,
                     size_t bytes)
{
    if (bytes > 0)
        sched_push(sched, &(struct dtn_step){ .op = DTN_OP_SCALE, .peer = -1,
                   .box = -1, .dst = dst, .bytes = bytes });
}

void dtn_sched_expose_range(struct dtn_sched *sched, enum dtn_space space,
                    struct dtn_range range)
{
    sched->exposed[space] = range.bytes > 0;
    sched->exposed_range[space] = range;
}

void dtn_sched_neutral(struct dtn_sched *sched, struct dtn_span dst,
                       size_t bytes)
{
    if (bytes > 0)
        sched_push(sched, &(struct dtn_step){ .op = DTN_OP_NEUTRAL, .peer = -1,
                   .box = -1, .dst = dst, .bytes = bytes });
}

void dtn_sched_add(struct dtn_sched *sched, const struct dtn_step *step)
{
    sched_push(sched, step);
}

/* Load the terms of a fold, which then is one of own memory. */
static void append_loads(struct dtn_sched *sched, const struct dtn_sched *more,
                         const int position[], struct dtn_step *fold)
{
    const int n = dtn_sched_nterms(more);
    struct dtn_step load = *fold;

    load.op = DTN_OP_COPY;
    for (int t = 0; t < n; t++) {
        const int from = dtn_sched_term(more, t);

        load.src.rank = position[from];
        if (from != more->me)
            sched_push(sched, &load);
    }
    fold->src.rank = sched->me;
    fold->terms = n;
}

void dtn_sched_append(struct dtn_sched *sched, const struct dtn_sched *more,
                      const int position[])
{
    for (int s = 0; s < more->nsteps; s++) {
        struct dtn_step step = more->steps[s];

        if (step.op <= DTN_OP_WAIT)
            step.peer = position[step.peer];
        else if (step.src.rank >= 0)
            step.src.rank = position[step.src.rank];
        if (step.op == DTN_OP_FOLD && step.src.rank < 0)
            append_loads(sched, more, position, &step);
        step.bytes = dtn_step_bytes(more, &step);
        step.box = -1;
        sched_push(sched, &step);
    }
}

size_t dtn_step_bytes(const struct dtn_sched *sched,
                      const struct dtn_step *step)
{
    return step->box < 0 ? step->bytes
         : (size_t)dtn_box_count(&sched->boxes[step->box])
           * dtensor_dtype_size(sched->dtype);
}

size_t dtn_sched_scratch(const struct dtn_sched *sched)
{
    const size_t line = DTN_CACHE_LINE;
    size_t tmp = sched->lent ? 0 : sched->bytes[DTN_TMP];
    size_t acc = sched->bytes[DTN_ACC];

    if (tmp > 0 && acc > 0)                    /* ACC begins on a cache line  */
        tmp = (tmp + line - 1) / line * line;
    return tmp + acc * dtn_reduction_ratio(&sched->reduction);
}

int dtn_sched_finish(struct dtn_sched *sched, struct dtensor_error *err)
{
    if (sched->steps_capacity >= 0)
        return 0;
    return dtn_fail_nomem(err, sched->name, 2 * (size_t)dtn_sched_all(sched)
                          * sizeof *sched->steps);
}
