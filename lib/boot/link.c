/* link.c - connections to other ranks: open, post, close
 *
 * A rank has a link to its parent.  While it joins it may have one around the
 * parent, and if it fails it has links to the leaders of its child hosts.
 * Frames for rank 0 are posted on the first two.
 */
#include "boot/link.h"
#include "base/wait.h"
#include "boot/frame.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "cluster/cluster.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

void dtn_boot_route_init(struct dtn_boot_route *route, int target, int64_t now)
{
    memset(route, 0, sizeof *route);
    dtn_frame_init(&route->link.io, -1, false);
    route->link.rank = target;
    route->target = target;
    route->resolved = -1;
    route->next_ns = now;
    route->pause_ns = DTN_BOOT_RETRY_FIRST_NS;
}

void dtn_boot_route_close(struct dtn_boot_route *route)
{
    dtn_frame_close(&route->link.io);
    route->link.state = DTN_LINK_IDLE;
    route->target = -1;
}

size_t dtn_boot_link_hello(const struct dtn_boot *boot, bool detour,
                            unsigned char body[])
{
    const char *host = boot->hosts[boot->host]->name;
    size_t n = strnlen(host, DTN_HOST_MAX - 1), job = strlen(boot->job);

    dtn_frame_put32(body, (uint32_t)boot->rank);
    dtn_frame_put32(body + 4, (uint32_t)boot->cluster->world_size);
    dtn_frame_put32(body + 8, (uint32_t)getpid());
    dtn_frame_put32(body + 12, detour);
    dtn_frame_put64(body + 16, boot->digest);
    memcpy(body + DTN_FRAME_HELLO_BYTES, host, n);
    body[DTN_FRAME_HELLO_BYTES + n] = '\0';
    memcpy(body + DTN_FRAME_HELLO_BYTES + n + 1, boot->job, job);
    return DTN_FRAME_HELLO_BYTES + n + 1 + job;
}

bool dtn_boot_link_post(struct dtn_boot *boot, enum dtn_frame_type type,
                        const void *body, size_t size)
{
    const struct dtn_frame frame = {
        .type = type, .seq = boot->seq, .body = body, .size = (uint32_t)size
    };

    bool good = true;

    if (boot->up.link.state == DTN_LINK_JOINED)
        good = dtn_frame_post(&boot->up.link.io, &frame, false);
    if (boot->aside.link.state == DTN_LINK_JOINED)
        good = dtn_frame_post(&boot->aside.link.io, &frame, false) && good;
    return good;
}

void dtn_boot_link_ask(struct dtn_boot *boot, const struct dtn_frame *ask)
{
    for (int i = 0; i < boot->nchildren; i++) {
        struct dtn_boot_link *link = &boot->children[i];

        if (link->state != DTN_LINK_JOINED)
            continue;
        link->io.accepts |= DTN_FRAME_BIT(DTN_FRAME_IDENTITY);
        dtn_frame_post(&link->io, ask, false);
    }
}

void dtn_boot_route_fail(struct dtn_boot *boot)
{
    int64_t now = dtn_now_ns();
    bool leads = boot->rank == dtn_boot_tree_leader(boot, boot->rank);

    if (boot->seq > 0)
        return;                      /* all are connected                    */
    dtn_boot_route_close(&boot->aside);
    dtn_boot_route_init(&boot->aside, dtn_boot_tree_parent(boot, boot->rank),
                        now);
    for (int i = 0; leads && i < dtn_boot_tree_child_hosts(boot); i++)
        dtn_boot_route_init(&boot->down[i], dtn_boot_tree_child(boot, i), now);
}
