/* ctx.c - the context: one rank's membership of one job
 *
 * Opening goes upward through the rooms.  The cluster finds the rank of this
 * process, the bootstrap joins all ranks, the arena is memory that peers can
 * access, and the transports access it.  Four ranks of one host need two
 * allgathers of blobs for this, a few hundred microseconds.  The context owns
 * everything.  A context that is only partly open can be closed, too.
 */
#include "job/ctx.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sparse.h"
#include "base/units.h"
#include "boot/boot.h"
#include "boot/table.h"
#include "cluster/builtin.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/cpus.h"
#include "job/seat.h"
#include "job/stall.h"
#include "job/suspects.h"
#include "job/wire.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The canonical lines that must be the same on all ranks. */
static int ctx_identity(const struct dtensor_ctx *ctx, char **textp,
                        struct dtensor_error *err)
{
    static const char form[] = "[library] version = %s\n"
                               "[world] size = %d\n%s";
    char *canonical, *text;
    int rc, size;

    rc = dtn_cluster_canonical(ctx->world.cluster, &canonical, err);
    if (rc != 0)
        return rc;
    size = snprintf(NULL, 0, form, dtensor_version(), ctx->world.size,
                    canonical) + 1;
    text = malloc((size_t)size);
    if (text)
        snprintf(text, (size_t)size, form, dtensor_version(),
                 ctx->world.size, canonical);
    free(canonical);
    if (!text)
        return dtn_fail_nomem(err, "init", (size_t)size);
    *textp = text;
    return 0;
}

/* This rank cannot start: send that to the others, so that they do not wait. */
static void ctx_tell(struct dtensor_ctx *ctx,
                     const struct dtn_world *world,
                     const struct dtensor_error *why)
{
    const struct dtn_boot_args args = {
        .world = world, .identity = "", .log = &ctx->log, .failure = why
    };
    struct dtn_boot *none;

    dtn_boot_open(&args, &none, NULL);
}

/* dtn_whoami() has failed: send the error to the others, if they can be found.
 */
static void ctx_refused(struct dtensor_ctx *ctx, const char *path,
                        const struct dtensor_error *why)
{
    struct dtn_world world;

    if (dtn_whoami_claim(path, &world) != 0)
        return;
    ctx_tell(ctx, &world, why);
    dtensor_cluster_destroy(world.cluster);
}

/* Leave the job. */
static void ctx_leave(struct dtensor_ctx *ctx)
{
    dtn_boot_close(ctx->boot);
    ctx->boot = NULL;
    if (ctx->seat_fd >= 0)
        close(ctx->seat_fd);
    ctx->seat_fd = -1;
}

static int ctx_boot(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_boot_args args = {
        .world = &ctx->world, .log = &ctx->log
    };
    char *identity = NULL;
    int rc = ctx_identity(ctx, &identity, err);

    args.identity = identity;
    if (rc == 0)
        rc = dtn_seat_take(&ctx->world, &ctx->seat_fd, err);
    if (rc == 0)
        rc = dtn_boot_open(&args, &ctx->boot, err);
    if (rc == DTENSOR_ENOMEM && err->rank < 0)
        ctx_tell(ctx, &ctx->world, err);
    free(identity);
    return rc;
}

/* The number of CPUs that the ranks of a host may use together. */
static int ctx_host_cpus(const struct dtn_host *host,
                         const struct dtn_table *all)
{
    cpu_set_t mask, together;

    CPU_ZERO(&together);
    for (int r = host->first_rank; r < host->first_rank + host->nranks; r++) {
        dtn_table_copy(all, r, &mask, sizeof mask);
        CPU_OR(&together, &together, &mask);
    }
    return CPU_COUNT(&together) > 0 ? CPU_COUNT(&together) : 1;
}

/* The first rank of the host has sent the page of the heartbeats. */
static int ctx_beat(struct dtensor_ctx *ctx, const struct dtn_host *host,
                    struct dtn_table *all, struct dtensor_error *err)
{
    const int fd = dtn_table_take_fd(all, host->first_rank);
    int rc = dtn_boot_beat_start(ctx->boot, fd, err);

    if (fd >= 0)
        close(fd);
    return rc;
}

