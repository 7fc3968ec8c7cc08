/* bypass.c - a connection around a silent link between two hosts
 *
 * Host 0 and host 2 receive nothing from each other.  Host 0 reports this to
 * host 1, which connects to the late listener of host 2 (late.c):
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
 * Host 1 may still be joining when host 2 has lost the root, or be lost too.
 * Then nobody connects to host 2, and nobody answers it.  But the kernel of a
 * reachable host refuses its connections.  So host 2 tries to connect to host 1
 * and to two others.  A refusal shows that host 2 is not cut off; and if host 1
 * did not answer, hosts 0 and 1 are both lost.
 */
#include "boot/bypass.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/late.h"
#include "boot/frame.h"
#include "boot/knock.h"
#include "boot/link.h"
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

enum { WITNESSES = 2, OUTS = 10 + WITNESSES, SUSPECTS = 3 };

struct dtn_bypass {
    struct dtn_boot_route out[OUTS];  /* [nout] to late listeners             */
    int nout;                         /* the most that can be needed          */
    int64_t until_ns;                 /* when all this ends; 0: it is over    */
    struct bypass_suspect {
        int rank;                     /* the silent leader                    */
        int64_t until_ns;             /* when its host counts as dead         */
    } suspect[SUSPECTS];              /* [nsuspects]                          */
    int nsuspects;                    /* neighbours in the tree               */
    int nread;                        /* silences that were looked at         */
    uint32_t asked;                   /* bits of `out`: only asked for a sign */
    uint32_t there;                   /* bits of `out`: their hosts answered  */
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

void dtn_bypass_call(struct dtn_boot *boot, int rank)
{
    const int64_t now = dtn_now_ns();
    struct dtn_bypass *bypass = boot->bypass;

    for (int i = 0; bypass && i < bypass->nout; i++)
        if (bypass->out[i].target == rank && bypass->out[i].next_ns == NEVER) {
            bypass->asked &= ~(UINT32_C(1) << i);
            bypass->out[i].next_ns = now;
            bypass->until_ns = now + 2 * dtn_silence_patience_ns(boot);
        }
}

/* Is there a sign of this rank's host? */
static void bypass_ask(struct dtn_boot *boot, int rank)
{
    dtn_bypass_call(boot, rank);
    boot->bypass->asked |= bypass_bit(boot->bypass, rank);
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
        && (from == 0 ? of == dtn_boot_tree_other(boot, boot->rank)
            : dtn_boot_tree_parent(boot, from) == boot->rank))
        dtn_bypass_call(boot, of);
}

/* -------------------------------------------------------------- silence --- */

/* The parent is silent. */
static void bypass_orphan(struct dtn_boot *boot, int parent)
{
    const int other = dtn_boot_tree_other(boot, boot->rank);

    if (parent > 0 || boot->rank < other)
        bypass_ask(boot, other);
    else
        dtn_bypass_call(boot, other);
    for (int i = 0; i < WITNESSES; i++)
        bypass_ask(boot, dtn_boot_tree_witness(boot, i));
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
        dtn_bypass_call(boot, dtn_boot_tree_below(boot, rank, i));
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
    if (!boot->bypass || boot->nhosts < 3
        || boot->bypass->nsuspects == SUSPECTS)
        dtn_silence_judge(boot, rank);
    else
        bypass_begin(boot, rank);
}

/* ----------------------------------------------------------- connecting --- */

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
    bool refused;

    if (poll(&p, 1, 0) != 1)
        return;
    if (dtn_boot_socket_connected(p.fd) != 0) {
        bypass_tried(boot, route->target, errno);
        refused = errno == ECONNREFUSED;
        bypass_again(route, now);
        if (refused)
            route->next_ns = NEVER;
        return;
    }
    bypass_tried(boot, route->target, 0);
    if (boot->bypass->asked & bypass_bit(boot->bypass, route->target)) {
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
        dtn_late_adopt(boot, &route->link, route->target);
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
}

/* The parent is lost.  So is the host that would connect to this one instead,
 * if it has not answered and others have.
 */
