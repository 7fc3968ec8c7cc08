/* period.c - do ranks p and p + period do the same, with shifted peers?
 *
 * Rank 0 of a ring over 8 ranks puts to 1 and waits for 7, rank 3 puts to 4 and
 * waits for 2: with a period of 1 they do the same.  In a tree they do not: the
 * root sends 3 messages, rank 1 none.  The first and the last rank of a period
 * are compared with those of the next, a middle and the last period.  To
 * compare all would make all schedules of a large job, which a period avoids.
 */
#include "sched/play.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

static int peer_shifted(int peer, int shift, int n)
{
    return peer < 0 ? peer : (peer + shift) % n;
}

static bool step_same(const struct dtn_step *a, const struct dtn_step *b,
                      int shift, int n)
{
    return a->op == b->op && a->tag == b->tag && a->bytes == b->bytes
        && a->box < 0 && b->box < 0 && a->terms == b->terms
        && peer_shifted(a->peer, shift, n) == b->peer
        && (a->src.rank < 0) == (b->src.rank < 0);
}

static bool sched_same(const struct dtn_sched *a, const struct dtn_sched *b,
                       int shift)
{
    bool same = a->nsteps == b->nsteps && a->nterms == b->nterms;

    for (int s = 0; same && s < a->nsteps; s++)
        same = step_same(&a->steps[s], &b->steps[s], shift, a->n);
    return same;
}

static int compare(const struct dtn_play_job *job, int position, int shift,
                   bool *same, struct dtensor_error *err)
{
    struct dtn_sched one, other;
    int rc = job->emit(job->arg, position, &one, err);

    if (rc != 0)
        return rc;
    rc = job->emit(job->arg, position + shift, &other, err);
    if (rc == 0) {
        *same = *same && sched_same(&one, &other, shift);
        dtn_sched_fini(&other);
    }
    dtn_sched_fini(&one);
    return rc;
}

int dtn_play_repeats(const struct dtn_play_job *job, int period, bool *repeats,
                     struct dtensor_error *err)
{
    const int shifts[] = { period, job->n / period / 2 * period,
                           job->n - period };
    bool same = job->n % period == 0;
    int rc = 0;

    for (int i = 0; same && rc == 0 && period < job->n && i < 3; i++) {
        rc = compare(job, 0, shifts[i], &same, err);
        if (same && rc == 0)
            rc = compare(job, period - 1, shifts[i], &same, err);
    }
    if (rc == 0)
        *repeats = same;
    return rc;
}
