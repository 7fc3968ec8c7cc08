/* steps.c - what each step means to the checker
 *
 * A table has one function for each operation.  A step is first checked by
 * itself (form.c), then against the state: access to a peer's memory needs the
 * peer's READY in this round.  Example: rank 2's "copy OUT+8 <- 1:IN+0  8
 * bytes" of f32 reads two cells of rank 1 and writes two cells of rank 2.  It
 * fails with "no READY from rank 1 before" if rank 2 has not waited for one.
 */
#include "base/array.h"
#include "base/box.h"
#include "base/error.h"
#include "base/reduce.h"
#include "sched/check.h"
#include "sched/check/check.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The first element of a span; a peer's space begins where its READY said. */
static struct dtn_spot check_spot(struct dtn_checker *check, int me,
                                  struct dtn_span span)
{
    size_t offset = span.offset;

    if (span.rank >= 0 && span.rank != me)
        offset += dtn_check_pair(check, span.rank, me)->base[span.space];
    return (struct dtn_spot){ span.rank, span.space,
        (int64_t)(offset / check->cells.elem_bytes) };
}

/* ---------------------------------------------------------------- readiness */

/* May `me` access the owner's memory?  Only between the owner's READY and its
 * last step.
 */
static int check_remote(struct dtn_checker *check, int me, int owner)
{
    int round = check->ranks[me].round;

    if (owner == me)
        return 0;
    if (dtn_check_pair(check, owner, me)->ready_round != round)
        return dtn_check_fail(check, me, "no READY from rank %d before", owner);
    if (check->ranks[owner].round != round)
        return dtn_check_fail(check, me, "rank %d may have returned already",
                          owner);
    return 0;
}

static int check_cells_said(struct dtn_checker *check, int me, bool good)
{
    return good ? 0 : dtn_check_fail(check, me, "%s", check->cells.why);
}

/* ------------------------------------------------------------ local steps */

/* What a step moves: its box, or `bytes` contiguous bytes. */
static struct dtn_box step_box(const struct dtn_checker *check, int me,
                               const struct dtn_step *step)
{
    if (step->box >= 0)
        return check->scheds[me].boxes[step->box];
    return (struct dtn_box){ 1, { dtn_check_count(check, step->bytes) },
                             { 1 }, { 1 } };
}

/* Source and destination are the same bytes (*same), or apart; to overlap is an
 * error.
 */
static int check_overlap(struct dtn_checker *check, int me, struct dtn_spot dst,
                         struct dtn_spot src, int64_t count, bool *same)
{
    int64_t distance;

    *same = false;
    if (src.rank != me)
        return 0;
    distance = dtn_cells_distance(&check->cells, src, dst);
    *same = distance == 0;
    if (distance != 0 && distance < count && -distance < count)
        return dtn_check_fail(check, me, "source and destination overlap");
    return 0;
}

/* Read a term: an element or a partial result. */
static bool check_term(struct dtn_checker *check, int me, struct dtn_spot src,
                       struct dtn_cell *term)
{
    return dtn_cells_read(&check->cells, dtn_check_actor(check, me), src, term)
        && dtn_cell_term(&check->cells, term);
}

/* Store the result of a reduction: unchanged in ACC, finalised elsewhere. */
static bool check_leave(struct dtn_checker *check, int me, struct dtn_spot dst,
                        struct dtn_cell *acc)
{
    if (dst.space != DTN_ACC
        && dtn_reduction_finalises(&check->scheds[me].reduction))
        acc->finalised = true;
    return dtn_cells_write(&check->cells, dtn_check_actor(check, me), dst, acc);
}

/* One element of COPY and REDUCE. */
static bool check_move_one(struct dtn_checker *check, int me, bool reduce,
                           struct dtn_spot dst, struct dtn_spot src)
{
    struct dtn_cells *cells = &check->cells;
    struct dtn_actor actor = dtn_check_actor(check, me);
    struct dtn_cell term, acc;

    if (reduce)
        return check_term(check, me, src, &term)
            && check_term(check, me, dst, &acc)
            && dtn_cell_reduce(cells, &acc, &term)
            && check_leave(check, me, dst, &acc);
    if ((src.space == DTN_ACC) != (dst.space == DTN_ACC))
        return check_term(check, me, src, &term)
            && check_leave(check, me, dst, &term);
    return dtn_cells_read(cells, actor, src, &term)
        && dtn_cells_write(cells, actor, dst, &term);
}

