/* test_queue_pairs.c - how many peers, and so queue pairs, a rank needs
 *
 * Between hosts a rank connects to those that its schedules name.  The
 * formulas of dtensor-rdma(7) are compared with the schedules themselves, for
 * 2 to 17 ranks and some larger numbers.
 *
 * Without this test, the manual could promise fewer queue pairs than a large
 * job needs.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "cluster/sections.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>

#define RANKS_MAX 1024

#define LOCALS 4                     /* ranks of a host, where hosts count    */

/* Peers that one rank's schedule names; with `hosts`, on others than its own.
 */
static int peers_of(const struct dtn_emitter *emitter, int n, int me,
                    const int hosts[])
{
    static bool seen[RANKS_MAX];
    struct dtn_call call = {
        .coll = emitter->coll, .n = n, .me = me, .dtype = DTENSOR_F32,
        .redop = DTENSOR_SUM, .hosts = hosts,
        .count = emitter->coll == DTN_COLL_BARRIER ? 0 : 4
    };
    struct dtn_sched sched;
    int peers = 0;

    memset(seen, 0, sizeof seen);
    if (emitter->emit(&call, &sched, NULL) != 0)
        return -1;
    for (int s = 0; s < sched.nsteps; s++) {
        const struct dtn_step *step = &sched.steps[s];

        if ((step->op == DTN_OP_PUT || step->op == DTN_OP_SIGNAL
             || step->op == DTN_OP_WAIT) && !seen[step->peer]
            && !(hosts && hosts[step->peer] == hosts[me])) {
            seen[step->peer] = true;
            peers++;
        }
    }
    dtn_sched_fini(&sched);
    return peers;
}

static int log2_up(int n)
{
    int log = 0;

    while (1 << log < n)
        log++;
    return log;
}

/* What the page says of the busiest rank, exactly or at most. */
static int formula(const struct dtn_emitter *emitter, int n, bool *exact)
{
    bool barrier = emitter->coll == DTN_COLL_BARRIER;

    *exact = true;
    switch (emitter->algorithm) {
    case DTN_ALG_DIRECT:
    case DTN_ALG_DEVICE:
    case DTN_ALG_STREAM:
    case DTN_ALG_PAIRWISE:
        return n - 1;
    case DTN_ALG_RING:
        return n > 2 ? 2 : n - 1;
    case DTN_ALG_TREE:
        *exact = !barrier;
        return (barrier ? 2 : 1) * log2_up(n);
    case DTN_ALG_TWOTREE:
        *exact = false;
        return 4;
    case DTN_ALG_DOUBLING:
        *exact = false;
        return log2_up(n);
    default:
        *exact = false;
        return 2 * log2_up(n);
    }
}

static bool emitter_good(const struct dtn_emitter *emitter, int n)
{
    int most = 0, peers, said;
    bool exact;

    for (int me = 0; me < n; me++) {
        peers = peers_of(emitter, n, me, NULL);
        if (peers < 0)
            return false;
        most = peers > most ? peers : most;
    }
    said = formula(emitter, n, &exact);
    if (exact ? most == said : most <= said && most <= n - 1)
        return true;
    note("%s %s, %d ranks: %d peers, the formula says %d",
         dtn_coll_name(emitter->coll),
         dtn_word_text(dtn_algorithm_words, emitter->algorithm),
         n, most, said);
    return false;
}

/* Does it reach other hosts over distances that double? */
static bool hierarchical_few(const struct dtn_emitter *emitter)
{
    return emitter->coll == DTN_COLL_BARRIER
        || (emitter->algorithm == DTN_ALG_RAILS
            && strcmp(emitter->name, "rail-put") != 0);
}

/* Among equal hosts: one of each other, or by distances that double fewer. */
static bool hierarchical_good(const struct dtn_emitter *emitter, int nhosts)
{
    static int hosts[RANKS_MAX];
    int n = LOCALS * nhosts, most = 0;

    for (int p = 0; p < n; p++)
        hosts[p] = p / LOCALS;
    for (int me = 0; me < n; me++) {
        int peers = peers_of(emitter, n, me, hosts);

        if (peers < 0 || peers > nhosts - 1)
            return false;
        most = peers > most ? peers : most;
    }
    return hierarchical_few(emitter) ? most <= 2 * log2_up(nhosts)
                                     : most == nhosts - 1;
}

int main(void)
{
    static const int large[] = { 31, 32, 33, 100, 256 };

    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        bool good = true;

        if (e->coll == DTN_COLL_PAIRS)
            continue;             /* those that it is asked to send to        */
        if (e->needs == DTN_REACH_MAP)
            continue;             /* inside a host: no queue pairs            */
        if (e->needs == DTN_REACH_HOST) {
            for (int h = 2; h <= 33; h++)
                good = good && hierarchical_good(e, h);
            ok(good, "%s %s: as many peers as dtensor-rdma(7) says",
               dtn_coll_name(e->coll), e->name);
            continue;
        }
        for (int n = 2; n <= 17; n++)
            good = good && emitter_good(e, n);
        for (size_t i = 0; i < DTN_COUNT(large); i++)
            good = good && emitter_good(e, large[i]);
        ok(good, "%s %s: as many peers as dtensor-rdma(7) says",
           dtn_coll_name(e->coll),
           dtn_word_text(dtn_algorithm_words, e->algorithm));
    }
    return done();
}
