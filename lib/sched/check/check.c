/* check.c - proves schedules right without running them
 *
 * The schedules of all n ranks are run on symbolic memory (cells.c) in one
 * arbitrary order.  One order is enough:
 *
 *   - A step that is possible stays possible until its rank takes it: only
 *     rank 1 empties the queue from rank 0, and only rank 0 fills it.  So all
 *     orders take the same steps and end in the same deadlock or in none.
 *     This includes queues that are full at DTN_QUEUE_DEPTH.
 *   - The signals decide whether an access is ordered after another, not the
 *     order of this run.  Each signal carries its sender's *vector clock*: how
 *     much of every rank's past the sender knows.  Example: rank 0 puts into
 *     rank 1 (epoch 3 of rank 0) and signals; rank 1 waits, so its clock is
 *     then {3, ..}; then rank 1 signals rank 2, whose clock is {3, 5, ..}.  If
 *     rank 2 reads that place before it has this signal, its clock does not
 *     cover the stamp of the write: a race, in whatever order the two happen
 *     here.
 *
 * Between rounds the memory of a rank belongs to its caller.  So every access
 * must come after the owner's READY of the same round and before the owner's
 * last step.  dtn_cells_end() checks this with the clocks.
 */
#include "sched/check/check.h"
#include "base/error.h"
#include "sched/check.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ rounds */

/* A rank has finished its last step of a round. */
static int round_end(struct dtn_checker *check, int me)
{
    const struct dtn_sched *sched = &check->scheds[me];
    int64_t count = dtn_check_count(check, sched->bytes[DTN_OUT]);

    for (int q = 0; q < check->n; q++)
        if (dtn_check_pair(check, me, q)->nflushed
            < dtn_check_pair(check, me, q)->nputs)
            return dtn_check_fail(check, me, "puts to rank %d not flushed", q);
    if (!dtn_cells_end(&check->cells, dtn_check_actor(check, me)))
        return dtn_check_fail(check, me, "%s", check->cells.why);
    for (int64_t i = 0; i < count; i++) {
        struct dtn_spot spot = { me, DTN_OUT, i };

        if (!check->expect(me, (size_t)i, dtn_cells_peek(&check->cells, spot),
                           check->arg))
            return dtn_check_fail(check, me, "OUT+%zu is not what was "
                                  "expected",
                                  (size_t)i * check->cells.elem_bytes);
    }
    return 0;
}

/* Run a rank until it must wait.  *moved: it took a step. */
static int rank_run(struct dtn_checker *check, int me, bool *moved)
{
    const struct dtn_sched *sched = &check->scheds[me];
    struct dtn_check_rank *rank = &check->ranks[me];
    int rc = 0;

    while (rank->round <= check->rounds) {
        for (; rank->pc < sched->nsteps; rank->pc++, *moved = true) {
            rc = dtn_check_step(check, me, &sched->steps[rank->pc]);
            if (rc != 0)
                return rc == DTENSOR_EAGAIN ? 0 : rc;
        }
        rc = round_end(check, me);
        if (rc != 0)
            return rc;
        *moved = true;
        rank->round++;
        rank->pc = 0;
        dtn_cells_begin(&check->cells, dtn_check_actor(check, me));
    }
    return 0;
}

/* No rank can move: all are done, or report who waits for whom. */
static int check_stuck(struct dtn_checker *check)
{
    char text[360] = "";
    size_t used = 0;
    int stuck = 0;

    for (int r = 0; r < check->n; r++) {
        const struct dtn_check_rank *rank = &check->ranks[r];
        const struct dtn_step *step;

        if (rank->round > check->rounds || ++stuck > 4)
            continue;
        step = &check->scheds[r].steps[rank->pc];
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%srank %d at step %d %s rank %d",
                                 stuck > 1 ? ", " : "", r, rank->pc,
                                 step->op == DTN_OP_WAIT
                                 ? "waits for" : "has filled the queue of",
                                 step->peer);
    }
    if (stuck == 0)
        return 0;
    return dtn_fail(check->err, DTENSOR_EINVAL, "check: %s: deadlock of %d of "
                    "%d ranks: %s", check->scheds[0].name, stuck, check->n,
                    text);
}

