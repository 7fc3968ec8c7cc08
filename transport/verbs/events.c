/* events.c - what a device says of itself, in words
 *
 * When a cable is pulled, the device reports PORT_ERR at once.  The queue pairs
 * notice two seconds later, and only that a peer does not answer.  So the text
 * about a lost peer ends with the worst that the device has reported:
 *
 *     it does not answer (...); port 1 of mlx5_0 went down 0.5 s ago (...)
 *
 * Events are read where a rank looks at the health of its peers; their
 * descriptor does not block.  A port that is up again is forgotten.  When an
 * address is taken away, the next write fails before the event arrives, so the
 * row of the GID is looked up as well.
 */
#include "base/compiler.h"
#include "base/log.h"
#include "base/units.h"
#include "base/wait.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/events.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define GID_GRACE_NS INT64_C(1000000000)  /* for an address to come back      */

/* Events that matter, the worst last. */
static const struct event_row {
    enum ibv_event_type type;
    const char *means;            /* %s: the port, queue pair or device       */
    const char *look;
} rows[] = {
    { IBV_EVENT_SM_CHANGE, "another subnet manager rules the network of %s",
      "see its log" },
    { IBV_EVENT_CLIENT_REREGISTER, "the subnet manager of %s has started anew",
      "see its log" },
    { IBV_EVENT_PKEY_CHANGE, "the partitions of %s have changed",
      "see the partitions of the subnet manager" },
    { IBV_EVENT_LID_CHANGE, "%s has another LID now",
      "the subnet manager did that; start the job again" },
    { IBV_EVENT_GID_CHANGE, "the addresses of %s have changed",
      "was its network interface set up anew?" },
    { IBV_EVENT_PORT_ERR, "%s went down",
      "is the cable in, and the interface and switch port up?" },
    { IBV_EVENT_QP_REQ_ERR, "%s got a request it cannot carry out",
      "versions differ?" },
    { IBV_EVENT_QP_ACCESS_ERR, "%s refused an access to its memory",
      "a peer's context is damaged" },
    { IBV_EVENT_QP_FATAL, "%s failed", "see the kernel log" },
    { IBV_EVENT_CQ_ERR, "the completion queue of %s overflowed",
      "a bug, or a device with too few entries: max_cqe in ibv_devinfo -v" },
    { IBV_EVENT_DEVICE_FATAL, "%s failed altogether",
      "see the kernel log; it has to be reset" }
};

static int event_weight(enum ibv_event_type type)
{
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (rows[i].type == type)
            return (int)i + 1;
    return 0;
}

static bool event_is_of_port(enum ibv_event_type type)
{
    return type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE
        || type == IBV_EVENT_LID_CHANGE || type == IBV_EVENT_PKEY_CHANGE
        || type == IBV_EVENT_SM_CHANGE || type == IBV_EVENT_GID_CHANGE
        || type == IBV_EVENT_CLIENT_REREGISTER;
}

static bool event_is_of_queue(enum ibv_event_type type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR
        || type == IBV_EVENT_QP_ACCESS_ERR;
}

/* The rank to which the queue pair leads; -1: it is the one for datagrams. */
static int event_rank(const struct dtn_verbs *verbs, const struct ibv_qp *qp)
{
    for (int i = 0; i < verbs->nmet; i++)
        for (int q = 0; q < verbs->met[i]->nqueues; q++)
            if (verbs->met[i]->queue[q].qp == qp)
                return verbs->met[i]->rank;
    return -1;
}

bool dtn_verbs_gid_gone(const struct dtn_verbs_device *device)
{
    union ibv_gid gid;

    return device->gid_index >= 0
        && (ibv_query_gid(device->context, (uint8_t)device->port,
                          device->gid_index, &gid) != 0
            || memcmp(gid.raw, device->gid.raw, sizeof gid.raw) != 0);
}

void dtn_verbs_events_take(struct dtn_verbs_device *device,
                           enum ibv_event_type type, int rank, int64_t now_ns)
{
    struct dtn_verbs_events *events = &device->events;

