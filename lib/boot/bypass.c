/* bypass.c - a connection around a silent link between two hosts
 *
 * Host 0 and host 2 receive nothing from each other.  Host 0 reports this to
 * host 1, which connects to host 2; host 2 listens since the link became
 * silent:
 *
 *          0                    0
 *         / x                  /
 *        1   2                1 --- 2
 *
 * Over host 1, hosts 0 and 2 learn that the other one still runs (silence.c).
 * If host 0 is dead, hosts 1 and 2 connect in the same way and agree on that.
 *
 * The host that connects is the parent of the upper host of the silent link.
 * If the upper host is the root, it is the root's other child.  If both
 * children lose the root, the second connects to the first.  So no part of the
 * tree is connected twice, and flooded messages come to an end.
 *
 * No host listens before a link is silent.  A host that connects must prove
 * that it belongs to the job, as when ranks join (knock.c).
 *
 * Host 1 may still be joining when host 2 has lost the root, or be lost too.
 * Then nobody connects to host 2, and nobody answers it.  But the kernel of a
 * reachable host refuses its connections.  So host 2 tries to connect to host 1
 * and to two others.  A refusal shows that host 2 is not cut off; and if host 1
 * did not answer, hosts 0 and 1 are both lost.
 */
#include "boot/bypass.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/knock.h"
#include "boot/link.h"
#include "boot/listen.h"
#include "boot/news.h"
#include "boot/silence.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS (20 * DTN_BOOT_MS)
#define NEVER INT64_MAX

enum { WITNESSES = 2, OUTS = 5 + WITNESSES, INS = 4, SUSPECTS = 3 };

struct dtn_bypass {
    struct dtn_boot_route out[OUTS];  /* [nout] to hosts behind a neighbour   */
    int nout;                         /* the most that can be needed          */
    struct dtn_boot_link in[INS];     /* who connected and has proved nothing */
    int64_t until_ns;                 /* when all this ends; 0: it is over    */
    struct bypass_suspect {
        int rank;                     /* the silent leader                    */
        int64_t until_ns;             /* when its host counts as dead         */
    } suspect[SUSPECTS];              /* [nsuspects]                          */
    int nsuspects;                    /* neighbours in the tree               */
    int nread;                        /* silences that were looked at         */
    uint32_t asked;                   /* bits of `out`: only asked for a sign */
    uint32_t there;                   /* bits of `out`: their hosts answered  */
    struct dtn_boot_addrs at;         /* where this host listens              */
};

/* The place of this rank in `out`, as a bit; 0: it is not there. */
static uint32_t bypass_bit(const struct dtn_bypass *bypass, int rank)
{
    for (int i = 0; bypass && i < bypass->nout; i++)
        if (bypass->out[i].target == rank)
            return UINT32_C(1) << i;
    return 0;
}

/* A connection was tried.  A kernel that refuses it, as before its rank has
 * joined, answers too: so this host is not cut off.
 */
static void bypass_tried(struct dtn_boot *boot, int rank, int error)
{
    if (error != 0 && error != ECONNREFUSED)
        return;
    boot->answered = true;
    boot->bypass->there |= bypass_bit(boot->bypass, rank);
}

/* Connect to the host of this rank, which has lost its parent. */
static void bypass_call(struct dtn_boot *boot, int rank)
{
    const int64_t now = dtn_now_ns();
    struct dtn_bypass *bypass = boot->bypass;

    for (int i = 0; bypass && i < bypass->nout; i++)
        if (bypass->out[i].target == rank && bypass->out[i].next_ns == NEVER) {
            bypass->out[i].next_ns = now;
            bypass->until_ns = now + 2 * dtn_silence_patience_ns(boot);
        }
}

/* The link from a leader to a child host is silent: connect to that host if it
 * is this rank's task.
 */
static void bypass_help(struct dtn_boot *boot,
                        const struct dtn_silence *silence)
{
    const int from = silence->from, of = silence->of;

    if (dtn_boot_tree_parent(boot, of) == from && boot->rank != from
        && boot->rank != of
        && (from == 0 ? of == dtn_boot_tree_other(boot)
            : dtn_boot_tree_parent(boot, from) == boot->rank))
        bypass_call(boot, of);
}

/* -------------------------------------------------------------- silence --- */

/* The parent is silent. */
static void bypass_orphan(struct dtn_boot *boot, int parent)
{
    const int other = dtn_boot_tree_other(boot);

    dtn_boot_listen_again(boot, &boot->bypass->at);
    bypass_call(boot, other);
    if (parent > 0 || boot->rank < other)
        boot->bypass->asked |= bypass_bit(boot->bypass, other);
    for (int i = 0; i < WITNESSES; i++)
        bypass_call(boot, dtn_boot_tree_witness(boot, i));
}

