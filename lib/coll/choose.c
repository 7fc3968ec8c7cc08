/* choose.c - chooses an emitter for each call
 *
 * The cheapest row of dtn_emitters that can run the call within [redistribute]
 * max_scratch is taken.  If [tuning] names an algorithm for the size of the
 * call, only the rows of that algorithm are considered, unless none can run the
 * call: a ring cannot run an all-to-all.
 *
 * The choice depends only on what all ranks know, and adds the same numbers in
 * the same order, so all ranks choose the same.  Of two equal rows the first is
 * taken.  If an all-to-all has private counts, its size is `count`, the
 * approximate block size.  If `count` is 0 the best algorithm for small blocks
 * is taken.  For large blocks it is never much slower; but in an algorithm for
 * large blocks each small block would wait for the one before.
 */
#include "coll/choose.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* If every term goes straight to the rank that folds it, terms are folded in
 * order.
 */
bool dtn_emitter_ordered(const struct dtn_emitter *emitter)
{
    return emitter->algorithm == DTN_ALG_DIRECT
        || emitter->algorithm == DTN_ALG_DEVICE
        || emitter->algorithm == DTN_ALG_STREAM
        || !dtn_coll_infos[emitter->coll].reduces;
}

/* Devices reach each other's memory where the ranks map each other's. */
static enum dtn_reach choose_reach(const struct dtn_call *call,
                                   const struct dtn_model *model)
{
    return call->on_device && model->reach == DTN_REACH_MAP ? DTN_REACH_DEVICE
                                                            : model->reach;
}

/* A CPU copies eager data of a device, so only short ones are. */
static size_t choose_eager(const struct dtn_call *call,
                           const struct dtn_model *model)
{
    return dtn_eager_bytes(call->on_device ? 0 : model->eager_bytes);
}

static size_t choose_most(const struct dtn_emitter *emitter,
                          const struct dtn_call *call,
                          const struct dtn_model *model)
{
    return emitter->max_bytes == DTN_EAGER_MAX ? choose_eager(call, model)
                                               : emitter->max_bytes;
}

bool dtn_emitter_runs(const struct dtn_emitter *emitter,
                      const struct dtn_call *call,
                      const struct dtn_model *model)
{
    return emitter->coll == call->coll
        && choose_reach(call, model) >= emitter->needs
        && (emitter->hosts == DTN_HOSTS_ANY || model->hosts > 1)
        && (emitter->hosts != DTN_HOSTS_EQUAL || !model->uneven)
        && dtn_call_edge_bytes(call) <= choose_most(emitter, call, model)
        && (!call->ordered || dtn_emitter_ordered(emitter));
}

/* The algorithm of [tuning] for a size: the last entry that begins at or below
 * it.
 */
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

static double choose_own_ns(const struct dtn_call *call,
                            const struct dtn_model *model,
                            const struct dtn_emitter *emitter)
{
    double load[DTENSOR_NCOSTS];

    dtn_model_own_load(model, call, emitter, load);
    return dtn_model_ns(model, load);
}

/* On one host a hierarchy is a direct algorithm with extra work. */
static bool choose_layered(const struct dtn_emitter *emitter,
                           const struct dtn_model *model)
{
    return emitter->needs != DTN_REACH_HOST || model->hosts > 1;
}

/* Is a better than b?  To keep within max_scratch comes first, then the cost.
 */
static bool choose_better(const struct dtn_choice *a,
                          const struct dtn_choice *b, double max_scratch)
{
    if (a->scratch > max_scratch || b->scratch > max_scratch)
        return a->scratch < b->scratch;
    return a->ns < b->ns;
}

/* The two best rows that can run the call: of one algorithm, or for AUTO of
 * all.
 */
static void choose_two(const struct dtn_call *call,
                       const struct dtn_model *model, enum dtn_algorithm only,
                       struct dtn_choice *choice)
{
    struct dtn_choice next = { .emitter = NULL };

    *choice = next;
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        struct dtn_choice this = { .emitter = e };

