/* activity.c - the functions by which the context reports its activities
 *
 * Activities nest, so the open ones are a stack.  Only the outermost
 * redistribute or collective counts: if an allreduce is a step of a
 * redistribute, its bytes are added to the redistribute, and it does not count
 * as a collective.
 */
#include "base/wait.h"
#include "debug/counters.h"
#include "layout/spec.h"
#include "sched/call.h"

/* The counters are indexed by enum dtn_coll. */
_Static_assert((int)DTN_COLL_PAIRS == (int)DTENSOR_DEBUG_MESSAGES &&
               (int)DTN_COLL_EXCHANGE == (int)DTENSOR_DEBUG_EXCHANGE &&
               (int)DTN_NCOLLS == (int)DTENSOR_DEBUG_NKINDS,
               "the kinds are the collectives, then messages and exchanges");

static struct dtn_counters *counters_of(struct dtn_watcher *watcher)
{
    return (struct dtn_counters *)watcher;
}

static uint64_t moved(const struct dtn_counters *counters)
{
    return counters->watcher.mapped + dtn_wire_bytes(counters);
}

/* Open what counts, with its calls; `kinds` 0: nothing counts. */
static void count_begin(struct dtn_counters *counters, struct dtn_open *open,
                        unsigned kinds, const struct dtn_activity *a)
{
    struct dtn_side_counts *side =
        &counters->scopes[counters->scope].side[counters->direction];
    const bool again = a->continues || a->joins ||
                       a->kind == DTN_WATCHED_BATCH;

    for (int k = 0; k < DTENSOR_DEBUG_NKINDS; k++) {
        if (!(kinds >> k & 1))
            continue;
        side->kind[k].calls += !again;
        if (open->what < 0)
            side->kind[open->what = k].predicted_ns += a->continues ? 0 : a->ns;
    }
    if (open->what < 0 && a->kind != DTN_WATCHED_CALL)
        open->what = DTENSOR_DEBUG_EXCHANGE;     /* if bytes move after all   */
    counters->counted = counters->depth;
}

static struct dtensor_debug_count *count_of(struct dtn_counters *counters)
{
    return &counters->scopes[counters->scope].side[counters->direction]
                .kind[counters->open[counters->counted].what];
}

/* Redistributes and collectives. */
static void move_begin(struct dtn_counters *counters, struct dtn_open *open,
                       const struct dtn_activity *a)
{
    if (counters->counted < 0)
        count_begin(counters, open, dtn_activity_kinds(a), a);
    for (int i = 0; i < counters->depth; i++)
        if (counters->open[i].line >= 0)
            counters->lines[counters->open[i].line].count.predicted_bytes +=
                a->bytes;
    count_of(counters)->predicted_bytes += a->bytes;
    if (open->line < 0 || a->continues)
        return;
    counters->lines[open->line].count.predicted_bytes += a->bytes;
    counters->lines[open->line].count.predicted_ns += a->ns;
}

/* Scopes of the program, modules, backwards. */
static void scope_begin(struct dtn_counters *counters,
                        const struct dtn_activity *a)
{
    const uint64_t base = counters->epoch << 32;

    if (a->kind == DTN_WATCHED_BACKWARD) {
        counters->direction = DTENSOR_BACKWARD;
        counters->backward_of = a->name;
        if (a->scope >= base && a->scope - base < (uint64_t)counters->nscopes)
            counters->scope = (int)(a->scope - base);
    } else {
        counters->scope = dtn_scope_enter(counters, counters->scope, a->name,
                                          a->type);
    }
    counters->scopes[counters->scope].side[counters->direction].runs++;
    counters->watcher.scope = base + (uint64_t)counters->scope;
}

/* The operator in which a redistribute begins takes its inputs in order. */
static bool operand_find(struct dtn_counters *counters,
                         const struct dtn_activity *a)
{
    struct dtn_open *open;

    if (counters->depth == 0)
        return false;
    open = &counters->open[counters->depth - 1];
    if (open->kind != DTN_WATCHED_OP)
        return false;
    for (int i = open->operand; i < open->op.nin; i++) {
        if (!dtn_spec_equal(&open->op.in[i], a->in) ||
            !dtn_spec_equal(&open->op.want[i], a->out))
            continue;
        counters->watcher.cause = (struct dtn_cause){
            open->op.name, i, "the operator wants it so" };
        open->operand = i + 1;
        return true;
    }
    return false;
}

