/* late.c - where other hosts connect after the first exchange
 *
 * The first three ranks of each host keep a TCP listener, the late listener, as
 * long as the job lasts.  A rank that has lost its way to the others connects
 * to it: the second rank of a host whose leader died (repair.c), or a host
 * around a silent link (bypass.c).  Three of them leave each host one after two
 * losses.
 *
 * The system chooses its port, so that other jobs can use the port of this one
 * as soon as it has started.  All ranks learn all these ports when they join.
 *
 * Who connects must prove that it belongs to the job, as when ranks join
 * (knock.c).  A late listener keeps eight connections that have proved nothing,
 * for two seconds at most; the oldest gives its place away.
 */
#include "boot/late.h"
#include "boot/boot.h"
#include "boot/frame.h"
#include "boot/knock.h"
#include "boot/listen.h"
#include "boot/news.h"
#include "boot/places.h"
#include "boot/silence.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "boot/table.h"
#include "boot/tree.h"
#include "boot/verdict.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { INS = 8 };

struct dtn_late {
    int fd;                           /* listens; or -1                       */
    struct dtn_boot_link in[INS];     /* who connected and has proved nothing */
    uint16_t port[];                  /* [hosts * DTN_LATE_MAX]; 0: none      */
};

int dtn_late_rank(const struct dtn_boot *boot, int leader, int i)
{
    const struct dtn_host *host =
        boot->hosts[dtn_boot_tree_host(boot, leader)];

    return i < DTN_LATE_MAX && i < host->nranks ? host->first_rank + i : -1;
}

/* ---------------------------------------------------------------- ports --- */

/* The place of a rank among those that may have one; -1: it has none. */
static int late_place(const struct dtn_boot *boot, int rank)
{
    const int h = dtn_boot_tree_host(boot, rank);
    const int i = rank - boot->hosts[h]->first_rank;

    return i < DTN_LATE_MAX ? DTN_LATE_MAX * h + i : -1;
}

uint16_t dtn_boot_late_open(struct dtn_boot *boot)
{
    const size_t n = (size_t)boot->nhosts * DTN_LATE_MAX;
    struct dtn_late *late;
    uint16_t port = 0;

    if (boot->nhosts < 2 || late_place(boot, boot->rank) < 0)
        return 0;
    late = calloc(1, sizeof *late + n * sizeof late->port[0]);
    if (!late)
        return 0;
    for (int i = 0; i < INS; i++)
        dtn_frame_init(&late->in[i].io, -1, false);
    late->fd = dtn_boot_listen_free(boot, &port);
    boot->late = late;
    return port;
}

void dtn_boot_late_ports(struct dtn_boot *boot, const struct dtn_table *all,
                         size_t at)
{
    const unsigned char *bytes;
    size_t size;

    for (int h = 0; boot->late && h < boot->nhosts; h++)
        for (int i = 0; i < DTN_LATE_MAX && i < boot->hosts[h]->nranks; i++) {
            bytes = dtn_table_bytes(all, boot->hosts[h]->first_rank + i, &size);
            if (size >= at + sizeof boot->late->port[0])
                memcpy(&boot->late->port[DTN_LATE_MAX * h + i], bytes + at,
                       sizeof boot->late->port[0]);
        }
}

uint16_t dtn_late_port(const struct dtn_boot *boot, int rank)
{
    const int place = late_place(boot, rank);

    return boot->late && place >= 0 ? boot->late->port[place] : 0;
}

/* ------------------------------------------------------------- adopting --- */

bool dtn_late_linked(const struct dtn_boot *boot, int rank)
{
    for (int i = 0; i < boot->nchildren; i++)
        if (boot->children[i].state == DTN_LINK_JOINED
            && boot->children[i].rank == rank)
            return true;
    return false;
}

/* A place for a new neighbour, that of one that is gone or a new one.  Two
 * ranks may connect to each other at once.  NULL: no memory, or that rank has
 * two connections already.
 */
static struct dtn_boot_link *late_place_for(struct dtn_boot *boot, int rank)
{
    struct dtn_boot_link *gone = NULL;
    int same = 0;

