/* test_checker_mutations.c - the checker refuses what was made wrong
 *
 * Mutations of every emitter's good schedules: any one step left out, any
 * signal left out together with its wait, any range moved by an element.  A
 * mutation that passes shows a step that nobody needs.
 *
 * Without this test, the checker could accept a schedule of ours that is wrong,
 * and every proof by it would be worth nothing.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "sched/call.h"
#include "sched/check.h"
#include "sched/emitters.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/support/heap.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>

struct tally {
    int tried;
    int survived;
};

static struct coll_case now;

static bool refused(void)
{
    return case_check(&now, 2, false, NULL) == DTENSOR_EINVAL
        || (case_in_place_ok(now.call.coll)
            && case_check(&now, 2, true, NULL) == DTENSOR_EINVAL);
}

static void tally_add(struct tally *tally, const char *what, int rank, int at)
{
    char text[200];
    const struct dtn_sched *sched = &now.scheds[rank];

    tally->tried++;
    if (refused())
        return;
    if (tally->survived++ < 9)
        note("%s, n %d: %s, rank %d step %d or after: %s", sched->name,
             now.call.n, what, rank, at, at < sched->nsteps
             ? dtn_step_text(sched, &sched->steps[at], text, sizeof text)
             : "the end");
}

static struct dtn_step step_cut(struct dtn_sched *sched, int at)
{
    struct dtn_step step = sched->steps[at];

    sched->nsteps--;
    memmove(&sched->steps[at], &sched->steps[at + 1],
            (size_t)(sched->nsteps - at) * sizeof step);
    return step;
}

static void step_paste(struct dtn_sched *sched, int at, struct dtn_step step)
{
    memmove(&sched->steps[at + 1], &sched->steps[at],
            (size_t)(sched->nsteps - at) * sizeof step);
    sched->steps[at] = step;
    sched->nsteps++;
}

static void cut_steps(struct dtn_sched *sched, struct tally *tally)
{
    for (int i = 0; i < sched->nsteps; i++) {
        struct dtn_step step = step_cut(sched, i);

        tally_add(tally, "left out a step", sched->me, i);
        step_paste(sched, i, step);
    }
}

/* The k-th step of that kind with that peer, or -1. */
static int step_find(const struct dtn_sched *sched, enum dtn_op op, int peer,
                     int k)
{
    for (int i = 0; i < sched->nsteps; i++)
        if (sched->steps[i].op == op && sched->steps[i].peer == peer
            && k-- == 0)
            return i;
    return -1;
}

/* A signal and its wait: what it orders must be needed. */
static void cut_pairs(struct dtn_sched *from, struct tally *tally)
{
    for (int to = 0; to < now.call.n; to++)
        for (int k = 0; to != from->me; k++) {
            int i = step_find(from, DTN_OP_SIGNAL, to, k);
            int j = step_find(&now.scheds[to], DTN_OP_WAIT, from->me, k);
            struct dtn_step signal, wait;

            if (i < 0)
                break;
            signal = step_cut(from, i);
            wait = step_cut(&now.scheds[to], j);
            tally_add(tally, "left out a signal and its wait", from->me, i);
            step_paste(&now.scheds[to], j, wait);
            step_paste(from, i, signal);
        }
}

/* A span one element further. */
static void shift_spans(struct dtn_sched *sched, struct tally *tally)
{
    size_t elem_bytes = dtensor_dtype_size(sched->dtype);

    for (int i = 0; i < sched->nsteps; i++) {
        struct dtn_step *step = &sched->steps[i];
        enum dtn_op op = step->op;
        bool dst = op != DTN_OP_SIGNAL && op != DTN_OP_FLUSH;
        bool src = op != DTN_OP_WAIT && op != DTN_OP_FLUSH
                && op != DTN_OP_SCALE && op != DTN_OP_NEUTRAL;

        if (step->bytes == 0)
            continue;
        step->dst.offset += dst ? elem_bytes : 0;
        if (dst)
            tally_add(tally, "moved the destination", sched->me, i);
        step->dst.offset -= dst ? elem_bytes : 0;
        step->src.offset += src ? elem_bytes : 0;
        if (src)
            tally_add(tally, "moved the source", sched->me, i);
        step->src.offset -= src ? elem_bytes : 0;
    }
}

/* Two neighbouring steps the other way round: many do not mind. */
static void swap_steps(struct dtn_sched *sched, struct tally *tally)
{
    for (int i = 0; i + 1 < sched->nsteps; i++) {
        struct dtn_step step = sched->steps[i];

        tally->tried++;
        sched->steps[i] = sched->steps[i + 1];
        sched->steps[i + 1] = step;
        tally->survived += !refused();
        sched->steps[i + 1] = sched->steps[i];
        sched->steps[i] = step;
    }
}

