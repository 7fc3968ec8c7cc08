/* choose.c - which emitter for which call
 *
 * Of the rows of dtn_emitters that can run the call, with no more scratch than
 * [redistribute] max_scratch, the one that costs least.
 * [tuning] may name an algorithm for its size: then only rows of that are
 * looked at, unless none can run, as a ring for an all-to-all cannot.
 *
 * The choice asks only what all ranks know, and adds the same numbers in the
 * same order, so all choose alike.  Of equals the first row is taken.  Of an
 * all-to-all whose counts each rank knows for itself that is `count`, about what a
 * block has; 0, if nothing was said, takes what is best for small blocks, which
 * for large ones is never much worse, where the other way round each small
 * block would wait for the one before.
 */
#include "coll/choose.h"
#include "cluster/cluster.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* Where every term goes straight to where it is folded, they are so in order. */
bool dtn_emitter_ordered(const struct dtn_emitter *emitter)
{
    return emitter->algorithm == DTN_ALG_DIRECT
        || !dtn_shapes[emitter->coll].reduces;
}

bool dtn_emitter_runs(const struct dtn_emitter *emitter,
                      const struct dtn_call *call,
                      const struct dtn_model *model)
{
    return emitter->coll == call->coll && model->reach >= emitter->needs
        && dtn_call_edge_bytes(call) <= emitter->max_bytes
        && (!call->ordered || dtn_emitter_ordered(emitter));
}

/* What [tuning] says for a size: the last entry that begins at or below it. */
static enum dtn_algorithm choose_tuned(const struct dtn_call *call,
                                       const struct dtn_tuning tuning[])
{
    static const int tuned[DTN_NCOLLS] = {
        [DTN_COLL_ALLREDUCE] = DTN_TUNED_ALLREDUCE,
        [DTN_COLL_REDUCE] = DTN_TUNED_REDUCE,
        [DTN_COLL_BROADCAST] = DTN_TUNED_BROADCAST,
        [DTN_COLL_ALLGATHER] = DTN_TUNED_ALLGATHER,
        [DTN_COLL_REDUCE_SCATTER] = DTN_TUNED_REDUCE_SCATTER,
        [DTN_COLL_ALL_TO_ALL] = DTN_TUNED_ALL_TO_ALL,
        [DTN_COLL_GATHER] = -1,
        [DTN_COLL_SCATTER] = -1,
        [DTN_COLL_BARRIER] = -1,
        [DTN_COLL_PAIRS] = -1,
        [DTN_COLL_EXCHANGE] = -1,
    };
    const struct dtn_tuning *entries;
    enum dtn_algorithm algorithm = DTN_ALG_AUTO;

    if (!tuning || tuned[call->coll] < 0)
        return DTN_ALG_AUTO;
    entries = &tuning[tuned[call->coll]];
    for (int i = 0; i < entries->n; i++)
        if (entries->entry[i].from_bytes <= dtn_call_bytes(call))
            algorithm = entries->entry[i].algorithm;
    return algorithm;
}

static double choose_ns(const struct dtn_call *call,
                        const struct dtn_model *model,
                        const struct dtn_emitter *emitter)
{
    double load[DTENSOR_NCOSTS];

    dtn_model_load(model, call, emitter, load);
    return dtn_model_ns(model, load);
}

static double choose_told(const struct dtn_call *call,
                          const struct dtn_model *model,
                          const struct dtn_emitter *emitter)
{
    double load[DTENSOR_NCOSTS];

    dtn_model_told(model, call, emitter, load);
    return dtn_model_ns(model, load);
}

/* A hierarchy over one host is what is direct there, with more to it. */
static bool choose_layered(const struct dtn_emitter *emitter,
                           const struct dtn_model *model)
{
    return emitter->needs != DTN_REACH_HOST || model->hosts > 1;
}

/* Is a better than b?  What keeps to max_scratch is; then what costs less. */
static bool choose_better(const struct dtn_pick *a, const struct dtn_pick *b,
                          double max_scratch)
{
    if (a->scratch > max_scratch || b->scratch > max_scratch)
        return a->scratch < b->scratch;
    return a->ns < b->ns;
}

/* The best row that can run and the next: of one algorithm, or with AUTO of any.
 */
static void choose_two(const struct dtn_call *call,
                       const struct dtn_model *model, enum dtn_algorithm only,
                       struct dtn_pick *pick)
{
    struct dtn_pick next = { .emitter = NULL };

    *pick = next;
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        struct dtn_pick this = { .emitter = e };

        if (!dtn_emitter_runs(e, call, model)
            || (only != DTN_ALG_AUTO && e->algorithm != only)
            || (only == DTN_ALG_AUTO && !choose_layered(e, model)))
            continue;
        this.ns = choose_ns(call, model, e);
        this.scratch = dtn_model_scratch(model, call, e);
        if (!pick->emitter || choose_better(&this, pick, model->max_scratch)) {
            next = *pick;
            *pick = this;
        } else if (!next.emitter
                   || choose_better(&this, &next, model->max_scratch)) {
            next = this;
        }
    }
    pick->next = next.emitter;
    pick->next_ns = next.ns;
}

static void choose_common(const struct dtn_call *call,
                          const struct dtn_model *model, struct dtn_pick *pick)
{
    enum dtn_algorithm tuned = choose_tuned(call, model->tuning);
    struct dtn_pick named;

    choose_two(call, model, DTN_ALG_AUTO, pick);
    if (tuned == DTN_ALG_AUTO)
        return;
    choose_two(call, model, tuned, &named);
    if (!named.emitter || (named.scratch > model->max_scratch
                           && named.scratch > pick->scratch))
        return;
    if (named.emitter != pick->emitter) {
        pick->next = pick->emitter;
        pick->next_ns = pick->ns;
    }
    pick->emitter = named.emitter;
    pick->ns = named.ns;
    pick->scratch = named.scratch;
    pick->tuned = true;
}

void dtn_choose(const struct dtn_call *call, const struct dtn_model *model,
                struct dtn_pick *pick)
{
    choose_common(call, model, pick);
    if (!dtn_call_private(call))
        return;
    pick->ns = choose_told(call, model, pick->emitter);
    if (pick->next)
        pick->next_ns = choose_told(call, model, pick->next);
}

/* "4.7 us", with three digits. */
static char *pick_time(double ns, char *buf, size_t size)
{
    double value = ns < 1e6 ? ns / 1e3 : ns < 1e9 ? ns / 1e6 : ns / 1e9;

    snprintf(buf, size, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value,
             ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s");
    return buf;
}

char *dtn_pick_text(const struct dtn_pick *pick, char *buf, size_t size)
{
    char ns[32], next[32];

    pick_time(pick->ns, ns, sizeof ns);
    pick_time(pick->next_ns, next, sizeof next);
    if (!pick->next)
        snprintf(buf, size, "%s, nothing else can", ns);
    else
        snprintf(buf, size, "%s%s %s %s: %s", pick->tuned ? "[tuning] " : "",
                 ns, pick->ns <= pick->next_ns ? "<" : ">", pick->next->name,
                 next);
    return buf;
}
