/* mine.c - makes the reports of this rank
 *
 * They describe the card and the GPU that this rank would use in
 * dtensor_init(), according to the cluster file.
 */
#include "fabric/fabric.h"
#include "fabric/gpu.h"
#include "fabric/path.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "transport/device.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <string.h>

void dtn_fabric_mine(const struct dtensor_ctx *ctx, int rail,
                     struct dtn_fabric_report *report)
{
    const struct dtensor_cluster *cluster = ctx->world.cluster;
    const struct dtn_nodes *nodes = &cluster->nodes[
        cluster->hosts[dtn_world_host(&ctx->world, ctx->world.rank)].nodes];
    const char *devices = nodes->hca ? nodes->hca[ctx->world.local_rank] : NULL;
    char name[DTN_DEVICE_NAME];
    const struct dtn_device_want want = {
        .device = dtn_rails_name(devices, rail, name),
        .gid_index = nodes->gid_index, .pkey = cluster->transport.pkey
    };
    struct dtensor_error err = { 0 };

    memset(report, 0, sizeof *report);
    if (dtn_fabric_report_make(&want, ctx->world.size, nodes->nrails, report,
                               &err) == 0)
        return;
    report->code = err.code;
    snprintf(report->why, sizeof report->why, "%s", err.text);
}

void dtn_gpu_mine(const struct dtensor_ctx *ctx, const char *nic,
                  struct dtn_gpu_report *report)
{
    const struct dtn_nodes *nodes = dtn_world_nodes(&ctx->world);
    const struct dtensor_cluster *cluster = ctx->world.cluster;
    const struct dtn_gpu_want want = {
        .inside = dtensor_local_size(ctx) > 1
            ? (int)cluster->transport.intra_node + 1 : 0,
        .between = cluster->nhosts > 1
            ? (int)cluster->transport.inter_node + 1 : 0,
        .required = cluster->device.direct == DTN_DIRECT_REQUIRED,
        .number = nodes->ngpus > 0
            ? nodes->gpus[ctx->world.local_rank % nodes->ngpus] : -1,
        .local_rank = ctx->world.local_rank, .nic = nic, .root = "",
        .wanted = dtn_world_wants_gpu(&ctx->world)
    };

    dtn_gpu_look(&want, report);
}

void dtn_gpu_path_write(const struct dtensor_ctx *ctx, FILE *stream)
{
    struct dtn_fabric_report card;
    struct dtn_gpu_report report;
    char text[DTN_GPU_WORDS];

    dtn_fabric_mine(ctx, 0, &card);
    dtn_gpu_mine(ctx, card.device, &report);
    for (int i = 0; i < DTN_GPU_PATH_SENTENCES; i++)
        if (dtn_gpu_path(&report, i, text))
            fprintf(stream, "memory of GPUs: %s\n", text);
}
