/* events.c - the begin and the end of each activity, recorded for a trace
 *
 * A begin is recorded only if there is also room for its end.  So a trace that
 * ran out of room is still valid: every activity in it is complete.
 */
#include "debug/counters.h"

bool dtn_trace_begin(struct dtn_counters *counters, int what, int64_t now_ns)
{
    if (counters->events_room == 0)
        return false;
    if (counters->nevents + counters->events_open + 2 > counters->events_room) {
        counters->events_lost++;
        return false;
    }
    counters->events[counters->nevents++] = (struct dtn_event){
        .ns = now_ns, .what = what, .kind = DTN_EVENT_BEGIN };
    counters->events_open++;
    return true;
}

void dtn_trace_end(struct dtn_counters *counters, uint64_t bytes,
                   int64_t now_ns)
{
    counters->events[counters->nevents++] = (struct dtn_event){
        .ns = now_ns, .bytes = bytes, .what = -1, .kind = DTN_EVENT_END };
    counters->events_open--;
}

void dtn_trace_add(struct dtn_counters *counters,
                   const struct dtn_event *event)
{
    if (counters->events_room == 0)
        return;
    if (counters->nevents + counters->events_open == counters->events_room)
        counters->events_lost++;
    else
        counters->events[counters->nevents++] = *event;
}
