/* events.h - what happens next: a heap of times */
#ifndef DTN_SCHED_PLAY_EVENTS_H
#define DTN_SCHED_PLAY_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_play_event {
    double ns;                    /* when                                     */
    uint32_t order;               /* of events of one time: the first pushed  */
                                  /* comes first                              */
    uint32_t what;                /* for the owner                            */
};

/* Begins as { 0 }. */
struct dtn_events {
    struct dtn_play_event *heap;  /* [n] each before its 4 children           */
    int n, capacity;              /* used and allocated                       */
    uint32_t pushed;              /* events so far                            */
    bool failed;                  /* out of memory: an event was lost         */
};

void dtn_events_push(struct dtn_events *events, double ns, uint32_t what);

/* The earliest, taken out; false: there is none. */
bool dtn_events_pop(struct dtn_events *events, struct dtn_play_event *event);

void dtn_events_fini(struct dtn_events *events);

#endif
