/* boot.c - the bootstrap: an allgather of blobs over a tree of sockets
 *
 * Every rank is a state machine of four states, driven by poll():
 *
 *     gathering -> draining -> over           all there: the answer goes down
 *          \-> failing ----^                  a failure goes up, then down
 *
 * Opening is round 0 of the allgather; in this round the ranks also connect.
 * Each round has a deadline, and the work after the deadline is bounded too
 * (fail.c), so no rank stays longer than connect_timeout and a second.  Four
 * ranks of one host have joined 1-2 ms after the last of them has started.
 *
 * A rank that is lost after the first exchange ends the round in which others
 * still are: they agree with those that have joined whom to name (agree.c).
 */
#include "boot/boot.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "base/wait.h"
#include "boot/agree.h"
#include "boot/auth.h"
#include "boot/bypass.h"
#include "boot/child.h"
#include "boot/late.h"
#include "boot/drain.h"
#include "boot/fail.h"
#include "boot/frame.h"
#include "boot/gather.h"
#include "boot/heart.h"
#include "boot/judge.h"
#include "boot/leave.h"
#include "boot/link.h"
#include "boot/listen.h"
#include "boot/news.h"
#include "boot/places.h"
#include "boot/poll.h"
#include "boot/pulse.h"
#include "boot/route.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "boot/table.h"
#include "boot/tree.h"
#include "boot/watch.h"
#include "boot/words.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------- one step of the loop --- */

static void boot_read(struct dtn_boot *boot)
{
    int n = boot->nchildren;

    dtn_boot_route_progress(boot, &boot->up);
    dtn_boot_route_progress(boot, &boot->aside);
    for (size_t i = 0; i < DTN_COUNT(boot->down); i++)
        dtn_boot_route_down(boot, &boot->down[i]);
    for (int i = 0; i < n && dtn_boot_poll_reads(boot); i++)
        if (boot->polls[i].revents)
            dtn_boot_child_progress(boot, &boot->children[i]);
    dtn_boot_child_accept(boot, dtn_boot_poll_reads(boot));
}

/* Is everything sent? */
static bool boot_flush(struct dtn_boot *boot)
{
    bool all = true;

    dtn_frame_flush(&boot->up.link.io);
    dtn_frame_flush(&boot->aside.link.io);
    for (size_t i = 0; i < DTN_COUNT(boot->down); i++)
        dtn_frame_flush(&boot->down[i].link.io);
    for (int i = 0; i < boot->nchildren; i++)
        if (dtn_frame_flush(&boot->children[i].io) == DTN_FRAME_MORE)
            all = false;
    return all;
}

/* A rank is lost, in a round in which all can hear of it. */
static bool boot_lost(struct dtn_boot *boot, int64_t now)
{
    if (!boot->heart || boot->state != DTN_BOOT_GATHERING)
        return false;
    return dtn_agree_joining(boot, dtn_watch_joining(boot, now));
}

static void boot_tick(struct dtn_boot *boot)
{
    int64_t now = dtn_now_ns();
    bool sent;

    dtn_boot_child_sweep(boot, now);
    dtn_watch_beat(boot, now);
    if (boot_lost(boot, now))
        return;
    if (boot->state == DTN_BOOT_GATHERING && now >= boot->deadline_ns)
        dtn_boot_fail_expire(boot, now);
    if (dtn_boot_judge_progress(boot, now))
        dtn_boot_gather_done(boot);
    dtn_boot_gather_forward(boot);
    if (boot->state == DTN_BOOT_GATHERING && boot->expired && !boot->root &&
        (now >= boot->until_ns || (boot->up.link.state < DTN_LINK_GREETING &&
                                   boot->aside.link.state < DTN_LINK_GREETING)))
        dtn_boot_fail_alone(boot);
    if (boot->state == DTN_BOOT_FAILING && now >= boot->until_ns)
        dtn_boot_fail_final(boot, &boot->failure);
    if (boot->unfit && dtn_boot_drain_waits(boot))
        dtn_boot_relisten(boot);
    sent = boot_flush(boot);
    if (boot->state == DTN_BOOT_DRAINING)
        dtn_boot_drain_look(boot, sent, now);
}

/* Run the state machine until the round is over. */
static int boot_run(struct dtn_boot *boot, struct dtensor_error *err)
{
    boot_tick(boot);
    while (boot->state != DTN_BOOT_OVER) {
        dtn_boot_poll(boot);
        boot_read(boot);
        boot_tick(boot);
    }
    if (boot->failure.code != 0 && err)
        *err = boot->failure;
    return boot->failure.code;
}

static void boot_begin(struct dtn_boot *boot)
{
    int64_t now = dtn_now_ns();
    int64_t timeout = boot->cluster->transport.connect_timeout_ns;

    boot->state = DTN_BOOT_GATHERING;
    boot->expired = false;
    boot->deadline_ns = now + (timeout < INT64_MAX / 4 ? timeout
                                                       : INT64_MAX / 4);
}