        if (!dtn_emitter_runs(e, call, model)
            || (only != DTN_ALG_AUTO && e->algorithm != only)
            || (only == DTN_ALG_AUTO && !choose_layered(e, model)))
            continue;
        this.ns = choose_ns(call, model, e);
        this.scratch = dtn_model_scratch(model, call, e);
        if (!choice->emitter
            || choose_better(&this, choice, model->max_scratch)) {
            next = *choice;
            *choice = this;
        } else if (!next.emitter
                   || choose_better(&this, &next, model->max_scratch)) {
            next = this;
        }
    }
    choice->next = next.emitter;
    choice->next_ns = next.ns;
}

static void choose_common(const struct dtn_call *call,
                          const struct dtn_model *model,
                          struct dtn_choice *choice)
{
    enum dtn_algorithm tuned = choose_tuned(call, model->tuning);
    struct dtn_choice named;

    choose_two(call, model, DTN_ALG_AUTO, choice);
    if (tuned == DTN_ALG_AUTO)
        return;
    choose_two(call, model, tuned, &named);
    if (!named.emitter || (named.scratch > model->max_scratch
                           && named.scratch > choice->scratch))
        return;
    if (named.emitter != choice->emitter) {
        choice->next = choice->emitter;
        choice->next_ns = choice->ns;
    }
    choice->emitter = named.emitter;
    choice->ns = named.ns;
    choice->scratch = named.scratch;
    choice->tuned = true;
}

void dtn_choose(const struct dtn_call *call, const struct dtn_model *model,
                struct dtn_choice *choice)
{
    choose_common(call, model, choice);
    if (!dtn_call_private(call))
        return;
    choice->ns = choose_own_ns(call, model, choice->emitter);
    if (choice->next)
        choice->next_ns = choose_own_ns(call, model, choice->next);
}

/* "4.7 us", with three digits. */
static char *pick_time(double ns, char *buf, size_t size)
{
    double value = ns < 1e6 ? ns / 1e3 : ns < 1e9 ? ns / 1e6 : ns / 1e9;

    snprintf(buf, size, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value,
             ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s");
    return buf;
}

char *dtn_choice_text(const struct dtn_choice *choice, char *buf, size_t size)
{
    char ns[32], next[32];

    pick_time(choice->ns, ns, sizeof ns);
    pick_time(choice->next_ns, next, sizeof next);
    if (!choice->next)
        snprintf(buf, size, "%s, nothing else can", ns);
    else
        snprintf(buf, size, "%s%s %s %s: %s", choice->tuned ? "[tuning] " : "",
                 ns, choice->ns <= choice->next_ns ? "<" : ">",
                 choice->next->name, next);
    return buf;
}

/* The n + 1 prefix sums of n counts. */
static void counts_add(const size_t counts[], int n, size_t starts[])
{
    starts[0] = 0;
    for (int r = 0; r < n; r++)
        starts[r + 1] = starts[r] + counts[r];
}

const struct dtn_emitter *dtn_emitter_named(const struct dtn_call *call,
                                            const struct dtn_model *model,
                                            const char *algorithm)
{
    struct dtn_choice pick;

    if (!algorithm) {
        dtn_choose(call, model, &pick);
        return pick.emitter;
    }
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++)
        if (strcmp(e->name, algorithm) == 0
            && dtn_emitter_runs(e, call, model))
            return e;
    return NULL;
}

/* The prefix sums of the counts make this fast. */
int dtn_emitter_emit(const struct dtn_emitter *emitter,
                     const struct dtn_call *call,
                     const struct dtn_model *model, struct dtn_sched *sched,
                     struct dtensor_error *err)
{
    const size_t n = (size_t)call->n + 1;
    struct dtn_call placed = *call;
    size_t *starts = call->counts ? malloc(2 * n * sizeof *starts) : NULL;
    int rc;

    if (call->counts && !starts)
        return dtn_fail_nomem(err, dtn_coll_name(call->coll),
                              2 * n * sizeof *starts);
    placed.hosts = model->host;
    placed.eager_bytes = choose_eager(call, model);
    placed.on_device = call->on_device && model->reach == DTN_REACH_MAP;
    if (call->counts)
        counts_add(call->counts, call->n, starts);
    if (call->recv_counts)
        counts_add(call->recv_counts, call->n, starts + n);
    placed.starts = starts;
    placed.recv_starts = call->recv_counts ? starts + n : NULL;
    rc = emitter->emit(&placed, sched, err);
    free(starts);
    return rc;
}