static void bypass_begin(struct dtn_boot *boot, int rank)
{
    struct dtn_bypass *bypass = boot->bypass;
    const int64_t until_ns = dtn_now_ns() + dtn_silence_patience_ns(boot);

    if (bypass->nsuspects == 0) {
        boot->answered = false;
        bypass->there = 0;
    }
    bypass->suspect[bypass->nsuspects++] =
        (struct bypass_suspect){ rank, until_ns };
    if (bypass->until_ns < until_ns)
        bypass->until_ns = until_ns;
    if (dtn_boot_tree_parent(boot, boot->rank) == rank) {
        bypass_orphan(boot, rank);
        return;
    }
    for (int i = 0; i < 2; i++)
        bypass_call(boot, dtn_boot_tree_below(boot, rank, i));
}

void dtn_bypass_silent(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    const int rank = link->rank;

    if (!link->detour)
        dtn_silence_note(boot, NULL, boot->rank, rank);
    dtn_frame_close(&link->io);
    link->state = DTN_LINK_IDLE;
    if (link->detour)
        return;
    if (!boot->bypass || boot->bypass->nsuspects == SUSPECTS)
        dtn_silence_judge(boot, rank);
    else
        bypass_begin(boot, rank);
}

/* ----------------------------------------------------------- connecting --- */

/* It belongs to the tree from now on: it gets what the others have heard. */
static void bypass_adopt(struct dtn_boot *boot, struct dtn_boot_link *link,
                         int rank)
{
    const size_t n = (size_t)boot->nchildren + 1;
    struct dtn_boot_link *children, *child;

    children = realloc(boot->children, n * sizeof *children);
    if (!children) {
        dtn_frame_close(&link->io);
        link->state = DTN_LINK_IDLE;
        return;
    }
    boot->children = children;
    boot->capacity = (int)n;
    child = &children[boot->nchildren++];
    *child = *link;
    dtn_frame_init(&link->io, -1, false);
    link->state = DTN_LINK_IDLE;
    child->rank = rank;
    child->detour = true;
    child->state = DTN_LINK_JOINED;
    bypass_tried(boot, rank, 0);
    child->io.accepts = DTN_FRAMES_WATCHED;
    dtn_silence_repeat(boot, child);
    dtn_news_repeat(boot, child);
}

static void bypass_again(struct dtn_boot_route *route, int64_t now)
{
    dtn_frame_close(&route->link.io);
    route->link.state = DTN_LINK_IDLE;
    route->next_ns = now + RETRY_NS;
}

static void bypass_connect(struct dtn_boot *boot, struct dtn_boot_route *route,
                           int64_t now)
{
    struct dtensor_error ignored;
    int fd;

    route->next_ns = now + RETRY_NS;
    if (dtn_boot_socket_connect_tcp(boot, route, &fd, &ignored) != 0) {
        bypass_tried(boot, route->target, errno);
        return;
    }
    dtn_frame_init(&route->link.io, fd, false);
    route->link.state = DTN_LINK_CONNECTING;
}

static void bypass_knock(struct dtn_boot *boot, struct dtn_boot_route *route,
                         int64_t now)
{
    struct pollfd p = { route->link.io.fd, POLLOUT, 0 };

    if (poll(&p, 1, 0) != 1)
        return;
    if (dtn_boot_socket_connected(p.fd) != 0) {
        bypass_tried(boot, route->target, errno);
        bypass_again(route, now);
    } else if (boot->bypass->asked
               & bypass_bit(boot->bypass, route->target)) {
        bypass_tried(boot, route->target, 0);
        bypass_again(route, now);
        route->next_ns = NEVER;
    } else if (!dtn_boot_knock(boot, &route->link)) {
        bypass_again(route, now);
    } else {
        route->link.state = DTN_LINK_KNOCKING;
    }
}

static bool bypass_hello(struct dtn_boot *boot, struct dtn_boot_route *route,
                         const struct dtn_frame *knock)
{
    unsigned char
        body[DTN_FRAME_HELLO_BYTES + DTN_HOST_MAX + DTN_FRAME_JOB_MAX];
    struct dtn_frame frame = { .type = DTN_FRAME_HELLO, .body = body };
    struct dtensor_error ignored;
    bool foreign;

    if (knock->type != DTN_FRAME_KNOCK
        || dtn_boot_knock_prove(boot, &route->link, knock, &foreign,
                                &ignored) != 0)
        return false;
    frame.size = (uint32_t)dtn_boot_link_hello(boot, true, body);
    route->link.io.accepts = DTN_FRAME_BIT(DTN_FRAME_WELCOME);
    route->link.state = DTN_LINK_GREETING;
    return dtn_frame_post(&route->link.io, &frame, false);
}