/* A redistribute for which nobody gave a reason. */
static void cause_find(struct dtn_counters *counters,
                       const struct dtn_activity *a)
{
    struct dtn_cause *cause = &counters->watcher.cause;

    if (cause->why || operand_find(counters, a))
        return;
    *cause = counters->backward_of
           ? (struct dtn_cause){ counters->backward_of, 0, "its backward" }
           : (struct dtn_cause){ NULL, 0, "the program asked for it" };
}

void dtn_counters_begin(struct dtn_watcher *watcher,
                        const struct dtn_activity *a)
{
    struct dtn_counters *counters = counters_of(watcher);
    struct dtn_open *open = &counters->open[counters->depth];
    const bool scope = a->kind == DTN_WATCHED_SCOPE ||
                       a->kind == DTN_WATCHED_MODULE;

    if (counters->depth == DTN_OPEN_MAX) {
        counters->deeper++;
        return;
    }
    *open = (struct dtn_open){ .kind = a->kind, .scope = counters->scope,
        .direction = counters->direction, .counted = counters->counted,
        .what = -1, .line = -1, .lap = -1, .since_ns = dtn_now_ns(),
        .moved = moved(counters), .backward_of = counters->backward_of };
    if (a->kind == DTN_WATCHED_OP)
        open->op = *a;
    if (a->kind == DTN_WATCHED_REDIST)
        cause_find(counters, a);
    if (scope || a->kind == DTN_WATCHED_BACKWARD)
        scope_begin(counters, a);
    if (!scope && !a->continues &&               /* one of a batch was told   */
        (a->kind != DTN_WATCHED_REDIST || counters->counted < 0))
        open->line = dtn_line_of(counters, a);
    if (!a->continues && (scope || open->line >= 0))
        open->event = dtn_trace_begin(counters, scope ? -1 - counters->scope
                                      : open->line, open->since_ns);
    if (a->kind == DTN_WATCHED_CALL || a->kind == DTN_WATCHED_REDIST ||
        a->kind == DTN_WATCHED_BATCH)
        move_begin(counters, open, a);
    if (a->kind == DTN_WATCHED_REDIST)
        watcher->cause = (struct dtn_cause){ 0 };
    open->lap = dtn_lap_begin(counters);
    counters->depth++;
}

void dtn_counters_close(struct dtn_counters *counters)
{
    struct dtn_open *open = &counters->open[--counters->depth];
    const int64_t now_ns = dtn_now_ns();
    const uint64_t bytes = moved(counters) - open->moved;
    struct dtn_side_counts *side =
        &counters->scopes[counters->scope].side[counters->direction];

    if (open->what >= 0) {
        side->kind[open->what].time_ns += now_ns - open->since_ns;
        side->kind[open->what].sent_bytes += bytes;
    }
    if (open->kind <= DTN_WATCHED_BACKWARD)
        side->ns += now_ns - open->since_ns;
    if (open->line >= 0) {
        counters->lines[open->line].count.calls++;
        counters->lines[open->line].count.time_ns += now_ns - open->since_ns;
        counters->lines[open->line].count.sent_bytes += bytes;
    }
    if (open->event)
        dtn_trace_end(counters, bytes, now_ns);
    counters->watcher.flight = (struct dtn_flight){
        open->event && open->line >= 0 ? counters->epoch : 0, open->since_ns,
        open->line };
    dtn_lap_end(counters, open);
    counters->scope = open->scope;
    counters->direction = open->direction;
    counters->counted = open->counted;
    counters->backward_of = open->backward_of;
    counters->watcher.scope = (counters->epoch << 32)
                            + (uint64_t)counters->scope;
}

void dtn_counters_landed(struct dtn_watcher *watcher,
                         const struct dtn_flight *flight)
{
    struct dtn_counters *counters = counters_of(watcher);

    if (flight->epoch == counters->epoch)
        dtn_trace_add(counters, &(struct dtn_event){
            .ns = flight->since_ns, .long_ns = dtn_now_ns() - flight->since_ns,
            .what = flight->what, .kind = DTN_EVENT_FLIGHT });
}

/* A module whose function has left scopes open closes them. */
void dtn_counters_end(struct dtn_watcher *watcher)
{
    struct dtn_counters *counters = counters_of(watcher);

    if (counters->deeper > 0) {
        counters->deeper--;
        return;
    }
    while (counters->open[counters->depth - 1].kind == DTN_WATCHED_SCOPE)
        dtn_counters_close(counters);
    dtn_counters_close(counters);
}