/* Is a host oversubscribed: has it more ranks than CPUs that they may use? */
static void ctx_compare_cpus(struct dtensor_ctx *ctx,
                             const struct dtn_host *host,
                             const struct dtn_table *all)
{
    const struct dtensor_cluster *cluster = ctx->world.cluster;
    int cpus;

    for (int h = 0; h < cluster->nhosts; h++) {
        cpus = ctx_host_cpus(&cluster->hosts[h], all);
        if (cluster->hosts[h].nranks > ctx->cpus.ranks_per_cpu * cpus)
            ctx->cpus.ranks_per_cpu = (double)cluster->hosts[h].nranks / cpus;
    }
    cpus = ctx_host_cpus(host, all);
    ctx->cpus.oversubscribed = host->nranks > cpus;
    if (ctx->cpus.oversubscribed)
        dtn_log(&ctx->log, DTN_LOG_WARN, "init: %d ranks share %d CPUs of %s: "
                "waiting yields", host->nranks, cpus, host->name);
}

/* Each rank sends its affinity mask, and the union of a host is counted.  The
 * page of the heartbeats and the port of the late listener travel along.
 */
static int ctx_count_cpus(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtn_host *host = &ctx->world.cluster->hosts[
        dtn_world_host(&ctx->world, ctx->world.rank)];
    struct dtn_blob mine = { .fd = -1 };
    const cpu_set_t mask = dtn_cpus_folded();
    struct dtn_table *all;
    uint16_t port;
    int rc;

    port = dtn_boot_late_open(ctx->boot);
    mine.size = sizeof mask + (port > 0 ? sizeof port : 0);
    memcpy(mine.bytes, &mask, sizeof mask);
    memcpy(mine.bytes + sizeof mask, &port, sizeof port);
    rc = dtn_boot_beat_open(ctx->boot, &mine.fd, err);
    if (rc == 0)
        rc = dtn_boot_allgather(ctx->boot, &mine, &all, err);
    if (rc != 0)
        return rc;
    dtn_boot_late_ports(ctx->boot, all, sizeof mask);
    rc = ctx_beat(ctx, host, all, err);
    if (rc == 0)
        ctx_compare_cpus(ctx, host, all);
    dtn_table_free(all);
    return rc;
}

/* Open the arena.  If the ranks of a host use shared memory, they map the
 * arenas of each other.
 */
static int ctx_open_arena(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtn_transport_conf *conf = &ctx->world.cluster->transport;
    const bool shared = conf->intra_node == DTN_WIRE_SHM;
    const int host = dtn_world_host(&ctx->world, ctx->world.rank);
    char size[32];
    int rc = dtn_arena_open(&ctx->arena, &conf->arena,
                            shared ? ctx->world.cluster->hosts[host].nranks : 1,
                            shared, err);

    if (rc != 0)
        return rc;
    dtn_log(&ctx->log, DTN_LOG_INFO, "arena: %s, %s, in %s",
            dtn_format_size(ctx->arena.backing.size, size, sizeof size),
            dtn_arena_why(&ctx->arena), dtn_backing_pages(&ctx->arena.backing));
    return 0;
}

/* Open memory and transports, after the bootstrap has joined all ranks. */
static int ctx_open_rest(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const size_t world = (size_t)ctx->world.size;
    int rc = dtn_cpus_bind(ctx, err);

    if (rc == 0)
        rc = ctx_open_arena(ctx, err);
    if (rc == 0 && dtn_world_wants_gpu(&ctx->world))
        rc = dtn_ctx_open_device(ctx, err);
    if (rc != 0)
        return rc;
    ctx->peers = dtn_sparse_new(world, sizeof *ctx->peers);
    if (!ctx->peers)
        return dtn_fail_nomem(err, "init", world * sizeof *ctx->peers);
    rc = ctx_count_cpus(ctx, err);
    if (rc == 0)
        rc = dtn_wire_negotiate(ctx, err);
    return rc == 0 ? dtn_wire_open(ctx, err) : rc;
}

int dtn_ctx_join(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = calloc(1, sizeof *ctx);
    struct dtensor_error why = { .rank = -1 };
    int rc;

    if (!ctx)
        return dtn_fail_nomem(err, "init", sizeof *ctx);
    ctx->holders = 1;
    ctx->seat_fd = -1;
    ctx->arena = DTN_ARENA_NONE;
    dtn_log_init(&ctx->log);
    rc = dtn_whoami(path, &ctx->log, &ctx->world, &why);
    if (rc == 0) {
        ctx->log.rank = ctx->world.rank;
        dtn_log_check(&ctx->log);
        rc = ctx_boot(ctx, &why);
    } else {
        ctx_refused(ctx, path, &why);
    }
    if (rc == 0) {
        *ctxp = ctx;
        return 0;
    }
    if (err)
        *err = why;
    dtn_suspects_write(&ctx->world, NULL, DTN_LOSS_NONE, &why);
    dtn_ctx_close(ctx);
    return rc;
}