static void bypass_read(struct dtn_boot *boot, struct dtn_boot_route *route,
                        int64_t now)
{
    struct dtn_frame frame;
    enum dtn_frame_got got;

    dtn_frame_flush(&route->link.io);
    got = dtn_frame_recv(&route->link.io, &frame);
    if (got == DTN_FRAME_MORE)
        return;
    if (got == DTN_FRAME_READY && frame.type == DTN_FRAME_WELCOME) {
        route->next_ns = NEVER;
        bypass_adopt(boot, &route->link, route->target);
    } else if (got != DTN_FRAME_READY || !bypass_hello(boot, route, &frame)) {
        bypass_again(route, now);
    } else {
        dtn_frame_flush(&route->link.io);
    }
}

static void bypass_out(struct dtn_boot *boot, struct dtn_boot_route *route,
                       int64_t now)
{
    if (route->link.state == DTN_LINK_IDLE && now >= route->next_ns)
        bypass_connect(boot, route, now);
    if (route->link.state == DTN_LINK_CONNECTING)
        bypass_knock(boot, route, now);
    if (route->link.state >= DTN_LINK_KNOCKING)
        bypass_read(boot, route, now);
}

/* ------------------------------------------------------------ listening --- */

/* May this rank connect here? */
static bool bypass_knows(const struct dtn_boot *boot, uint32_t rank)
{
    const int up = dtn_boot_tree_parent(boot, boot->rank);

    if (rank >= (uint32_t)boot->cluster->world_size)
        return false;
    return up > 0 ? (int)rank == dtn_boot_tree_parent(boot, up)
         : up == 0 && (int)rank != boot->rank
           && dtn_boot_tree_parent(boot, (int)rank) == 0
           && dtn_boot_tree_leader(boot, (int)rank) == (int)rank;
}

static bool bypass_welcome(struct dtn_boot *boot, struct dtn_boot_link *link,
                           const struct dtn_frame *hello)
{
    unsigned char body[4];
    const struct dtn_frame frame = { .type = DTN_FRAME_WELCOME,
                                     .size = sizeof body, .body = body };
    uint32_t rank;

    if (hello->size < DTN_FRAME_HELLO_BYTES)
        return false;
    rank = dtn_frame_get32(hello->body);
    if (!bypass_knows(boot, rank)
        || dtn_frame_get64(hello->body + 16) != boot->digest)
        return false;
    dtn_frame_put32(body, (uint32_t)boot->rank);
    if (!dtn_frame_post(&link->io, &frame, false))
        return false;
    dtn_frame_flush(&link->io);
    bypass_adopt(boot, link, (int)rank);
    return true;
}

static void bypass_in(struct dtn_boot *boot, struct dtn_boot_link *link,
                      int64_t now)
{
    struct dtn_frame frame;
    enum dtn_frame_got got;
    bool good = now - link->since_ns < DTN_BOOT_HANDSHAKE_NS;

    while (good && link->state != DTN_LINK_IDLE) {
        got = dtn_frame_recv(&link->io, &frame);
        if (got == DTN_FRAME_MORE)
            return;
        good = got == DTN_FRAME_READY
            && (frame.type == DTN_FRAME_KNOCK
                ? dtn_boot_knock_answer(boot, link, &frame)
                : frame.type == DTN_FRAME_PROOF
                ? dtn_boot_knock_check(boot, link, &frame)
                : bypass_welcome(boot, link, &frame));
        dtn_frame_flush(&link->io);
    }
    dtn_frame_close(&link->io);
    link->state = DTN_LINK_IDLE;
}

/* The connection that is kept longest without a proof gives its place away. */
static void bypass_accept(struct dtn_boot *boot, int64_t now)
{
    struct dtn_bypass *bypass = boot->bypass;
    struct dtn_boot_link *link = bypass->in;
    struct dtensor_error ignored;
    int rc, fd = boot->tcp_fd < 0 ? -1
               : dtn_boot_socket_accept(boot, false, &ignored, &rc);

    if (fd < 0)
        return;
    for (int i = 0; i < INS; i++)
        if (bypass->in[i].state == DTN_LINK_IDLE
            || (link->state != DTN_LINK_IDLE
                && bypass->in[i].since_ns < link->since_ns))
            link = &bypass->in[i];
    dtn_frame_close(&link->io);
    memset(link, 0, sizeof *link);
    dtn_frame_init(&link->io, fd, false);
    link->io.accepts = DTN_FRAME_BIT(DTN_FRAME_KNOCK);
    link->state = DTN_LINK_KNOCKING;
    link->since_ns = now;
}

