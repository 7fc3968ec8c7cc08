/* joining.c - any bytes at the listener of rank 0, and frames of its children
 *
 * Rank 0 of eight on four hosts.  A stranger sends bytes, by tcp, where it has
 * to prove itself first, or to the AF_UNIX name.  A member has proved itself
 * and sends frames of any kind and body, also sealed ones; after all have
 * joined, news.  What is not sealed on a sealed connection ends it.  Nothing
 * is believed that the bounds of the job do not allow, and at the end nothing
 * is left.
 *
 * A frame of a member is in the input as type, round, two bytes of length, and
 * its body.
 */
#include "base/seal.h"
#include "base/wait.h"
#include "boot/auth.h"
#include "boot/boot.h"
#include "boot/child.h"
#include "boot/frame.h"
#include "boot/gather.h"
#include "boot/judge.h"
#include "boot/link.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/watch.h"
#include "cluster/cluster.h"
#include "dtensor.h"
#include "tests/cluster/cluster_files.h"
#include "tests/fuzz/targets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SEALED_HEAD = DTN_FRAME_HEAD_BYTES + DTN_SEAL_BYTES };

static const char file[] = "[cluster]\nversion = 1\nauth = none\n"
                           "[nodes \"a\"]\nhosts = n[0-3]\n"
                           "addresses = 127.0.0.[1-4]\nranks = 2\n";

static void must(bool condition)
{
    if (!condition)
        abort();
}

static const struct dtensor_cluster *the_cluster(void)
{
    static struct dtensor_cluster *cluster;
    static struct report report;

    if (!cluster)
        must(read_text(file, &cluster, &report, NULL) == 0);
    return cluster;
}

/* As dtn_boot_open() begins, without a listener. */
static struct dtn_boot *boot_make(void)
{
    const struct dtensor_cluster *cluster = the_cluster();
    struct dtn_boot *boot = calloc(1, sizeof *boot);
    pthread_mutexattr_t recursive;

    must(boot != NULL);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&boot->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    boot->cluster = cluster;
    boot->identity = "";
    boot->root = true;
    boot->unix_fd = boot->tcp_fd = boot->spare_fd = boot->mine_fd = -1;
    boot->asked = -1;
    boot->pulse.fd = -1;
    strcpy(boot->job, "job");
    dtn_boot_route_init(&boot->up, -1, 0);
    dtn_boot_route_init(&boot->aside, -1, 0);
    for (size_t i = 0; i < 2; i++)
        dtn_boot_route_init(&boot->down[i], -1, 0);
    must(dtn_boot_tree_init(boot, NULL) == 0);
    boot->local_fds = malloc(2 * sizeof *boot->local_fds);
    boot->local_fds[0] = boot->local_fds[1] = -1;
    boot->arrived = calloc(4, sizeof *boot->arrived);
    boot->polls = malloc(DTN_BOOT_FIXED_POLLS * sizeof *boot->polls);
    boot->members = calloc((size_t)cluster->world_size, sizeof *boot->members);
    boot->peer_failures = calloc((size_t)cluster->world_size,
                                 sizeof *boot->peer_failures);
    boot->nexpected = 1 + dtn_boot_tree_child_hosts(boot);
    boot->deadline_ns = INT64_MAX / 4;
    must(dtn_boot_gather_start(boot, NULL, NULL) == 0);
    return boot;
}

/* A child in that state; returns the other end. */
static int child_make(struct dtn_boot *boot, bool local,
                      enum dtn_link_state state, unsigned accepts)
{
    struct dtn_boot_link *link;
    int fds[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds)
         == 0);
    boot->children = calloc(1, sizeof *boot->children);
    boot->nchildren = boot->capacity = 1;
    boot->polls = realloc(boot->polls, (DTN_BOOT_FIXED_POLLS + 1)
                                       * sizeof *boot->polls);
    link = &boot->children[0];
    dtn_frame_init(&link->io, fds[0], local);
    link->io.accepts = accepts;
    link->state = state;
    link->rank = -1;
    link->since_ns = dtn_now_ns();
    return fds[1];
}

/* What the loop of dtn_boot_open() does for a child. */
static void boot_turn(struct dtn_boot *boot)
{
    if (boot->nchildren > 0)
        dtn_boot_child_progress(boot, &boot->children[0]);
    dtn_boot_child_sweep(boot, dtn_now_ns());
    dtn_boot_judge_progress(boot, dtn_now_ns());
    if (boot->state == DTN_BOOT_GATHERING)
        dtn_boot_gather_forward(boot);
    must(boot->njoined <= boot->cluster->world_size
         && boot->narrived <= boot->nexpected);
}

static void finish(struct dtn_boot *boot, int fd)
{
    close(fd);
    if (!boot->watching)
        boot_turn(boot);
    dtn_boot_close(boot);
}

void fuzz_strangers(const uint8_t *data, size_t size)
{
    struct dtn_boot *boot = boot_make();
    const bool local = size > 0 && data[0] % 2 == 1;
    size_t at = size > 0, part;
    int fd;

    boot->auth.mode = DTN_AUTH_KEY;
    fd = child_make(boot, local, local ? DTN_LINK_GREETING : DTN_LINK_KNOCKING,
                    DTN_FRAME_BIT(local ? DTN_FRAME_HELLO : DTN_FRAME_KNOCK));
    for (; at < size && boot->nchildren > 0; at += part) {
        part = size - at < 4096 ? size - at : 4096;
        if (send(fd, data + at, part, MSG_NOSIGNAL) < 0)
            break;
        boot_turn(boot);
    }
    must(local || boot->njoined <= 1);
    finish(boot, fd);
}