/* Make a page that the kernel clears in a forked child.  Each call reads it:
 * one load, while getpid() would be a system call.
 */
static void ctx_mark(struct dtensor_ctx *ctx)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return;
    }
    *page = 1;
    ctx->mine = page;
}

int dtn_ctx_open(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err)
{
    struct dtensor_error why = { .rank = -1 };
    struct dtensor_ctx *ctx;
    int rc = dtn_ctx_join(path, &ctx, err);

    if (rc != 0)
        return rc;
    rc = ctx_open_rest(ctx, &why);
    if (rc != 0) {
        dtn_boot_give_up(ctx->boot, &why);
        dtn_suspects_write(&ctx->world, NULL, DTN_LOSS_NONE, &why);
        if (err)
            *err = why;
        dtn_ctx_close(ctx);
        return why.code;
    }
    ctx_mark(ctx);
    dtn_ctx_look_out(ctx);
    dtn_stall_open(ctx);
    dtn_boot_beat_await(ctx->boot);
    dtn_boot_watch_start(ctx->boot);
    dtn_log(&ctx->log, DTN_LOG_INFO, "init: rank %d of %d on %s, by %s",
            ctx->world.rank, ctx->world.size, ctx->world.host_name,
            ctx->world.launcher);
    *ctxp = ctx;
    return 0;
}

int dtn_ctx_plan(const char *path, int nranks, int per_host,
                 struct dtensor_ctx **ctxp, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = calloc(1, sizeof *ctx);
    int rc;

    if (!ctx)
        return dtn_fail_nomem(err, "init", sizeof *ctx);
    ctx->holders = 1;
    ctx->seat_fd = -1;
    ctx->arena = DTN_ARENA_NONE;
    ctx->planning = true;
    dtn_log_init(&ctx->log);
    dtn_log_check(&ctx->log);
    rc = path ? dtensor_cluster_read(path, NULL, NULL, &ctx->world.cluster, err)
              : dtn_cluster_regular(nranks, per_host, &ctx->world.cluster, err);
    if (rc != 0) {
        dtn_ctx_close(ctx);
        return rc;
    }
    if (ctx->world.cluster->transport.inter_node == DTN_WIRE_AUTO)
        ctx->world.cluster->transport.inter_node = DTN_WIRE_RC;
    ctx->world.size = ctx->world.cluster->world_size;
    snprintf(ctx->world.host_name, sizeof ctx->world.host_name, "%s",
             ctx->world.cluster->hosts[0].name);
    snprintf(ctx->world.launcher, sizeof ctx->world.launcher, "a plan");
    dtn_fail(&ctx->failure.err, DTENSOR_EINVAL, "context: it only plans and "
             "has no peers or memory (join the job with dtensor_init)");
    *ctxp = ctx;
    return 0;
}

void dtn_ctx_close(struct dtensor_ctx *ctx)
{
    if (!ctx)
        return;
    dtn_slots_destroy(ctx);
    if (ctx->mine)
        munmap(ctx->mine, (size_t)sysconf(_SC_PAGESIZE));
    dtn_wire_close(ctx);
    dtn_cpus_unbind(ctx);
    dtn_sparse_free(ctx->peers, (size_t)ctx->world.size, sizeof *ctx->peers);
    free(ctx->registered.table);
    dtn_bounces_fini(ctx);
    if (ctx->device)
        ctx->device->ops->close(ctx->device);
    dtn_arena_fini(&ctx->arena);
    ctx_leave(ctx);
    dtensor_cluster_destroy(ctx->world.cluster);
    free(ctx);
}

void dtn_ctx_hold(struct dtensor_ctx *ctx)
{
    ctx->holders++;
}

void dtn_ctx_release(struct dtensor_ctx *ctx)
{
    if (--ctx->holders > 0)
        return;
    dtn_ctx_close(ctx);
}

void dtn_ctx_finish(struct dtensor_ctx *ctx)
{
    ctx->finished = true;
    dtn_fail(&ctx->failure.err, DTENSOR_EINVAL, "context: dtensor_fini() has "
             "ended it (what is left of it can be read and destroyed)");
}

void dtn_ctx_leave(struct dtensor_ctx *ctx)
{
    dtn_wire_close(ctx);
    ctx_leave(ctx);
}

int dtn_ctx_can_allocate(const struct dtensor_ctx *ctx,
                         struct dtensor_error *err)
{
    return ctx->planning || ctx->finished ? dtn_ctx_check(ctx, err) : 0;
}