/* ------------------------------------------------------------- progress --- */

static void bypass_end(struct dtn_boot *boot)
{
    struct dtn_bypass *bypass = boot->bypass;

    bypass->until_ns = 0;
    for (int i = 0; i < bypass->nout; i++) {
        dtn_frame_close(&bypass->out[i].link.io);
        bypass->out[i].link.state = DTN_LINK_IDLE;
        bypass->out[i].next_ns = NEVER;
    }
    for (int i = 0; i < INS; i++) {
        dtn_frame_close(&bypass->in[i].io);
        bypass->in[i].state = DTN_LINK_IDLE;
    }
    dtn_boot_unlisten(boot);
}

/* The parent is lost.  So is the host that would connect to this one instead,
 * if it has not answered and others have.
 */
static void bypass_both(struct dtn_boot *boot, int parent)
{
    const int other = dtn_boot_tree_other(boot);

    if (dtn_boot_tree_parent(boot, boot->rank) == parent && other >= 0
        && boot->answered
        && !(boot->bypass->there & bypass_bit(boot->bypass, other)))
        dtn_silence_judge(boot, other);
}

static void bypass_decide(struct dtn_boot *boot, int64_t now)
{
    struct dtn_bypass *bypass = boot->bypass;

    for (int i = 0; i < bypass->nsuspects;) {
        const struct bypass_suspect suspect = bypass->suspect[i];

        if (now < suspect.until_ns) {
            i++;
            continue;
        }
        bypass->suspect[i] = bypass->suspect[--bypass->nsuspects];
        bypass_both(boot, suspect.rank);
        dtn_silence_judge(boot, suspect.rank);
    }
}

bool dtn_bypass_undecided(const struct dtn_boot *boot)
{
    return boot->bypass && boot->bypass->nsuspects > 0;
}

void dtn_bypass_progress(struct dtn_boot *boot, int64_t now)
{
    struct dtn_bypass *bypass = boot->bypass;

    for (; bypass && bypass->nread < boot->nsilences; bypass->nread++)
        bypass_help(boot, &boot->silences[bypass->nread]);
    if (!bypass || bypass->until_ns == 0)
        return;
    bypass_accept(boot, now);
    for (int i = 0; i < INS; i++)
        if (bypass->in[i].state != DTN_LINK_IDLE)
            bypass_in(boot, &bypass->in[i], now);
    for (int i = 0; i < bypass->nout; i++)
        bypass_out(boot, &bypass->out[i], now);
    bypass_decide(boot, now);
    if (now >= bypass->until_ns)
        bypass_end(boot);
}

/* ----------------------------------------------------------------- open --- */

static void bypass_may_call(struct dtn_boot *boot, int rank)
{
    struct dtn_bypass *bypass = boot->bypass;
    struct dtn_boot_route *route = &bypass->out[bypass->nout];
    struct dtensor_error ignored;

    if (rank < 0 || rank == boot->rank)
        return;
    dtn_boot_route_init(route, rank, NEVER);
    if (dtn_boot_socket_resolve(boot, rank, &route->addrs, &ignored) != 0)
        return;
    route->resolved = rank;
    bypass->nout++;
}

void dtn_bypass_open(struct dtn_boot *boot)
{
    const bool leads = boot->rank == dtn_boot_tree_leader(boot, boot->rank);
    struct dtensor_error ignored;

    if (!leads || boot->nhosts < 3)
        return;
    boot->bypass = calloc(1, sizeof *boot->bypass);
    if (!boot->bypass)
        return;
    dtn_boot_socket_resolve(boot, boot->rank, &boot->bypass->at, &ignored);
    for (int i = 0; i < INS; i++)
        dtn_frame_init(&boot->bypass->in[i].io, -1, false);
    if (boot->rank > 0)
        bypass_may_call(boot, dtn_boot_tree_other(boot));
    for (int i = 0; boot->rank > 0 && i < WITNESSES; i++) {
        const int rank = dtn_boot_tree_witness(boot, i);

        bypass_may_call(boot, rank);
        boot->bypass->asked |= bypass_bit(boot->bypass, rank);
    }
    for (int i = 0; i < 2 * dtn_boot_tree_child_hosts(boot); i++)
        bypass_may_call(boot, dtn_boot_tree_below(
            boot, dtn_boot_tree_child(boot, i / 2), i % 2));
}

void dtn_bypass_close(struct dtn_boot *boot)
{
    if (boot->bypass)
        bypass_end(boot);
    free(boot->bypass);
    boot->bypass = NULL;
}