static void bypass_both(struct dtn_boot *boot, int parent)
{
    const int other = dtn_boot_tree_other(boot, boot->rank);

    if (dtn_boot_tree_parent(boot, boot->rank) == parent && other >= 0
        && boot->answered
        && !(boot->bypass->there & bypass_bit(boot->bypass, other))
        && !dtn_late_linked(boot, other))
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

bool dtn_bypass_busy(const struct dtn_boot *boot)
{
    bool busy = false;

    for (int i = 0; boot->bypass && boot->bypass->until_ns > 0
         && i < boot->bypass->nout; i++)
        busy = busy || boot->bypass->out[i].link.state > DTN_LINK_IDLE;
    return busy;
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
    for (int i = 0; i < bypass->nout; i++)
        bypass_out(boot, &bypass->out[i], now);
    bypass_decide(boot, now);
    if (now >= bypass->until_ns)
        bypass_end(boot);
}

/* ----------------------------------------------------------------- open --- */

static const struct dtn_boot_addrs *bypass_known(const struct dtn_boot *boot,
                                                 int rank)
{
    const struct dtn_bypass *bypass = boot->bypass;

    if (boot->up.resolved >= 0
        && dtn_boot_tree_same_host(boot, boot->up.resolved, rank))
        return &boot->up.addrs;
    for (int i = 0; i < bypass->nout; i++)
        if (dtn_boot_tree_same_host(boot, bypass->out[i].target, rank))
            return &bypass->out[i].addrs;
    return NULL;
}

/* Look up where its late listener is, once for each host. */
static void bypass_may_call(struct dtn_boot *boot, int rank)
{
    struct dtn_bypass *bypass = boot->bypass;
    struct dtn_boot_route *route = &bypass->out[bypass->nout];
    const struct dtn_boot_addrs *known;
    struct dtensor_error ignored;

    if (rank < 0 || rank == boot->rank || bypass->nout == OUTS
        || dtn_late_port(boot, rank) == 0)
        return;
    known = bypass_known(boot, rank);
    dtn_boot_route_init(route, rank, NEVER);
    if (known)
        route->addrs = *known;
    else if (dtn_boot_socket_resolve(boot, rank, &route->addrs, &ignored) != 0)
        return;
    dtn_boot_socket_set_port(&route->addrs, dtn_late_port(boot, rank));
    route->resolved = rank;
    bypass->nout++;
}

/* All late listeners of a host. */
static void bypass_may_call_host(struct dtn_boot *boot, int leader)
{
    for (int i = 0; leader >= 0 && i < DTN_LATE_MAX; i++)
        bypass_may_call(boot, dtn_late_rank(boot, leader, i));
}

/* Of a leader: the hosts around each neighbour. */
static void bypass_around(struct dtn_boot *boot)
{
    for (int i = 0; boot->rank > 0 && i < WITNESSES; i++)
        bypass_may_call(boot, dtn_boot_tree_witness(boot, i));
    for (int i = 0; i < 2 * dtn_boot_tree_child_hosts(boot); i++)
        bypass_may_call(boot, dtn_boot_tree_below(
            boot, dtn_boot_tree_child(boot, i / 2), i % 2));
}

void dtn_bypass_open(struct dtn_boot *boot)
{
    const int leader = dtn_boot_tree_leader(boot, boot->rank);

    if (!boot->late)
        return;
    boot->bypass = calloc(1, sizeof *boot->bypass);
    if (!boot->bypass)
        return;
    if (leader > 0) {
        bypass_may_call_host(boot, dtn_boot_tree_parent(boot, leader));
        bypass_may_call_host(boot, dtn_boot_tree_other(boot, boot->rank));
    }
    if (boot->rank == leader)
        bypass_around(boot);
    for (int i = 0; boot->rank != leader
         && i < dtn_boot_tree_child_hosts(boot); i++)
        bypass_may_call(boot, dtn_boot_tree_child(boot, i));
}

void dtn_bypass_close(struct dtn_boot *boot)
{
    if (boot->bypass)
        bypass_end(boot);
    free(boot->bypass);
    boot->bypass = NULL;
}