    for (int i = 0; i < boot->nchildren; i++) {
        struct dtn_boot_link *link = &boot->children[i];

        if (link->state == DTN_LINK_JOINED)
            same += link->rank == rank;
        else if (link->detour)
            gone = link;
    }
    if (same > 1)
        return NULL;
    return gone ? gone : dtn_boot_places_take(boot);
}

void dtn_late_adopt(struct dtn_boot *boot, struct dtn_boot_link *link, int rank)
{
    struct dtn_boot_link *child = late_place_for(boot, rank);

    if (!child) {
        dtn_frame_close(&link->io);
        link->state = DTN_LINK_IDLE;
        return;
    }
    *child = *link;
    dtn_frame_init(&link->io, -1, false);
    link->state = DTN_LINK_IDLE;
    child->rank = rank;
    child->detour = true;
    child->state = DTN_LINK_JOINED;
    boot->answered = true;
    boot->bridges = true;
    child->io.accepts = DTN_FRAMES_WATCHED;
    dtn_silence_repeat(boot, child);
    dtn_verdict_repeat(boot, child);
    dtn_news_repeat(boot, child);
}

/* ------------------------------------------------------------ accepting --- */

/* May this rank connect here? */
static bool late_knows(const struct dtn_boot *boot, uint32_t rank)
{
    return rank < (uint32_t)boot->cluster->world_size
        && late_place(boot, (int)rank) >= 0
        && !dtn_boot_tree_same_host(boot, (int)rank, boot->rank);
}

static bool late_welcome(struct dtn_boot *boot, struct dtn_boot_link *link,
                         const struct dtn_frame *hello)
{
    unsigned char body[4];
    const struct dtn_frame frame = { .type = DTN_FRAME_WELCOME,
                                     .size = sizeof body, .body = body };
    uint32_t rank;

    if (hello->size < DTN_FRAME_HELLO_BYTES)
        return false;
    rank = dtn_frame_get32(hello->body);
    if (!late_knows(boot, rank)
        || dtn_frame_get64(hello->body + 16) != boot->digest)
        return false;
    dtn_frame_put32(body, (uint32_t)boot->rank);
    if (!dtn_frame_post(&link->io, &frame, false))
        return false;
    dtn_frame_flush(&link->io);
    dtn_late_adopt(boot, link, (int)rank);
    return true;
}

static void late_in(struct dtn_boot *boot, struct dtn_boot_link *link,
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
                : late_welcome(boot, link, &frame));
        dtn_frame_flush(&link->io);
    }
    dtn_frame_close(&link->io);
    link->state = DTN_LINK_IDLE;
}

/* The connection that is kept longest without a proof gives its place away. */
static void late_accept(struct dtn_boot *boot, int64_t now)
{
    struct dtn_late *late = boot->late;
    struct dtn_boot_link *link = late->in;
    const int fd = late->fd < 0 ? -1 : dtn_boot_socket_accept_tcp(late->fd);

    if (fd < 0)
        return;
    for (int i = 0; i < INS; i++)
        if (late->in[i].state == DTN_LINK_IDLE
            || (link->state != DTN_LINK_IDLE
                && late->in[i].since_ns < link->since_ns))
            link = &late->in[i];
    dtn_frame_close(&link->io);
    memset(link, 0, sizeof *link);
    dtn_frame_init(&link->io, fd, false);
    link->io.accepts = DTN_FRAME_BIT(DTN_FRAME_KNOCK);
    link->state = DTN_LINK_KNOCKING;
    link->since_ns = now;
}

bool dtn_late_busy(const struct dtn_boot *boot)
{
    bool busy = false;

    for (int i = 0; boot->late && i < INS; i++)
        busy = busy || boot->late->in[i].state != DTN_LINK_IDLE;
    return busy;
}

void dtn_late_progress(struct dtn_boot *boot, int64_t now)
{
    if (!boot->late)
        return;
    late_accept(boot, now);
    for (int i = 0; i < INS; i++)
        if (boot->late->in[i].state != DTN_LINK_IDLE)
            late_in(boot, &boot->late->in[i], now);
}

void dtn_late_close(struct dtn_boot *boot)
{
    if (!boot->late)
        return;
    for (int i = 0; i < INS; i++)
        dtn_frame_close(&boot->late->in[i].io);
    dtn_boot_socket_close(&boot->late->fd);
    free(boot->late);
    boot->late = NULL;
}
