/* route.c - connections toward rank 0
 *
 * A rank may start before its parent listens, so it retries to connect after
 * 0.5 ms, 1 ms, 2 ms, ... 20 ms.  On one host a refused attempt costs a few
 * microseconds, so four ranks find each other within the time it takes to start
 * them.
 *
 * After half of connect_timeout a second route is tried, around the parent to
 * its ancestors, so that rank 0 knows of this rank and can send its decision.
 * A job of 1024 ranks that lacks one host near the root then names that host,
 * not the hundreds of ranks behind it.  The first route continues, because the
 * parent may still start.  A rank whose parent has closed its connection uses
 * the second route at once, to report that.
 *
 * A rank that cannot take part, for example because its port is in use, sends
 * its error the same ways: up, around the parent, and down to the leaders of
 * its child hosts, which cannot connect to it because it does not listen.  Such
 * a connection never counts as joining.
 */
#include "boot/route.h"
#include "base/wait.h"
#include "boot/child.h"
#include "boot/fail.h"
#include "boot/frame.h"
#include "boot/gather.h"
#include "boot/knock.h"
#include "boot/link.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/watch.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first rank that the second route tries: the grandparent.  For a rank that
 * fails it is the parent.
 */
static int route_first_aside(const struct dtn_boot *boot)
{
    return boot->unfit ? dtn_boot_tree_parent(boot, boot->rank)
         : dtn_boot_tree_grandparent(boot, boot->rank);
}

/* An attempt has failed: plan the next one, and its target. */
static void route_again(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    dtn_frame_close(&route->link.io);
    route->link.state = DTN_LINK_IDLE;
    route->next_ns = dtn_now_ns() + route->pause_ns;
    route->pause_ns *= 2;
    if (route->pause_ns > DTN_BOOT_RETRY_LAST_NS)
        route->pause_ns = DTN_BOOT_RETRY_LAST_NS;
    if (route != &boot->aside)
        return;
    route->target = dtn_boot_tree_parent(boot, route->target);
    if (route->target < 0)
        route->target = route_first_aside(boot);
    route->link.rank = route->target;
}

static void route_hello(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    unsigned char
        body[DTN_FRAME_HELLO_BYTES + DTN_HOST_MAX + DTN_FRAME_JOB_MAX];
    struct dtn_frame frame = { .type = DTN_FRAME_HELLO, .body = body };
    struct dtn_boot_link *link = &route->link;

    frame.size = (uint32_t)dtn_boot_link_hello(
        boot, route != &boot->up || boot->unfit, body);
    link->state = DTN_LINK_GREETING;
    link->io.accepts =
        DTN_FRAME_BIT(DTN_FRAME_WELCOME) | DTN_FRAME_BIT(DTN_FRAME_FAIL);
    link->forwarded = DTN_BOOT_ENTRY_HEAD + DTN_BOOT_WHO_BYTES; /* in HELLO */
    if (!dtn_frame_post(&link->io, &frame, false))
        dtn_boot_fail_nomem(boot);
}

static void route_lost(struct dtn_boot *boot, struct dtn_boot_route *route,
                       enum dtn_frame_got got);

/* This rank cannot connect.  The next attempt may succeed, only to tell why
 * this one failed; the second failure is the last.
 */
static void route_refused(struct dtn_boot *boot, struct dtn_boot_route *route,
                          const struct dtensor_error *error)
{
    if (boot->failure.code == 0 && route == &boot->up) {
        route_again(boot, route);
        dtn_boot_fail_own(boot, error);
        return;
    }
    route->target = -1;
    dtn_boot_fail_propose(boot, error);
}