/* ----------------------------------------------------------------- open --- */

static int boot_check_args(const struct dtn_boot_args *args,
                           struct dtensor_error *err)
{
    const struct dtn_world *world = args->world;
    const struct dtensor_cluster *cluster = world->cluster;

    if (world->size != cluster->world_size || world->rank < 0 ||
        world->rank >= cluster->world_size)
        return dtn_fail(err, DTENSOR_EINVAL, "boot: this process is rank %d "
                        "of %d, but %s has %d ranks", world->rank,
                        world->size, cluster->path, cluster->world_size);
    for (int h = 0; h < cluster->nhosts; h++)
        if (cluster->hosts[h].nranks > DTN_MAX_LOCAL)
            return dtn_fail(err, DTENSOR_EINVAL, "boot: host %s has %d ranks; "
                            "at most %d are possible", cluster->hosts[h].name,
                            cluster->hosts[h].nranks, DTN_MAX_LOCAL);
    if (strlen(args->identity) > DTN_FRAME_IDENTITY_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "boot: the cluster file is too "
                        "long: %zu bytes of canonical text, at most %u",
                        strlen(args->identity), DTN_FRAME_IDENTITY_MAX);
    return 0;
}

/* Allocate all memory.  After an error dtn_boot_close() frees it. */
static int boot_prepare(struct dtn_boot *boot, struct dtensor_error *err)
{
    size_t world = (size_t)boot->cluster->world_size, nlocal;
    int rc = dtn_boot_tree_init(boot, err);

    if (rc != 0)
        return rc;
    nlocal = (size_t)boot->hosts[boot->host]->nranks;
    boot->local_fds = malloc(nlocal * sizeof *boot->local_fds);
    boot->arrived = calloc(nlocal + 2, sizeof *boot->arrived);
    if (boot->rank == 0)
        boot->members = calloc(world, sizeof *boot->members);
    if (boot->rank == dtn_boot_tree_leader(boot, boot->rank))
        boot->nexpected = (int)nlocal - 1 + dtn_boot_tree_child_hosts(boot);
    if (!dtn_news_init(boot) || !boot->local_fds || !boot->arrived ||
        !dtn_boot_places_make(boot) || (boot->rank == 0 && !boot->members))
        return dtn_fail_nomem(err, "boot", world * sizeof *boot->members);
    for (size_t i = 0; i < nlocal; i++)
        boot->local_fds[i] = -1;
    return 0;
}

/* Recursive: who keeps the records may receive others. */
static void boot_lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t recursive;

    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

static struct dtn_boot *boot_new(const struct dtn_boot_args *args)
{
    struct dtn_boot *boot = calloc(1, sizeof *boot);

    if (!boot)
        return NULL;
    boot->cluster = args->world->cluster;
    boot->log = args->log;
    boot->identity = args->identity;
    boot->digest = dtn_digest(args->identity);
    boot->rank = args->world->rank;
    boot->root = boot->rank == 0;
    boot->unix_fd = boot->tcp_fd = boot->spare_fd = boot->mine_fd = -1;
    boot->asked = -1;
    boot->pulse.fd = -1;
    boot_lock_init(&boot->lock);
    dtn_boot_route_init(&boot->up, -1, 0);
    dtn_boot_route_init(&boot->aside, -1, 0);
    for (size_t i = 0; i < DTN_COUNT(boot->down); i++)
        dtn_boot_route_init(&boot->down[i], -1, 0);
    return boot;
}

/* Choose the ranks to connect to.  If another process has the name of this
 * leader, the rank was started twice: connect to that process, which reports it
 * to all ranks.
 */
static void boot_start_routes(struct dtn_boot *boot, bool taken)
{
    int64_t now = dtn_now_ns();
    int64_t half = (boot->deadline_ns - now) / 2;

    if (taken) {
        boot->root = false;
        dtn_boot_route_init(&boot->up, boot->rank, now);
        return;
    }
    dtn_boot_route_init(&boot->up, dtn_boot_tree_parent(boot, boot->rank), now);
    dtn_boot_route_init(
        &boot->aside, dtn_boot_tree_grandparent(boot, boot->rank), now + half);
}

static void boot_settle(struct dtn_boot *boot, int64_t start_ns)
{
    char refused[512], time[32];

    dtn_boot_unlisten(boot);
    dtn_boot_route_close(&boot->aside);
    dtn_boot_child_keep_tree(boot);
    if (dtn_late_rank(boot, boot->rank, boot->rank
                      - boot->hosts[boot->host]->first_rank) < 0)
        dtn_boot_auth_close(&boot->auth);
    boot->identity = NULL;
    free(boot->answer);
    boot->answer = NULL;
    if (!boot->log)
        return;
    if (boot->strangers > 0)
        dtn_log(boot->log, DTN_LOG_WARN, "boot: dropped %u connections of "
                "strangers%s", boot->strangers,
                dtn_boot_fail_refused_text(boot, refused, sizeof refused));
    dtn_log(boot->log, DTN_LOG_INFO, "boot: %d ranks on %d hosts, joined in %s",
            boot->cluster->world_size, boot->nhosts,
            dtn_format_time(dtn_now_ns() - start_ns, time, sizeof time));
}

