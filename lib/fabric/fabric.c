/* fabric.c - reports of all ranks on the RDMA fabric
 *
 * Whether rc works depends on all machines: a port may be down on one of 128
 * hosts, or Slurm may have passed on the `ulimit -l` of a login node.  So every
 * rank examines its own devices and makes the choice that it would make in
 * dtensor_init().  It sends both over the bootstrap, which needs no RDMA: one
 * blob of less than 1 KiB for each rail.  For 1024 ranks with one rail this is
 * 1 MiB, once.
 */
#include "fabric/fabric.h"
#include "fabric/gpu.h"
#include "base/error.h"
#include "boot/boot.h"
#include "boot/table.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct dtn_fabric_report) <= DTN_BLOB_MAX,
               "a report fits a blob");
_Static_assert(sizeof(struct dtn_gpu_report) <= DTN_BLOB_MAX,
               "a report on a GPU fits, too");

static int fabric_gather(struct dtensor_ctx *ctx,
                         struct dtn_fabric_report report[],
                         struct dtensor_error *err)
{
    struct dtn_blob mine = { .size = sizeof report[0], .fd = -1 };
    int nrails = dtn_fabric_rails(ctx->world.cluster), rc = 0;
    struct dtn_fabric_report own;
    struct dtn_table *all;

    for (int k = 0; k < nrails && rc == 0; k++) {
        dtn_fabric_mine(ctx, k, &own);
        memcpy(mine.bytes, &own, sizeof own);
        rc = dtn_boot_allgather(ctx->boot, &mine, &all, err);
        if (rc != 0)
            return rc;
        for (int r = 0; r < ctx->world.size; r++)
            dtn_table_copy(all, r, &report[r * nrails + k], sizeof report[0]);
        dtn_table_free(all);
    }
    return rc;
}

static int gpu_gather(struct dtensor_ctx *ctx, const char *nic,
                      struct dtn_gpu_report report[], struct dtensor_error *err)
{
    struct dtn_blob mine = { .size = sizeof report[0], .fd = -1 };
    struct dtn_gpu_report own;
    struct dtn_gpu_trial trial;
    struct dtn_table *all;
    int rc = dtn_gpu_try_share(ctx, &trial, err);

    if (rc != 0)
        return rc;
    dtn_gpu_mine(ctx, nic, &own);
    if (own.code == 0) {
        own.unmapped = trial.failed;
        snprintf(own.why, sizeof own.why, "%s", trial.why);
    }
    memcpy(mine.bytes, &own, sizeof own);
    rc = dtn_boot_allgather(ctx->boot, &mine, &all, err);
    if (rc != 0)
        return rc;
    for (int r = 0; r < ctx->world.size; r++)
        dtn_table_copy(all, r, &report[r], sizeof report[0]);
    dtn_table_free(all);
    return 0;
}

/* Gather the reports on GPUs, and print them on rank 0. */
static int gpu_show(struct dtensor_ctx *ctx, const char *nic,
                    FILE *stream, struct dtensor_error *err)
{
    size_t world = (size_t)ctx->world.size;
    struct dtn_gpu_report *report = calloc(world, sizeof *report);
    int rc = report ? gpu_gather(ctx, nic, report, err)
                    : dtn_fail_nomem(err, "fabric", world * sizeof *report);

    if (rc == 0 && ctx->world.rank == 0)
        dtn_gpu_table_write(report, ctx->world.size, stream);
    free(report);
    return rc;
}

/* Wait until rank 0 has written the table.  When one rank exits with a failure,
 * such as "unfit", the launcher may kill the others.
 */
static int fabric_part(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtn_blob nothing = { .size = 0, .fd = -1 };
    struct dtn_table *all;
    int rc = dtn_boot_allgather(ctx->boot, &nothing, &all, err);

    if (rc == 0)
        dtn_table_free(all);
    return rc;
}

static int fabric_show(struct dtensor_ctx *ctx, FILE *stream, int *unfitp,
                       struct dtensor_error *err)
{
    size_t world = (size_t)ctx->world.size;
    int nrails = dtn_fabric_rails(ctx->world.cluster);
    size_t rows = world * (size_t)nrails;
    struct dtn_fabric_report *report = calloc(rows, sizeof *report);
    struct dtn_fabric_majority usual;
    int rc = 0, unfit = 0;

    if (!report)
        rc = dtn_fail_nomem(err, "fabric", rows * sizeof *report);
    if (rc == 0)
        rc = fabric_gather(ctx, report, err);
    if (rc == 0) {
        dtn_fabric_majority(report, (int)rows, &usual);
        unfit = dtn_fabric_unfit(ctx->world.cluster, report, &usual);
        if (ctx->world.rank == 0) {
            dtn_fabric_table_write(ctx->world.cluster, report, stream);
            fflush(stream);
        }
        rc = gpu_show(ctx, report[ctx->world.rank * nrails].device, stream,
                      err);
    }
    if (rc == 0) {
        fflush(stream);
        rc = fabric_part(ctx, err);
    }
    if (rc == 0)
        *unfitp = dtn_fabric_wanted(ctx->world.cluster) ? unfit : 0;
    free(report);
    return rc;
}

int dtensor_fabric_show(const char *path, FILE *stream, int *unfitp,
                        struct dtensor_error *err)
{
    struct dtensor_ctx *ctx;
    int rc = dtn_ctx_join(path, &ctx, err);

    if (rc != 0)
        return rc;
    rc = fabric_show(ctx, stream, unfitp, err);
    dtn_ctx_close(ctx);
    return rc;
}