static void mutate(void (*fn)(struct dtn_sched *, struct tally *),
                   const char *claim, int allowed)
{
    static const struct {        /* equal and unequal, apart and mixed */
        int n, host[5];
    } on[] = {
        { 2, { 0, 0 } }, { 3, { 0, 1, 0 } }, { 4, { 0, 0, 1, 1 } },
        { 5, { 0, 1, 1, 2, 1 } }, { 5, { 0, 0, 1, 1, 1 } }
    };
    struct tally tally = { 0, 0 };
    struct dtensor_error err;

    for (now.emitter = dtn_emitters; now.emitter->emit; now.emitter++)
        for (size_t i = 0; i < DTN_COUNT(on); i++) {
            const bool small = now.emitter->max_bytes == DTN_EAGER_MAX;
            const int n = on[i].n;

            if (now.emitter->coll == DTN_COLL_BARRIER
                || (now.emitter->hosts == DTN_HOSTS_EQUAL && n % 2)
                || (now.emitter->needs != DTN_REACH_HOST && i > 3))
                continue;
            now.call = (struct dtn_call){ .coll = now.emitter->coll, .n = n,
                .root = n - 1, .dtype = DTENSOR_F64, .redop = DTENSOR_AVG,
                .count = small ? 3 : 37, .hosts = on[i].host };
            if (now.emitter->needs != DTN_REACH_HOST)
                now.call.hosts = NULL;
            if (case_emit(&now, &err) == 0)
                for (int r = 0; r < n; r++)
                    fn(&now.scheds[r], &tally);
            case_fini(&now);
        }
    note("%s: %d of %d refused", claim, tally.tried - tally.survived,
         tally.tried);
    if (allowed >= 0)
        ok(tally.tried > 100 && tally.survived <= allowed, "%s: refused",
           claim);
    else
        ok(tally.survived < tally.tried, "%s: often refused", claim);
}

/* The ways taken only by large messages: pulled, folded together, chunks. */
static void mutate_large(void)
{
    static const int hosts[] = { 0, 0, 1, 1, 2, 2 };
    static const struct { enum dtn_coll coll; enum dtn_algorithm algorithm;
                          int n; size_t count; const int *hosts;
    } larges[] = {
        { DTN_COLL_ALLREDUCE, DTN_ALG_DIRECT, 3, 8200, NULL },
        { DTN_COLL_REDUCE, DTN_ALG_DIRECT, 3, 4100, NULL },
        { DTN_COLL_REDUCE, DTN_ALG_RING, 3, 33000, NULL },
        { DTN_COLL_BROADCAST, DTN_ALG_RING, 3, 33000, NULL },
        { DTN_COLL_ALLGATHER, DTN_ALG_RING, 2, 33000, NULL },
        { DTN_COLL_REDUCE, DTN_ALG_RAILS, 6, 16384, hosts },
        { DTN_COLL_BROADCAST, DTN_ALG_RAILS, 6, 16384, hosts },
    };
    struct tally tally = { 0, 0 }, pairs = { 0, 0 };
    struct dtensor_error err;

    for (size_t i = 0; i < DTN_COUNT(larges); i++) {
        now.call = (struct dtn_call){ .coll = larges[i].coll,
            .n = larges[i].n, .count = larges[i].count,
            .hosts = larges[i].hosts,
            .dtype = DTENSOR_F64, .redop = DTENSOR_SUM };
        now.emitter = dtn_emitters;
        while (now.emitter->coll != larges[i].coll
               || now.emitter->algorithm != larges[i].algorithm
               || now.emitter->max_bytes == DTN_EAGER_MAX)
            now.emitter++;
        if (case_emit(&now, &err) == 0) {
            cut_steps(&now.scheds[1], &tally);
            for (int r = 0; r < now.call.n; r++)
                cut_pairs(&now.scheds[r], &pairs);
        }
        case_fini(&now);
    }
    ok(tally.tried > 50 && tally.survived == 0, "any of %d steps left out of "
       "schedules for large messages: refused", tally.tried);
    ok(pairs.tried > 50 && pairs.survived == 0, "any of %d signals with their "
       "waits: refused", pairs.tried);
}

int main(void)
{
    heap_keep();
    mutate(cut_steps, "any step left out of any schedule", 0);
    /* Of halving over 3 and 5 ranks, and pairwise over 4, some READYs follow
     * from others by longer ways around, which other numbers of ranks have
     * not.  They stay: to know the ways of each n would take a case for each,
     * and one signal saved.  So does the DONE of an owner to another one if the
     * root of a reduce is no owner: the root's DONE comes later.
     */
    mutate(cut_pairs, "any signal left out together with its wait", 18);
    mutate(shift_spans, "any span moved by one element", 0);
    mutate_large();
    mutate(swap_steps, "any two neighbouring steps swapped", -1);
    return done();
}