static void route_connect(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    bool local = route == &boot->up &&
                 dtn_boot_tree_same_host(boot, boot->rank, route->target);
    struct dtensor_error error;
    int fd = -1, rc;

    rc = local ? dtn_boot_socket_connect_local(boot, &fd, &route->link.pid,
                                               &error)
               : dtn_boot_socket_connect_tcp(boot, route, &fd, &error);
    if (rc == DTENSOR_EAGAIN) {
        if (local && dtn_boot_socket_dead(route->link.pid))
            route_lost(boot, route, DTN_FRAME_CLOSED);
        else
            route_again(boot, route);
        return;
    }
    if (rc != 0) {
        route_refused(boot, route, &error);
        return;
    }
    dtn_frame_init(&route->link.io, fd, local);
    route->link.state = DTN_LINK_CONNECTING;
    route->link.since_ns = dtn_now_ns();
}

/* Ask who is there. */
static void route_knock(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    if (!dtn_boot_knock(boot, &route->link))
        dtn_boot_fail_nomem(boot);
    route->link.state = DTN_LINK_KNOCKING;
    route->link.since_ns = dtn_now_ns();
}

static void route_connecting(struct dtn_boot *boot,
                             struct dtn_boot_route *route)
{
    struct pollfd p = { route->link.io.fd, POLLOUT, 0 };

    if (poll(&p, 1, 0) == 1) {
        if (dtn_boot_socket_connected(p.fd) != 0)
            route_again(boot, route);
        else if (route->link.io.local)
            route_hello(boot, route);
        else
            route_knock(boot, route);
    } else if (dtn_now_ns() - route->link.since_ns > DTN_BOOT_HANDSHAKE_NS) {
        route_again(boot, route);
    }
}

/* The parent has accepted this rank. */
static void route_welcome(struct dtn_boot *boot, struct dtn_boot_route *route,
                          const struct dtn_frame *frame)
{
    struct dtn_boot_link *link = &route->link;

    if (frame->size < 4 ||
        dtn_frame_get32(frame->body) != (uint32_t)link->rank) {
        route_again(boot, route);
        return;
    }
    boot->foreign_ns = 0;
    link->state = DTN_LINK_JOINED;
    link->io.accepts =
        DTN_FRAME_BIT(DTN_FRAME_ASK) | DTN_FRAME_BIT(DTN_FRAME_FAIL)
        | DTN_FRAME_BIT(DTN_FRAME_EXPIRED);
    if (route == &boot->up)
        link->io.accepts |= DTN_FRAME_BIT(DTN_FRAME_ALL);
    if (boot->state == DTN_BOOT_FAILING)
        dtn_boot_fail_send(boot, link);
    if (boot->expired && !dtn_boot_fail_post_expired(boot))
        dtn_boot_fail_nomem(boot);
}

/* Rank 0 asks for an identity: that of this rank, or of one below it. */
static void route_asked(struct dtn_boot *boot, const struct dtn_frame *frame)
{
    unsigned char *body;
    size_t n;

    if (frame->size != 4 || !boot->identity)
        return;
    if (dtn_frame_get32(frame->body) != (uint32_t)boot->rank) {
        dtn_boot_link_ask(boot, frame);
        return;
    }
    n = strlen(boot->identity);
    body = malloc(4 + n);
    if (!body)
        return;                      /* rank 0 decides without it            */
    dtn_frame_put32(body, (uint32_t)boot->rank);
    memcpy(body + 4, boot->identity, n);
    if (!dtn_boot_link_post(boot, DTN_FRAME_IDENTITY, body, 4 + n))
        dtn_boot_fail_nomem(boot);
    free(body);
}

/* Another job has the parent's port, or who cannot prove that it belongs to
 * this one: retry for a while.  The rank of this job there may be about to get
 * the port, or to report that it cannot.
 */
static void route_foreign(struct dtn_boot *boot, struct dtn_boot_route *route,
                          const struct dtensor_error *error)
{
    int64_t now = dtn_now_ns();

    if (boot->foreign_ns == 0)
        boot->foreign_ns = now;
    route_again(boot, route);
    if (now - boot->foreign_ns > DTN_BOOT_OTHER_NS)
        dtn_boot_fail_final(boot, boot->failure.code != 0 ? &boot->failure
                                                          : error);
}

