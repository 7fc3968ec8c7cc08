/* boot_route.c - the way up
 *
 * A rank may start before its parent listens, so it knocks again and again:
 * after 0.5 ms, 1 ms, 2 ms, ... 20 ms.  On one host, where a refused knock
 * costs a few microseconds, four ranks find each other within the time it
 * takes to start them.
 *
 * When half of connect_timeout has passed in vain, a second route is tried,
 * round the parent to the ancestors: only to be heard by rank 0, and to hear
 * its verdict.  A job of 1024 ranks that lacks one host near the root then
 * names that host, not the hundreds of ranks behind it.  The parent may
 * still come: the first route goes on.
 */
#include "net/boot.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void boot_route_init(struct boot_route *route, int target, int64_t now)
{
    memset(route, 0, sizeof *route);
    frame_init(&route->link.io, -1, false);
    route->link.rank = target;
    route->target = target;
    route->resolved = -1;
    route->next_ns = now;
    route->pause_ns = BOOT_RETRY_FIRST_NS;
}

void boot_route_close(struct boot_route *route)
{
    frame_close(&route->link.io);
    route->link.state = LINK_IDLE;
    route->target = -1;
}

/* This attempt came to nothing: the next one, and to whom. */
static void route_again(struct dtn_boot *boot, struct boot_route *route)
{
    frame_close(&route->link.io);
    route->link.state = LINK_IDLE;
    route->next_ns = dtn_now_ns() + route->pause_ns;
    route->pause_ns *= 2;
    if (route->pause_ns > BOOT_RETRY_LAST_NS)
        route->pause_ns = BOOT_RETRY_LAST_NS;
    if (route != &boot->aside)
        return;
    route->target = boot_tree_parent(boot, route->target);
    if (route->target < 0)
        route->target = boot_tree_grandparent(boot, boot->rank);
    route->link.rank = route->target;
}

static void route_hello(struct dtn_boot *boot, struct boot_route *route)
{
    unsigned char body[FRAME_HELLO_BYTES + DTN_HOST_MAX];
    const char *host = boot->hosts[boot->host]->name;
    size_t n = strnlen(host, DTN_HOST_MAX - 1);
    struct frame frame = { .type = FRAME_HELLO, .body = body,
                           .size = (uint32_t)(FRAME_HELLO_BYTES + n) };
    struct boot_link *link = &route->link;

    frame_put32(body, (uint32_t)boot->rank);
    frame_put32(body + 4, (uint32_t)boot->cluster->world_size);
    frame_put32(body + 8, (uint32_t)getpid());
    frame_put32(body + 12, route == &boot->aside);
    frame_put64(body + 16, boot->digest);
    memcpy(body + FRAME_HELLO_BYTES, host, n);
    link->state = LINK_GREETING;
    link->io.accepts = FRAME_BIT(FRAME_WELCOME) | FRAME_BIT(FRAME_FAIL);
    link->forwarded = BOOT_ENTRY_HEAD + BOOT_WHO_BYTES;   /* HELLO has it    */
    if (!frame_post(&link->io, &frame, false))
        boot_fail_nomem(boot);
}

static void route_knock(struct dtn_boot *boot, struct boot_route *route)
{
    bool local = boot_tree_same_host(boot, boot->rank, route->target);
    struct dtensor_error error;
    int fd = -1, rc;

    rc = local ? boot_socket_connect_local(boot, &fd, &error)
               : boot_socket_connect_tcp(boot, route, &fd, &error);
    if (rc == DTENSOR_EAGAIN) {
        route_again(boot, route);
        return;
    }
    if (rc != 0) {
        route->target = -1;
        boot_fail_condemn(boot, &error);
        return;
    }
    frame_init(&route->link.io, fd, local);
    route->link.state = LINK_CONNECTING;
    route->link.since_ns = dtn_now_ns();
}

static void route_connecting(struct dtn_boot *boot, struct boot_route *route)
{
    struct pollfd p = { route->link.io.fd, POLLOUT, 0 };

    if (poll(&p, 1, 0) == 1) {
        if (boot_socket_connected(p.fd) == 0)
            route_hello(boot, route);
        else
            route_again(boot, route);
    } else if (dtn_now_ns() - route->link.since_ns > BOOT_HANDSHAKE_NS) {
        route_again(boot, route);
    }
}

/* Taken as a child.  HELLO and WELCOME are the place for mutual
 * authentication: a nonce in either, and a proof over both nonces, the job
 * and the digest before anything below is sent or believed.
 */
