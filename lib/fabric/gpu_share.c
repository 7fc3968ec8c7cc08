/* gpu_share.c - can the ranks of a host map each other's GPU memory?
 *
 * The driver may refuse to export memory, or to import memory of a GPU that
 * this process cannot see.  The kernel may refuse access to the file descriptor
 * of another process: because of Yama, a seccomp filter of a container, or
 * another PID namespace.  No query reports this.  So each rank maps the first
 * piece of the next rank's memory, as dtensor_init() does, and unmaps it.  Of 8
 * ranks, rank 2 tries that of rank 3, and rank 7 that of rank 0.
 */
#include "base/error.h"
#include "base/pidfd.h"
#include "boot/boot.h"
#include "boot/table.h"
#include "cluster/cluster.h"
#include "device/memory.h"
#include "fabric/gpu.h"
#include "job/ctx.h"
#include "transport/exporter.h"
#include "dtensor.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a rank shows to the others of its host. */
struct offer {
    int32_t fd;                   /* of its first piece; -1: it shows none    */
    int32_t failed;               /* 1: it could not, or not map a peer's     */
    int64_t pid;                  /* of its process                           */
    uint64_t space;               /* its PID namespace                        */
    uint64_t bytes;               /* of the piece                             */
};

static bool trial_why(struct dtn_gpu_trial *trial, const char *fmt, ...)
    DTN_PRINTF(2, 3);
static bool trial_why(struct dtn_gpu_trial *trial, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(trial->why, sizeof trial->why, fmt, ap);
    va_end(ap);
    return false;
}

/* Is there a peer that would map memory of this rank? */
static bool is_tried(const struct dtensor_ctx *ctx)
{
    return dtn_world_wants_gpu(&ctx->world) && dtensor_local_size(ctx) > 1
        && ctx->world.cluster->transport.intra_node == DTN_WIRE_SHM;
}

/* Open the GPU, and make a file of its first piece. */
static bool offer_make(struct dtensor_ctx *ctx, struct offer *offer,
                       struct dtn_gpu_trial *trial)
{
    const struct dtn_exporter *exporter;
    struct dtensor_error err;
    struct stat st;
    int fd;

    if (dtn_ctx_open_device(ctx, &err) != 0)
        return trial_why(trial, "its GPU cannot be opened: %.250s", err.text);
    exporter = ctx->device->exporter;
    if (!exporter || exporter->piece_bytes == 0)
        return true;              /* the report says that it shares nothing  */
    if (exporter->share(exporter, 0, &fd) != 0)
        return trial_why(trial, "the driver does not export its memory: %.150s "
                         "(see what dmesg says of the driver, and the device "
                         "files that a container has)",
                         exporter->why(exporter));
    offer->fd = fd;
    offer->bytes = exporter->piece_bytes;
    offer->space = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
    return true;
}

static bool map_file(struct dtensor_ctx *ctx, int peer, size_t bytes, int fd,
                     struct dtn_gpu_trial *trial)
{
    const struct dtn_exporter *exporter = ctx->device->exporter;
    unsigned char *base = exporter->reserve(exporter, bytes);
    bool good = base && exporter->join(exporter, base, bytes, fd) == 0;

    if (!good)
        trial_why(trial, "it cannot map memory of the GPU of rank %d: %.130s "
                  "(let each rank see all GPUs of the host, in containers by "
                  "--gpus all; see nvidia-smi topo -p2p r)", peer,
                  exporter->why(exporter));
    if (good)
        exporter->leave(exporter, base, bytes);
    if (base)
        exporter->release(exporter, base, bytes);
    return good;
}

/* Map the piece of a peer.  The peer waits in a gather: its number is its. */
static bool offer_take(struct dtensor_ctx *ctx, int peer,
                       const struct offer *offer, struct dtn_gpu_trial *trial)
{
    const int pidfd = dtn_pidfd_open((pid_t)offer->pid);
    bool good;
    int fd;

    if (pidfd < 0)
        return trial_why(trial, "it cannot open the process of rank %d: %s "
                         "(start the ranks in one PID namespace, containers by "
                         "--pid=host)", peer, strerror(errno));
    fd = dtn_pidfd_getfd(pidfd, offer->fd);
    close(pidfd);
    if (fd < 0)
        return trial_why(trial, "it may not take a file of the process of rank "
                         "%d: %s (set kernel.yama.ptrace_scope to 0; start "
                         "containers by --cap-add=SYS_PTRACE)", peer,
                         strerror(errno));
    good = map_file(ctx, peer, offer->bytes, fd, trial);
    close(fd);
    return good;
}

static int offers_gather(struct dtensor_ctx *ctx, const struct offer *mine,
                         struct dtn_table **allp, struct dtensor_error *err)
{
    struct dtn_blob blob = { .size = sizeof *mine, .fd = -1 };

    memcpy(blob.bytes, mine, sizeof *mine);
    return dtn_boot_allgather(ctx->boot, &blob, allp, err);
}

static struct offer offer_of(const struct dtn_table *all, int rank)
{
    struct offer offer;

    dtn_table_copy(all, rank, &offer, sizeof offer);
    return offer;
}

/* The next rank of this host, in turn. */
static int next_here(const struct dtensor_ctx *ctx)
{
    const int rank = ctx->world.rank, n = ctx->world.size;
    int next = (rank + 1) % n;

    while (dtn_world_host(&ctx->world, next)
           != dtn_world_host(&ctx->world, rank))
        next = (next + 1) % n;
    return next;
}

int dtn_gpu_try_share(struct dtensor_ctx *ctx, struct dtn_gpu_trial *trial,
                      struct dtensor_error *err)
{
    const int next = next_here(ctx);
    struct offer mine = { .fd = -1, .pid = getpid() }, theirs;
    struct dtn_table *all;
    int rc;

    memset(trial, 0, sizeof *trial);
    mine.failed = is_tried(ctx) && !offer_make(ctx, &mine, trial);
    rc = offers_gather(ctx, &mine, &all, err);
    if (rc != 0)
        return rc;
    theirs = offer_of(all, next);
    dtn_table_free(all);
    if (mine.fd >= 0 && theirs.fd >= 0 && next != ctx->world.rank
        && mine.space == theirs.space)
        mine.failed = !offer_take(ctx, next, &theirs, trial);
    rc = offers_gather(ctx, &mine, &all, err);
    if (rc != 0)
        return rc;
    for (int r = 0; r < ctx->world.size && !trial->failed; r++)
        if (dtn_world_host(&ctx->world, r)
            == dtn_world_host(&ctx->world, ctx->world.rank)
            && offer_of(all, r).failed)
            trial->failed = 1 + r;
    dtn_table_free(all);
    return 0;
}