/* The other side knocked: prove that this rank belongs to the job. */
static void route_knocked(struct dtn_boot *boot, struct dtn_boot_route *route,
                          const struct dtn_frame *frame)
{
    struct dtensor_error error;
    bool foreign;

    if (dtn_boot_knock_prove(boot, &route->link, frame, &foreign, &error) == 0)
        route_hello(boot, route);
    else
        route_foreign(boot, route, &error);
}

/* The other side refused this rank, in clear; or what came is not sealed with
 * the key of this connection.
 */
static void route_refused_by(struct dtn_boot *boot,
                             struct dtn_boot_route *route, uint32_t reason)
{
    struct dtensor_error error;

    dtn_boot_knock_refused(boot, route->target, reason, &error);
    route_foreign(boot, route, &error);
}

static void route_frame(struct dtn_boot *boot, struct dtn_boot_route *route,
                        const struct dtn_frame *frame)
{
    struct dtensor_error error;

    switch (frame->type) {
    case DTN_FRAME_KNOCK:
        route_knocked(boot, route, frame);
        break;
    case DTN_FRAME_REFUSED:
        route_refused_by(boot, route, frame->size >= 4
                                      ? dtn_frame_get32(frame->body) : 0);
        break;
    case DTN_FRAME_WELCOME:
        route_welcome(boot, route, frame);
        break;
    case DTN_FRAME_ASK:
        route_asked(boot, frame);
        break;
    case DTN_FRAME_EXPIRED:
        if (frame->seq == boot->seq)
            dtn_boot_fail_expire(boot, dtn_now_ns());
        break;
    case DTN_FRAME_ALL:
        dtn_boot_gather_all(boot, &route->link, frame);
        break;
    case DTN_FRAME_FAIL:
        if (dtn_boot_fail_parse(frame, &error))
            dtn_boot_fail_final(boot, &error);
        else
            dtn_boot_fail_garbage(boot, route->target);
        break;
    default:
        dtn_watch_frame(boot, &route->link, frame);
        break;
    }
}

/* The parent is lost.  If the parent did not cause this, it is sent the reason.
 * It has read HELLO before, so it knows the sender.
 */
static void route_lost(struct dtn_boot *boot, struct dtn_boot_route *route,
                       enum dtn_frame_got got)
{
    int rank = route->target;

    if (got == DTN_FRAME_CLOSED) {
        dtn_boot_route_close(route);
        boot->aside.next_ns = dtn_now_ns();
        boot->aside.pause_ns = DTN_BOOT_RETRY_FIRST_NS;
        dtn_boot_fail_closed(boot, rank);
        return;
    }
    if (got == DTN_FRAME_NOMEM)
        dtn_boot_fail_nomem(boot);
    else if (got == DTN_FRAME_NOFDS)
        dtn_boot_fail_nofds(boot);
    else
        dtn_boot_fail_garbage(boot, rank);
    if (route->link.state == DTN_LINK_GREETING)
        dtn_boot_fail_send(boot, &route->link);
    dtn_frame_flush(&route->link.io);
    dtn_boot_route_close(route);
    dtn_boot_fail_final(boot, &boot->failure);
}

static void route_read(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    struct dtn_frame frame;
    enum dtn_frame_got got;
    uint32_t reason;

    while (boot->state != DTN_BOOT_DRAINING) {
        got = dtn_frame_recv(&route->link.io, &frame);
        if (got == DTN_FRAME_MORE)
            return;
        if (got == DTN_FRAME_GARBAGE &&
            dtn_frame_refused(&route->link.io, &reason)) {
            route_refused_by(boot, route, reason);
            return;
        }
        if (got != DTN_FRAME_READY) {
            if (got == DTN_FRAME_NOMEM || got == DTN_FRAME_NOFDS ||
                (route->link.state == DTN_LINK_JOINED && route == &boot->up))
                route_lost(boot, route, got);
            else
                route_again(boot, route);
            return;
        }
        route_frame(boot, route, &frame);
        if (route->link.state == DTN_LINK_IDLE)
            return;
    }
}

