/* play.c - simulate the time of a call's schedules with the model's constants
 *
 * The schedules of all ranks are simulated with a clock for each rank.  A put
 * or signal occupies its sender, and its bytes also the link into the receiver.
 * A signal is seen one hop later.  Loads, folds and copies take time, too.
 */
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/play.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { PLAY_QUEUE = 4096 };

/* Signals on their way from one rank to another: when each is seen. */
struct play_pair {
    double seen_ns[PLAY_QUEUE];
    int sent, taken;
    double landed_ns;             /* the last bytes                           */
};

static struct play {
    const struct dtn_model *model;
    double stretch;               /* dtn_model_cache_miss_factor()            */
    int link;                     /* of the wire: DTENSOR_COST_.._HOPS        */
    double clock[PLAY_RANKS_MAX];
    double inward_ns[PLAY_RANKS_MAX];      /* the link into a rank is free    */
    int pc[PLAY_RANKS_MAX];
    struct play_pair pair[PLAY_RANKS_MAX][PLAY_RANKS_MAX];
} play;

static double play_ns(int cost, double amount)
{
    bool stretched = cost == DTENSOR_COST_INTRA_BYTES
                  || cost == DTENSOR_COST_FOLDED || cost == DTENSOR_COST_COPIED;

    return play.model->ns[cost] * amount * (stretched ? play.stretch : 1);
}

/* Bytes of a source: moved if it is another's. */
static double play_load(const struct dtn_sched *sched, int rank, double bytes)
{
    return rank == sched->me ? 0 : play_ns(play.link + 2, bytes);
}

static double play_fold(const struct dtn_sched *sched,
                        const struct dtn_step *step)
{
    double bytes = (double)step->bytes, ns = 0;
    int n = step->src.rank >= 0 ? step->terms
          : sched->terms ? sched->nterms : sched->n;

    for (int t = 0; t < n; t++)
        ns += play_load(sched, step->src.rank >= 0 ? sched->me
                        : sched->terms ? sched->terms[t] : t, bytes)
            + play_ns(DTENSOR_COST_FOLDED, bytes);
    return ns;
}

/* Bytes leave a rank, and come into another when those before them have. */
static void play_send(int from, int to, double bytes)
{
    double ns = play_ns(play.link + 2, bytes);

    play.clock[from] += ns;
    play.inward_ns[to] = fmax(play.inward_ns[to] + ns, play.clock[from]);
    play.pair[from][to].landed_ns = play.inward_ns[to];
}

/* One step; false: it waits for a signal that was not sent yet. */
static bool play_step(const struct dtn_sched *sched,
                      const struct dtn_step *step)
{
    double *clock = &play.clock[sched->me], bytes = (double)step->bytes;
    bool carry = step->tag == DTN_TAG_EAGER;
    struct play_pair *pair;

    switch (step->op) {
    case DTN_OP_PUT:
        *clock += play_ns(play.link + 1, 1);
        play_send(sched->me, step->peer, bytes);
        break;
    case DTN_OP_SIGNAL:
        pair = &play.pair[sched->me][step->peer];
        *clock += play_ns(play.link + 1, 1);
        if (carry)
            play_send(sched->me, step->peer, bytes);
        pair->seen_ns[pair->sent++ % PLAY_QUEUE] =
            fmax(*clock, pair->landed_ns) + play_ns(play.link, 1);
        break;
    case DTN_OP_WAIT:
        pair = &play.pair[step->peer][sched->me];
        if (pair->taken == pair->sent)
            return false;
        *clock = fmax(*clock, pair->seen_ns[pair->taken++ % PLAY_QUEUE])
               + (carry ? play_ns(DTENSOR_COST_COPIED, bytes) : 0);
        break;
    case DTN_OP_COPY:
        *clock += play_load(sched, step->src.rank, bytes);
        if (step->src.rank == sched->me)
            *clock += play_ns(DTENSOR_COST_COPIED, bytes);
        break;
    case DTN_OP_REDUCE:
        *clock += play_load(sched, step->src.rank, bytes)
                + play_ns(DTENSOR_COST_FOLDED, 2 * bytes);
        break;
    case DTN_OP_FOLD:
        *clock += play_fold(sched, step);
        break;
    default:
        break;
    }
    return true;
}

/* The rank that is furthest behind of those that can goes on. */
static bool play_one(const struct dtn_sched scheds[], int n)
{
    bool stuck[PLAY_RANKS_MAX] = { false };

    for (int tries = 0; tries < n; tries++) {
        int next = -1;

        for (int r = 0; r < n; r++)
            if (!stuck[r] && play.pc[r] < scheds[r].nsteps
                && (next < 0 || play.clock[r] < play.clock[next]))
                next = r;
        if (next < 0)
            return false;
        if (play_step(&scheds[next], &scheds[next].steps[play.pc[next]])) {
            play.pc[next]++;
            return true;
        }
        stuck[next] = true;
    }
    return false;
}

double play_all(const struct dtn_sched scheds[], int n, double whole,
                       const struct dtn_model *model)
{
    double last = 0;

    memset(&play, 0, sizeof play);
    play.model = model;
    play.stretch = dtn_model_cache_miss_factor(model, whole);
    play.link = model->hosts > 1 ? DTENSOR_COST_INTER_HOPS
                                 : DTENSOR_COST_INTRA_HOPS;
    while (play_one(scheds, n))
        ;
    for (int r = 0; r < n; r++)
        last = play.pc[r] == scheds[r].nsteps ? fmax(last, play.clock[r])
                                              : INFINITY;
    return last;
}