    events->number++;
    if (type == IBV_EVENT_PORT_ACTIVE && events->any
        && events->last == IBV_EVENT_PORT_ERR)
        events->any = false;      /* it is up again                           */
    if (event_weight(type) == 0
        || (events->any && event_weight(type) < event_weight(events->last)))
        return;
    events->any = true;
    events->last = type;
    events->rank = rank;
    events->at_ns = now_ns;
}

/* Is our GID gone for good?  Without it no packet arrives, and the device may
 * repeat for ever.  An interface that is configured again gets its address back
 * within the grace period.
 */
static bool events_homeless(struct dtn_verbs_device *device, int64_t now_ns)
{
    struct dtn_verbs_events *events = &device->events;

    if (events->gid_gone_ns == 0 || now_ns - events->gid_gone_ns < GID_GRACE_NS)
        return false;
    if (dtn_verbs_gid_gone(device))
        return true;
    events->gid_gone_ns = 0;
    return false;
}

/* Note one event, unless it is about another port or another GID. */
static void events_hear(struct dtn_verbs *verbs,
                        struct dtn_verbs_device *device,
                        struct ibv_async_event *event)
{
    const enum ibv_event_type type = event->event_type;
    const int64_t now = dtn_now_ns();
    int rank = event_is_of_queue(type) ? event_rank(verbs, event->element.qp)
             : -1;
    bool ours = !event_is_of_port(type)
             || event->element.port_num == device->port;

    ibv_ack_async_event(event);
    if (!ours || (type == IBV_EVENT_GID_CHANGE && !dtn_verbs_gid_gone(device)))
        return;
    if (type == IBV_EVENT_GID_CHANGE)
        device->events.gid_gone_ns = now;
    dtn_verbs_events_take(device, type, rank, now);
    dtn_log(verbs->args.log, event_weight(type) ? DTN_LOG_WARN : DTN_LOG_DEBUG,
            "verbs: %s says: %s", device->name, ibv_event_type_str(type));
}

static int events_poll(struct dtn_verbs *verbs, struct dtn_verbs_device *device)
{
    const struct dtn_verbs_events *events = &device->events;
    struct ibv_async_event event;

    while (ibv_get_async_event(device->context, &event) == 0)
        events_hear(verbs, device, &event);
    if (events->any && (events->last == IBV_EVENT_DEVICE_FATAL
                        || events->last == IBV_EVENT_CQ_ERR))
        return DTENSOR_ENODEV;
    return events_homeless(device, dtn_now_ns()) ? DTENSOR_ENODEV : 0;
}

int dtn_verbs_events_poll(struct dtn_verbs *verbs)
{
    int rc = 0;

    for (int k = 0; k < verbs->nrails && rc == 0; k++)
        rc = events_poll(verbs, &verbs->rail[k].device);
    return rc;
}

const char *dtn_verbs_events_words(const struct dtn_verbs_device *device,
                                   char *buf, size_t size)
{
    const struct dtn_verbs_events *events = &device->events;
    const struct event_row *row;
    char subject[IBV_SYSFS_NAME_MAX + 48], when[32];
    size_t used;

    if (!events->any)
        return NULL;
    row = &rows[event_weight(events->last) - 1];
    if (event_is_of_port(events->last))
        snprintf(subject, sizeof subject, "port %d of %s", device->port,
                 device->name);
    else if (event_is_of_queue(events->last) && events->rank >= 0)
        snprintf(subject, sizeof subject, "the queue pair for rank %d on %s",
                 events->rank, device->name);
    else if (event_is_of_queue(events->last))
        snprintf(subject, sizeof subject, "the datagram queue pair on %s",
                 device->name);
    else
        snprintf(subject, sizeof subject, "%s", device->name);
    used = strcspn(row->means, "%");
    dtn_format_time(dtn_now_ns() - events->at_ns, when, sizeof when);
    snprintf(buf, size, "%.*s%s%s %s ago (%s)", (int)used, row->means, subject,
             row->means + used + 2, when, row->look);
    return buf;
}