/* What took the connection does not say who it is: another attempt. */
static void route_tire(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    if (route->link.state == DTN_LINK_KNOCKING &&
        dtn_now_ns() - route->link.since_ns > DTN_BOOT_HANDSHAKE_NS)
        route_again(boot, route);
}

void dtn_boot_route_progress(struct dtn_boot *boot,
                             struct dtn_boot_route *route)
{
    if (route->target < 0 || boot->state == DTN_BOOT_DRAINING)
        return;
    if (route->link.state == DTN_LINK_IDLE && dtn_now_ns() >= route->next_ns &&
        (route == &boot->up || boot->up.link.state != DTN_LINK_JOINED))
        route_connect(boot, route);
    if (route->link.state == DTN_LINK_CONNECTING)
        route_connecting(boot, route);
    if (route->link.state >= DTN_LINK_KNOCKING)
        route_read(boot, route);
    route_tire(boot, route);
}

/* ----------------------------------------------------------------- down --- */

static bool route_is_down(const struct dtn_boot *boot,
                          const struct dtn_boot_route *route)
{
    return route == &boot->down[0] || route == &boot->down[1];
}

/* The leader has received the failure, or knew it. */
static void route_delivered(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    dtn_boot_child_arrived(boot, route->target);
    dtn_boot_route_close(route);
}

static void route_greet_down(struct dtn_boot *boot,
                             struct dtn_boot_route *route)
{
    struct dtn_frame frame;
    enum dtn_frame_got got = dtn_frame_recv(&route->link.io, &frame);
    struct dtensor_error ignored;
    bool foreign;

    if (got == DTN_FRAME_MORE)
        return;
    if (got != DTN_FRAME_READY || frame.type == DTN_FRAME_REFUSED) {
        route_again(boot, route);
    } else if (frame.type == DTN_FRAME_KNOCK) {
        if (dtn_boot_knock_prove(boot, &route->link, &frame, &foreign,
                                 &ignored) == 0)
            route_hello(boot, route);
        else
            route_again(boot, route);
    } else if (frame.type == DTN_FRAME_WELCOME) {
        dtn_boot_fail_send(boot, &route->link);
        route->link.state = DTN_LINK_JOINED;
    } else {
        route_delivered(boot, route);
    }
}

void dtn_boot_route_down(struct dtn_boot *boot, struct dtn_boot_route *route)
{
    if (route->target < 0)
        return;
    if (route->link.state == DTN_LINK_IDLE && dtn_now_ns() >= route->next_ns)
        route_connect(boot, route);
    if (route->link.state == DTN_LINK_CONNECTING)
        route_connecting(boot, route);
    if (route->link.state == DTN_LINK_KNOCKING ||
        route->link.state == DTN_LINK_GREETING)
        route_greet_down(boot, route);
    route_tire(boot, route);
    if (route->link.state == DTN_LINK_JOINED &&
        dtn_frame_flush(&route->link.io) != DTN_FRAME_MORE)
        route_delivered(boot, route);
}

int64_t dtn_boot_route_wake(const struct dtn_boot *boot,
                            const struct dtn_boot_route *route)
{
    if (route->target < 0 ||
        (boot->state == DTN_BOOT_DRAINING && !route_is_down(boot, route)))
        return INT64_MAX;
    if (route->link.state == DTN_LINK_CONNECTING ||
        route->link.state == DTN_LINK_KNOCKING)
        return route->link.since_ns + DTN_BOOT_HANDSHAKE_NS + DTN_BOOT_MS;
    if (route->link.state == DTN_LINK_IDLE &&
        (route != &boot->aside || boot->up.link.state != DTN_LINK_JOINED))
        return route->next_ns;
    return INT64_MAX;
}