static int step_move(struct dtn_checker *check, int me,
                     const struct dtn_step *step)
{
    struct dtn_box box = step_box(check, me, step);
    struct dtn_walk walk = { .box = &box };
    struct dtn_spot dst = check_spot(check, me, step->dst), to = dst;
    struct dtn_spot src = check_spot(check, me, step->src), from = src;
    bool reduce = step->op == DTN_OP_REDUCE, same = false;
    int rc = check_remote(check, me, src.rank);

    if (rc == 0 && step->box < 0)
        rc = check_overlap(check, me, dst, src, box.size[0], &same);
    if (rc != 0 || (same && !reduce) || dtn_box_count(&box) == 0)
        return rc;
    do {
        to.index = dst.index + walk.dst;
        from.index = src.index + walk.src;
        if (!check_move_one(check, me, reduce, to, from))
            return check_cells_said(check, me, false);
    } while (dtn_walk_next(&walk));
    return 0;
}

/* The number of terms of a FOLD. */
static int fold_count(const struct dtn_checker *check, int me,
                      const struct dtn_step *step)
{
    return step->src.rank >= 0 ? step->terms
                               : dtn_sched_nterms(&check->scheds[me]);
}

/* Source q of FOLD: the same place on the q-th rank, or slot q of this rank. */
static struct dtn_spot fold_source(struct dtn_checker *check, int me,
                                   const struct dtn_step *step, int q)
{
    struct dtn_spot spot = check_spot(check, me, step->src);

    if (q == step->own_term)
        return check_spot(check, me, step->own);
    if (spot.rank < 0) {
        struct dtn_span src = step->src;

        src.rank = dtn_sched_term(&check->scheds[me], q);
        return check_spot(check, me, src);
    }
    if (step->own_term >= 0 && q > step->own_term)
        q--;
    spot.rank = me;
    spot.index += q * dtn_check_count(check, step->bytes);
    return spot;
}

/* Element `i` of FOLD. */
static bool check_fold_one(struct dtn_checker *check, int me,
                           const struct dtn_step *step, int64_t i)
{
    struct dtn_spot dst = check_spot(check, me, step->dst);
    struct dtn_cell acc, term;

    for (int q = 0; q < fold_count(check, me, step); q++) {
        struct dtn_spot src = fold_source(check, me, step, q);

        src.index += i;
        if (!check_term(check, me, src, q == 0 ? &acc : &term)
            || (q > 0 && !dtn_cell_reduce(&check->cells, &acc, &term)))
            return false;
    }
    dst.index += i;
    return check_leave(check, me, dst, &acc);
}

static int step_fold(struct dtn_checker *check, int me,
                     const struct dtn_step *step)
{
    struct dtn_spot dst = check_spot(check, me, step->dst);
    int64_t count = dtn_check_count(check, step->bytes);
    bool same;

    if (fold_count(check, me, step) < 1)
        return dtn_check_fail(check, me, "folds nothing");
    if (step->own_term >= 0
        && (step->own.rank != me
            || (step->own.space == DTN_ACC) != (step->src.space == DTN_ACC)))
        return dtn_check_fail(check, me, "this rank's own term does not match "
                                         "the other terms");
    for (int q = 0; q < fold_count(check, me, step); q++) {
        struct dtn_spot src = fold_source(check, me, step, q);
        int rc = check_remote(check, me, src.rank);

        if (rc == 0)
            rc = check_overlap(check, me, dst, src, count, &same);
        if (rc != 0)
            return rc;
    }
    for (int64_t i = 0; i < count; i++)
        if (!check_fold_one(check, me, step, i))
            return check_cells_said(check, me, false);
    return 0;
}