/* Does each pair have as many waits as signals? */
static int check_balance(struct dtn_checker *check)
{
    for (int r = 0; r < check->n; r++)
        for (int i = 0; i < check->scheds[r].nsteps; i++) {
            const struct dtn_step *step = &check->scheds[r].steps[i];

            if (step->peer < 0 || step->peer >= check->n)
                continue;
            if (step->op == DTN_OP_SIGNAL)
                dtn_check_pair(check, r, step->peer)->nsignals++;
            if (step->op == DTN_OP_WAIT)
                dtn_check_pair(check, step->peer, r)->nwaits++;
        }
    for (int r = 0; r < check->n; r++)
        for (int q = 0; q < check->n; q++) {
            const struct dtn_check_pair *pair = dtn_check_pair(check, r, q);

            if (pair->nsignals != pair->nwaits)
                return dtn_fail(check->err, DTENSOR_EINVAL, "check: %s: rank "
                                "%d sends rank %d %d signals, which waits for "
                                "%d", check->scheds[r].name, r, q,
                                pair->nsignals, pair->nwaits);
        }
    return 0;
}

/* READY has room for one scratch space: TMP or ACC. */
static int check_scratch(struct dtn_checker *check)
{
    for (int r = 0; r < check->n; r++)
        if (check->scheds[r].exposed[DTN_TMP]
            && check->scheds[r].exposed[DTN_ACC])
            return dtn_fail(check->err, DTENSOR_EINVAL, "check: %s: rank %d "
                            "exposes both TMP and ACC", check->scheds[r].name,
                            r);
    return 0;
}

static int check_init(struct dtn_checker *check)
{
    size_t n = (size_t)check->n;
    int rc;

    check->pairs = calloc(n * n, sizeof *check->pairs);
    check->ranks = calloc(n, sizeof *check->ranks);
    check->clocks = calloc(n * n, sizeof *check->clocks);
    if (!check->pairs || !check->ranks || !check->clocks)
        return dtn_fail_nomem(check->err, "check",
                              n * n * sizeof *check->pairs);
    for (int r = 0; r < check->n; r++) {
        check->ranks[r].clock = check->clocks + (size_t)r * n;
        check->ranks[r].clock[r] = 1;
        check->ranks[r].round = 1;
        dtn_cells_begin(&check->cells, dtn_check_actor(check, r));
    }
    rc = check_balance(check);
    return rc == 0 ? check_scratch(check) : rc;
}

static void check_fini(struct dtn_checker *check)
{
    for (int i = 0; check->pairs && i < check->n * check->n; i++) {
        struct dtn_check_pair *pair = &check->pairs[i];

        for (; pair->len > 0; pair->len--) {
            dtn_check_signal_destroy(pair->queue[pair->head]);
            pair->head = (pair->head + 1) % DTN_QUEUE_DEPTH;
        }
        free(pair->puts);
    }
    free(check->pairs);
    free(check->ranks);
    free(check->clocks);
    dtn_cells_fini(&check->cells);
}

int dtn_sched_check(const struct dtn_sched scheds[], int n, int rounds,
                    const int64_t alias[], dtn_check_expect_f *expect,
                    const void *arg, struct dtensor_error *err)
{
    struct dtn_checker check = { .scheds = scheds, .n = n, .rounds = rounds,
                           .expect = expect, .arg = arg, .err = err };
    bool moved = true;
    int rc;

    if (n < 1 || n > DTN_CHECK_RANKS_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "check: %d ranks; at most %d can "
                        "be checked", n, DTN_CHECK_RANKS_MAX);
    rc = dtn_cells_init(&check.cells, scheds, n, alias, err);
    if (rc == 0)
        rc = check_init(&check);
    while (rc == 0 && moved) {
        moved = false;
        for (int r = 0; rc == 0 && r < n; r++)
            rc = rank_run(&check, r, &moved);
    }
    if (rc == 0)
        rc = check_stuck(&check);
    check_fini(&check);
    return rc;
}
