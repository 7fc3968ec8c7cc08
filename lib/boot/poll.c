/* poll.c - what a rank waits for while it joins
 *
 * All sockets of the tree, the listeners, and the time of the next action that
 * is due.  With three children and a parent these are six descriptors.
 */
#include "boot/poll.h"
#include "base/compiler.h"
#include "base/wait.h"
#include "boot/drain.h"
#include "boot/judge.h"
#include "boot/route.h"
#include "boot/state.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static int64_t poll_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool dtn_boot_poll_reads(const struct dtn_boot *boot)
{
    return boot->state != DTN_BOOT_DRAINING || boot->failure.code != 0;
}

static struct pollfd poll_link(const struct dtn_boot_link *link, bool reads)
{
    const struct dtn_frame_stream *io = &link->io;
    bool writes = io->out && !io->stalled;
    struct pollfd p = { io->fd, 0, 0 };

    if (link->state == DTN_LINK_CONNECTING)
        p.events = POLLOUT;
    else
        p.events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    if (p.events == 0 || link->state == DTN_LINK_IDLE)
        p.fd = -1;                   /* poll() would report a hang-up        */
    return p;
}

/* When the next timed action is due, if no socket becomes ready before. */
static int64_t poll_wake(const struct dtn_boot *boot)
{
    int64_t wake = boot->state == DTN_BOOT_GATHERING && !boot->expired
                 ? boot->deadline_ns : boot->until_ns;
    bool stalled = boot->up.link.io.stalled;

    wake = poll_earlier(wake, dtn_boot_route_wake(boot, &boot->up));
    wake = poll_earlier(wake, dtn_boot_route_wake(boot, &boot->aside));
    for (size_t i = 0; i < DTN_COUNT(boot->down); i++)
        wake = poll_earlier(wake, dtn_boot_route_wake(boot, &boot->down[i]));
    wake = poll_earlier(wake, dtn_boot_judge_wake(boot));
    wake = poll_earlier(wake, dtn_boot_drain_wake(boot));
    if (boot->heart && boot->state == DTN_BOOT_GATHERING)
        wake = poll_earlier(wake, boot->watch_ns);
    if (boot->bridges)
        wake = poll_earlier(wake, boot->beat_ns);
    for (int i = 0; i < boot->nchildren; i++) {
        const struct dtn_boot_link *link = &boot->children[i];

        if (link->state == DTN_LINK_GREETING ||
            link->state == DTN_LINK_KNOCKING)
            wake = poll_earlier(wake, link->since_ns + DTN_BOOT_HANDSHAKE_NS);
        stalled = stalled || link->io.stalled;
    }
    if (stalled)
        wake = poll_earlier(wake, dtn_now_ns() + DTN_BOOT_STALL_NS);
    return wake;
}

/* Add the open listeners and routes after the children.  Closed ones are left
 * out, because poll() refuses more entries than the process's descriptor limit.
 */
static nfds_t poll_fixed(const struct dtn_boot *boot)
{
    const bool up = boot->state != DTN_BOOT_DRAINING;
    const struct pollfd left = { boot->up.link.io.fd, 0, 0 };
    const struct pollfd fixed[DTN_BOOT_FIXED_POLLS] = {
        { boot->unix_fd, POLLIN, 0 },
        { boot->tcp_fd, POLLIN, 0 },
        dtn_boot_drain_follows(boot) ? left : poll_link(&boot->up.link, up),
        poll_link(&boot->aside.link, up),
        poll_link(&boot->down[0].link, true),
        poll_link(&boot->down[1].link, true)
    };
    nfds_t n = (nfds_t)boot->nchildren;

    for (size_t i = 0; i < DTN_COUNT(fixed); i++)
        if (fixed[i].fd >= 0)
            boot->polls[n++] = fixed[i];
    return n;
}

void dtn_boot_poll(struct dtn_boot *boot)
{
    int64_t wait = poll_wake(boot) - dtn_now_ns();
    struct timespec ts = { 0, 0 };
    nfds_t n;

    if (wait > 0) {
        ts.tv_sec = wait / 1000000000;
        ts.tv_nsec = wait % 1000000000;
    }
    for (int i = 0; i < boot->nchildren; i++)
        boot->polls[i] = poll_link(&boot->children[i],
                                   dtn_boot_poll_reads(boot));
    n = poll_fixed(boot);
    if (ppoll(boot->polls, n, &ts, NULL) <= 0)
        for (nfds_t i = 0; i < n; i++)
            boot->polls[i].revents = 0;
}