/* SCALE and NEUTRAL. */
static int step_fill(struct dtn_checker *check, int me,
                     const struct dtn_step *step)
{
    struct dtn_cells *cells = &check->cells;
    struct dtn_actor actor = dtn_check_actor(check, me);
    struct dtn_spot dst = check_spot(check, me, step->dst);
    struct dtn_cell value = dtn_cell_neutral();
    int64_t left = dtn_check_count(check, step->bytes);

    for (; left > 0; left--, dst.index++) {
        if (step->op == DTN_OP_SCALE
            && (!dtn_cells_read(cells, actor, dst, &value)
                || !dtn_cell_scale(cells, &value)))
            return check_cells_said(check, me, false);
        if (!dtn_cells_write(cells, actor, dst, &value))
            return check_cells_said(check, me, false);
    }
    return 0;
}

/* --------------------------------------------------------- steps to peers */

/* Remember a put until it has landed and its source is free. */
static int pair_push(struct dtn_checker *check, struct dtn_check_pair *pair,
                     const struct dtn_check_put *put)
{
    if (!dtn_array_reserve(&pair->puts, &pair->capacity, pair->nputs + 1,
                           sizeof *put))
        return dtn_fail_nomem(check->err, "check", sizeof *put);
    pair->puts[pair->nputs++] = *put;
    return 0;
}

/* Both ends of a put, element by element. */
static void put_at(const struct dtn_check_put *put, const struct dtn_walk *walk,
                   struct dtn_spot *dst, struct dtn_spot *src)
{
    *dst = put->dst;
    *src = put->src;
    dst->index += walk->dst;
    src->index += walk->src;
}

static int step_put(struct dtn_checker *check, int me,
                    const struct dtn_step *step)
{
    struct dtn_check_put put = { check_spot(check, me, step->dst),
                                 check_spot(check, me, step->src),
                                 step_box(check, me, step) };
    struct dtn_walk walk = { .box = &put.box };
    struct dtn_actor actor = dtn_check_actor(check, me);
    struct dtn_spot dst, src;
    int rc = check_remote(check, me, step->peer);

    if (rc == 0 && dtn_box_count(&put.box) == 0)
        return 0;
    if (rc == 0)
        rc = pair_push(check, dtn_check_pair(check, me, step->peer), &put);
    if (rc != 0)
        return rc;
    do {
        put_at(&put, &walk, &dst, &src);
        if (!dtn_cells_launch(&check->cells, actor, dst, src))
            return check_cells_said(check, me, false);
    } while (dtn_walk_next(&walk));
    return 0;
}

static int step_flush(struct dtn_checker *check, int me,
                      const struct dtn_step *step)
{
    struct dtn_check_pair *pair = dtn_check_pair(check, me, step->peer);
    struct dtn_spot dst, src;

    for (; pair->nflushed < pair->nputs; pair->nflushed++) {
        const struct dtn_check_put *put = &pair->puts[pair->nflushed];
        struct dtn_walk walk = { .box = &put->box };

        do {
            put_at(put, &walk, &dst, &src);
            dtn_cells_free(&check->cells, dtn_check_actor(check, me), src);
        } while (dtn_walk_next(&walk));
    }
    return 0;
}

static struct dtn_check_signal *
signal_create(const struct dtn_checker *check, int me,
              const struct dtn_step *step)
{
    size_t clock_bytes = (size_t)check->n * sizeof(uint32_t);
    size_t count = (size_t)dtn_check_count(check, step->bytes);
    struct dtn_check_signal *sig = calloc(1, sizeof *sig + clock_bytes);

    if (!sig)
        return NULL;
    sig->tag = step->tag;
    sig->bytes = step->bytes;
    sig->from = step->src;
    sig->match_bits = step->match_bits;
    memcpy(sig->clock, check->ranks[me].clock, clock_bytes);
    if (count > 0)
        sig->payload = calloc(count, sizeof *sig->payload);
    if (count > 0 && !sig->payload) {
        free(sig);
        return NULL;
    }
    return sig;
}

void dtn_check_signal_destroy(struct dtn_check_signal *sig)
{
    free(sig->payload);
    free(sig);
}