int dtn_boot_open(const struct dtn_boot_args *args, struct dtn_boot **bootp,
                  struct dtensor_error *err)
{
    struct dtensor_error error, why = { .rank = -1 };
    struct dtn_boot *boot;
    int64_t start_ns = dtn_now_ns();
    bool taken = false;
    int rc = boot_check_args(args, err);

    if (rc != 0)
        return rc;
    boot = boot_new(args);
    if (!boot)
        return dtn_fail_nomem(err, "boot", sizeof *boot);
    rc = boot_prepare(boot, err);
    if (rc == 0) {
        dtn_boot_socket_name(boot, args->world->job);
        boot->port = dtn_boot_socket_port(boot);
        boot_begin(boot);
        dtn_boot_auth_open(&boot->auth, boot->cluster, boot->nhosts, &why);
        rc = dtn_boot_listen(boot, &taken, &error);
        if (rc == 0 && why.code != 0) {
            error = why;
            rc = why.code;
        }
        if (args->failure) {
            error = *args->failure;
            rc = error.code;
            taken = false;
        }
        boot_start_routes(boot, taken);
        if (rc != 0)
            dtn_boot_fail_own(boot, &error);
        rc = dtn_boot_gather_start(boot, NULL, err);
        if (rc == 0)
            rc = boot_run(boot, err);
    }
    if (rc != 0) {
        dtn_boot_close(boot);
        return rc;
    }
    boot_settle(boot, start_ns);
    *bootp = boot;
    return 0;
}

/* ------------------------------------------------------------ allgather --- */

/* A round.  Meanwhile this thread makes the heartbeats for other hosts. */
static int boot_round(struct dtn_boot *boot, const struct dtn_blob *mine,
                      struct dtn_table **tablep, struct dtensor_error *err)
{
    struct dtn_table *table;
    int rc;

    dtn_boot_hold(boot);
    boot->seq++;
    boot_begin(boot);
    rc = dtn_boot_gather_start(boot, mine, err);
    if (rc == 0)
        rc = boot_run(boot, err);
    table = dtn_boot_gather_take(boot);
    if (rc == 0)
        *tablep = table;
    boot->mine_fd = -1;
    dtn_boot_release(boot);
    return rc;
}

int dtn_boot_allgather(struct dtn_boot *boot, const struct dtn_blob *mine,
                       struct dtn_table **tablep, struct dtensor_error *err)
{
    if (boot->failure.code != 0) {
        if (err)
            *err = boot->failure;
        return boot->failure.code;
    }
    if (mine->size > DTN_BLOB_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "boot: a blob of %zu bytes; at "
                        "most %d are possible", mine->size, DTN_BLOB_MAX);
    return boot_round(boot, mine, tablep, err);
}

void dtn_boot_give_up(struct dtn_boot *boot, struct dtensor_error *error)
{
    struct dtensor_error ignored;

    if (boot->failure.code != 0 || boot->watching ||
        boot->cluster->world_size == 1)
        return;
    dtn_boot_hold(boot);
    boot->seq++;
    boot_begin(boot);
    if (dtn_boot_gather_start(boot, &(struct dtn_blob) { .fd = -1 },
                              &ignored) == 0) {
        dtn_boot_fail_own(boot, error);
        boot_run(boot, error);
        dtn_boot_gather_take(boot);
    }
    dtn_boot_release(boot);
}

void dtn_boot_close(struct dtn_boot *boot)
{
    if (!boot)
        return;
    dtn_boot_leave(boot);
    dtn_heart_stop(boot);
    dtn_bypass_close(boot);
    dtn_late_close(boot);
    dtn_boot_unlisten(boot);
    dtn_boot_auth_close(&boot->auth);
    dtn_boot_route_close(&boot->up);
    dtn_boot_route_close(&boot->aside);
    for (size_t i = 0; i < DTN_COUNT(boot->down); i++)
        dtn_boot_route_close(&boot->down[i]);
    for (int i = 0; i < boot->nchildren; i++)
        dtn_frame_close(&boot->children[i].io);
    if (boot->hosts)
        dtn_boot_gather_close_fds(boot);
    free(boot->children);
    free(boot->polls);
    free(boot->gathered.mem);
    dtn_table_free(boot->table);
    free(boot->local_fds);
    free(boot->arrived);
    free(boot->members);
    dtn_news_fini(boot);
    free(boot->answer);
    free((void *)boot->hosts);
    dtn_pulse_close(&boot->pulse);
    pthread_mutex_destroy(&boot->lock);
    free(boot);
}