/* Send the next frame of the input; returns how many of its bytes it took. */
static size_t frame_send(struct dtn_frame_stream *to, const uint8_t *data,
                         size_t size)
{
    struct dtn_frame frame = { .type = (enum dtn_frame_type)(data[0] % 32),
                               .seq = data[1] };
    size_t length = (size_t)data[2] << 8 | data[3];

    length = length < size - 4 ? length : size - 4;
    frame.size = (uint32_t)length;
    frame.body = data + 4;
    must(dtn_frame_post(to, &frame, false));
    dtn_frame_flush(to);
    return 4 + length;
}

static void frames_send(struct dtn_boot *boot, struct dtn_frame_stream *to,
                        const uint8_t *data, size_t size,
                        void (*turn)(struct dtn_boot *boot))
{
    for (size_t at = 0; at + 4 <= size && boot->nchildren > 0;) {
        at += frame_send(to, data + at, size - at);
        turn(boot);
    }
}

void fuzz_members(const uint8_t *data, size_t size)
{
    struct dtn_boot *boot = boot_make();
    int fd = child_make(boot, size > 0 && data[0] % 2 == 1, DTN_LINK_GREETING,
                        DTN_FRAME_BIT(DTN_FRAME_HELLO));
    struct dtn_frame_stream to;

    dtn_frame_init(&to, dup(fd), true);
    if (size > 0)
        frames_send(boot, &to, data + 1, size - 1, boot_turn);
    dtn_frame_close(&to);
    finish(boot, fd);
}

/* Bytes of somebody who is between the two ends, and knows no key. */
static void raw_send(struct dtn_boot *boot, int fd, const uint8_t *data,
                     size_t size)
{
    if (size > 0 && size < 4096 && send(fd, data, size, MSG_NOSIGNAL) > 0)
        boot_turn(boot);
    must(boot->njoined <= 1 && (size < SEALED_HEAD || boot->nchildren == 0));
}

void fuzz_sealed(const uint8_t *data, size_t size)
{
    static const unsigned char up[DTN_SECRET_BYTES] = { 1 };
    static const unsigned char down[DTN_SECRET_BYTES] = { 2 };
    struct dtn_frame_stream to;
    struct dtn_boot *boot;
    int fd;

    if (size == 0 || !dtn_seal_present())
        return;
    boot = boot_make();
    fd = child_make(boot, false, DTN_LINK_GREETING,
                    DTN_FRAME_BIT(DTN_FRAME_HELLO));
    boot->auth.mode = DTN_AUTH_KEY;
    dtn_frame_seal(&boot->children[0].io, down, up);
    dtn_frame_init(&to, dup(fd), false);
    dtn_frame_seal(&to, up, down);
    if (data[0] % 2 == 0)
        frames_send(boot, &to, data + 1, size - 1, boot_turn);
    else
        raw_send(boot, fd, data + 1, size - 1);
    dtn_frame_close(&to);
    finish(boot, fd);
}

static void news_turn(struct dtn_boot *boot)
{
    boot->watch_ns = 0;
    dtn_boot_watch(boot);
}

static void news_tell(void *arg, bool waits, struct dtn_call_record *call)
{
    (void)arg;
    call->number = waits;
}

/* Whoever is named is a rank. */
static void news_check(struct dtn_boot *boot)
{
    const struct dtn_peer_call_report *report;
    struct dtn_rank_status status;
    const int n = boot->cluster->world_size;

    for (uint32_t i = 0; (report = dtn_boot_call_report(boot, i)); i++)
        must(report->rank >= 0 && report->rank < n
             && report->record.kind < DTN_NRECORDS
             && strlen(report->text) < DTN_RECORD_TEXT);
    for (int r = 0; r < n; r++) {
        const struct dtn_peer_failure *failure = dtn_boot_peer_failure(boot, r);

        must(failure->culprit >= 0 && failure->culprit < n
             && failure->loss < DTN_NLOSSES);
        dtn_boot_status(boot, r, 0, &status);
    }
}

static void news_run(const uint8_t *data, size_t size, bool joined)
{
    struct dtn_boot *boot = boot_make();
    int fd = child_make(boot, true, DTN_LINK_JOINED,
                        DTN_FRAME_BIT(DTN_FRAME_ENTRIES)
                        | DTN_FRAME_BIT(DTN_FRAME_EXPIRED)
                        | DTN_FRAME_BIT(DTN_FRAME_FAIL));
    struct dtn_frame_stream to;

    boot->children[0].rank = 1;
    boot->children[0].known = true;
    dtn_boot_status_by(boot, news_tell, NULL);
    dtn_watch_accept(boot);
    if (joined)
        dtn_boot_watch_start(boot);
    dtn_frame_init(&to, dup(fd), true);
    frames_send(boot, &to, data, size, joined ? news_turn : boot_turn);
    dtn_frame_close(&to);
    news_check(boot);
    finish(boot, fd);
}

/* To a rank that has joined, and to one that joins. */
void fuzz_news(const uint8_t *data, size_t size)
{
    news_run(data, size, true);
    news_run(data, size, false);
}