static int step_signal(struct dtn_checker *check, int me,
                       const struct dtn_step *step)
{
    struct dtn_check_pair *pair = dtn_check_pair(check, me, step->peer);
    int64_t count = dtn_check_count(check, step->bytes);
    struct dtn_spot src = check_spot(check, me, step->src);
    struct dtn_check_signal *sig;

    if (pair->len == DTN_QUEUE_DEPTH)
        return DTENSOR_EAGAIN;
    sig = signal_create(check, me, step);
    if (!sig)
        return dtn_fail_nomem(check->err, "check", sizeof *sig);
    sig->nputs = pair->nputs;
    pair->queue[(pair->head + pair->len++) % DTN_QUEUE_DEPTH] = sig;
    for (int64_t i = 0; i < count; i++, src.index++)
        if (!dtn_cells_read(&check->cells, dtn_check_actor(check, me), src,
                            &sig->payload[i]))
            return check_cells_said(check, me, false);
    check->ranks[me].clock[me]++;
    return 0;
}

/* The waiter learns the sender's clock, and that the puts before the signal
 * have landed.
 */
static void signal_learn(struct dtn_checker *check, int me,
                         struct dtn_check_pair *pair,
                         const struct dtn_check_signal *sig)
{
    uint32_t *clock = check->ranks[me].clock;
    struct dtn_spot dst, src;

    for (int q = 0; q < check->n; q++)
        if (sig->clock[q] > clock[q])
            clock[q] = sig->clock[q];
    for (; pair->nlanded < sig->nputs; pair->nlanded++) {
        const struct dtn_check_put *put = &pair->puts[pair->nlanded];
        struct dtn_walk walk = { .box = &put->box };

        do {
            put_at(put, &walk, &dst, &src);
            dtn_cells_land(&check->cells, dtn_check_actor(check, me), dst);
        } while (dtn_walk_next(&walk));
    }
}

static int step_wait(struct dtn_checker *check, int me,
                     const struct dtn_step *step)
{
    struct dtn_check_pair *pair = dtn_check_pair(check, step->peer, me);
    struct dtn_check_signal *sig = pair->queue[pair->head];
    int64_t count = dtn_check_count(check, step->bytes);
    struct dtn_spot dst = check_spot(check, me, step->dst);
    bool good = true;
    int rc;

    if (pair->len == 0)
        return DTENSOR_EAGAIN;
    if (sig->tag != step->tag || sig->bytes != step->bytes
        || sig->match_bits != step->match_bits)
        return dtn_check_fail(check, me, "the next signal is tag %d, %zu "
                              "bytes, match bits %016llx", (int)sig->tag,
                              sig->bytes,
                              (unsigned long long)sig->match_bits);
    if (count > 0
        && !dtn_check_alike(check, me, sig->from.space == DTN_ACC,
                         step->dst.space == DTN_ACC))
        return dtn_check_fail(check, me, "treats elements as partial results, "
                              "or the reverse");
    pair->head = (pair->head + 1) % DTN_QUEUE_DEPTH;
    pair->len--;
    signal_learn(check, me, pair, sig);
    if (sig->tag == DTN_TAG_READY) {
        pair->ready_round = check->ranks[me].round;
        memset(pair->base, 0, sizeof pair->base);
        pair->base[sig->from.space] = sig->from.offset;
    }
    for (int64_t i = 0; good && i < count; i++, dst.index++)
        good = dtn_cells_write(&check->cells, dtn_check_actor(check, me), dst,
                               &sig->payload[i]);
    rc = check_cells_said(check, me, good);
    dtn_check_signal_destroy(sig);
    return rc;
}

int dtn_check_step(struct dtn_checker *check, int me,
                   const struct dtn_step *step)
{
    static int (*const takes[DTN_NOPS])(struct dtn_checker *, int,
                                        const struct dtn_step *) = {
        [DTN_OP_PUT] = step_put,       [DTN_OP_FLUSH] = step_flush,
        [DTN_OP_SIGNAL] = step_signal, [DTN_OP_WAIT] = step_wait,
        [DTN_OP_COPY] = step_move,     [DTN_OP_REDUCE] = step_move,
        [DTN_OP_FOLD] = step_fold,     [DTN_OP_SCALE] = step_fill,
        [DTN_OP_NEUTRAL] = step_fill,
    };
    int rc = dtn_check_form(check, me, step);

    rc = rc != 0 ? rc : dtn_check_edges(check, me, step);
    return rc != 0 ? rc : takes[step->op](check, me, step);
}
