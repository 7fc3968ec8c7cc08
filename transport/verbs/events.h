/* events.h - what a device said of itself: port down, GID gone, fatal */
#ifndef DTN_TRANSPORT_VERBS_EVENTS_H
#define DTN_TRANSPORT_VERBS_EVENTS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_verbs;
struct dtn_verbs_device;

/* The asynchronous events of one device so far. */
struct dtn_verbs_events {
    int number;                   /* events received                          */
    bool any;                     /* `last` is set: an event that matters     */
    enum ibv_event_type last;     /* the worst event                          */
    int rank;                     /* the peer whose queue pair it names, or -1*/
    int64_t at_ns;                /* when `last` came: dtn_now_ns()           */
    int64_t gid_gone_ns;          /* since when our GID is missing; 0: is not */
};

/* Note one event of the device. */
void dtn_verbs_events_take(struct dtn_verbs_device *device,
                           enum ibv_event_type type, int rank, int64_t now_ns);

/* Read the pending events of all rails, without waiting; a system call.
 * ENODEV: a device can no longer be used.
 */
int dtn_verbs_events_poll(struct dtn_verbs *verbs);

/* Is our GID no longer in its row? */
bool dtn_verbs_gid_gone(const struct dtn_verbs_device *device);

/* The worst event in words, such as "port 1 of mlx5_0 went down 2.1 s ago (is
 * the cable in?)", written to buf; NULL when no event mattered.
 */
const char *dtn_verbs_events_words(const struct dtn_verbs_device *device,
                                   char *buf, size_t size);

#endif