static void route_welcome(struct dtn_boot *boot, struct boot_route *route,
                          const struct frame *frame)
{
    struct boot_link *link = &route->link;

    if (frame->size < 4 || frame_get32(frame->body) != (uint32_t)link->rank) {
        route_again(boot, route);
        return;
    }
    link->state = LINK_JOINED;
    link->io.accepts = FRAME_BIT(FRAME_ASK) | FRAME_BIT(FRAME_FAIL);
    if (route == &boot->up)
        link->io.accepts |= FRAME_BIT(FRAME_ALL);
    if (boot->state == BOOT_CONDEMNED)
        boot_fail_send(boot, link);
    if (boot->expired)
        boot_route_post(boot, FRAME_EXPIRED, NULL, 0);
}

/* Rank 0 wants to see a rank's identity: this one's, or of one below. */
static void route_asked(struct dtn_boot *boot, const struct frame *frame)
{
    unsigned char *body;
    size_t n;

    if (frame->size != 4 || !boot->identity)
        return;
    if (frame_get32(frame->body) != (uint32_t)boot->rank) {
        for (int i = 0; i < boot->nchildren; i++)
            if (boot->children[i].state == LINK_JOINED)
                frame_post(&boot->children[i].io, frame, false);
        return;
    }
    n = strlen(boot->identity);
    body = malloc(4 + n);
    if (!body)
        return;                      /* the verdict does without             */
    frame_put32(body, (uint32_t)boot->rank);
    memcpy(body + 4, boot->identity, n);
    boot_route_post(boot, FRAME_IDENTITY, body, 4 + n);
    free(body);
}

static void route_frame(struct dtn_boot *boot, struct boot_route *route,
                        const struct frame *frame)
{
    struct dtensor_error error;

    switch (frame->type) {
    case FRAME_WELCOME:
        route_welcome(boot, route, frame);
        break;
    case FRAME_ASK:
        route_asked(boot, frame);
        break;
    case FRAME_ALL:
        boot_gather_all(boot, &route->link, frame);
        break;
    case FRAME_FAIL:
        if (boot_fail_parse(frame, &error))
            boot_fail_final(boot, &error);
        else
            boot_fail_garbage(boot, route->target);
        break;
    default:
        break;
    }
}

/* The parent is lost.  When that is not its doing it is told why; it has read
 * HELLO by then, so it knows who speaks.
 */
static void route_lost(struct dtn_boot *boot, struct boot_route *route,
                       enum frame_got got)
{
    int rank = route->target;

    if (got == FRAME_CLOSED) {
        boot_route_close(route);
        boot_fail_closed(boot, rank);
        return;
    }
    if (got == FRAME_NOMEM)
        boot_fail_nomem(boot);
    else if (got == FRAME_NOFDS)
        boot_fail_nofds(boot);
    else
        boot_fail_garbage(boot, rank);
    if (route->link.state == LINK_GREETING)
        boot_fail_send(boot, &route->link);
    frame_flush(&route->link.io);
    boot_route_close(route);
    boot_fail_final(boot, &boot->failure);
}

static void route_read(struct dtn_boot *boot, struct boot_route *route)
{
    struct frame frame;
    enum frame_got got;

    while (boot->state != BOOT_PARTING) {
        got = frame_recv(&route->link.io, &frame);
        if (got == FRAME_MORE)
            return;
        if (got != FRAME_READY) {
            if (got == FRAME_NOMEM || got == FRAME_NOFDS ||
                (route->link.state == LINK_JOINED && route == &boot->up))
                route_lost(boot, route, got);
            else
                route_again(boot, route);
            return;
        }
        route_frame(boot, route, &frame);
    }
}

void boot_route_turn(struct dtn_boot *boot, struct boot_route *route)
{
    if (route->target < 0 || boot->state == BOOT_PARTING)
        return;
    if (route->link.state == LINK_IDLE && dtn_now_ns() >= route->next_ns &&
        (route == &boot->up || boot->up.link.state != LINK_JOINED))
        route_knock(boot, route);
    if (route->link.state == LINK_CONNECTING)
        route_connecting(boot, route);
    if (route->link.state == LINK_GREETING || route->link.state == LINK_JOINED)
        route_read(boot, route);
}

int64_t boot_route_wake(const struct dtn_boot *boot,
                        const struct boot_route *route)
{
    if (route->target < 0 || boot->state == BOOT_PARTING)
        return INT64_MAX;
    if (route->link.state == LINK_CONNECTING)
        return route->link.since_ns + BOOT_HANDSHAKE_NS;
    if (route->link.state == LINK_IDLE &&
        (route == &boot->up || boot->up.link.state != LINK_JOINED))
        return route->next_ns;
    return INT64_MAX;
}

void boot_route_post(struct dtn_boot *boot, enum frame_type type,
                     const void *body, size_t size)
{
    const struct frame frame = { .type = type, .seq = boot->seq, .body = body,
                                 .size = (uint32_t)size };

    if ((boot->up.link.state == LINK_JOINED &&
         !frame_post(&boot->up.link.io, &frame, false)) ||
        (boot->aside.link.state == LINK_JOINED &&
         !frame_post(&boot->aside.link.io, &frame, false)))
        boot_fail_nomem(boot);
}
