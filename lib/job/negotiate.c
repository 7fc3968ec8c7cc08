/* negotiate.c - negotiate the inter-node transport
 *
 * `inter_node = auto` is rc if every rank has a device and port that rc can
 * use, and tcp if one has not.  Each rank sends its result to all others, so
 * that all choose the same.  Example: if rank 17 of 64 runs on a host without
 * RDMA, all ranks use tcp, and rank 0 logs the reason.  With `inter_node = rc`
 * the same text is an error.
 */
#include "base/log.h"
#include "boot/boot.h"
#include "boot/table.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "job/wire.h"
#include "transport/device.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <string.h>

/* Can rc use the devices of this rank?   Errors: ENODEV, with the remedy */
static int settle_look(const struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const char *names = dtn_world_device(&ctx->world);
    struct dtn_device_want want = {
        .gid_index = dtn_world_nodes(&ctx->world)->gid_index,
        .pkey = ctx->world.cluster->transport.pkey
    };
    char name[DTN_DEVICE_NAME];
    struct dtn_device_choice choice;
    struct dtn_devices devices;
    int rc = dtn_devices_look(&devices, err);

    if (rc != 0)
        return rc;
    for (int k = 0; k < dtn_rails_count(names) && rc == 0; k++) {
        want.device = dtn_rails_name(names, k, name);
        rc = dtn_device_choose(&devices, &want, &choice, err);
    }
    dtn_devices_fini(&devices);
    return rc;
}

/* The first rank that cannot use rc; -1: all can. */
static int settle_unfit(const struct dtensor_ctx *ctx,
                        const struct dtn_table *all)
{
    size_t size;

    for (int r = 0; r < ctx->world.size; r++) {
        dtn_table_bytes(all, r, &size);
        if (size > 0)
            return r;
    }
    return -1;
}

/* The transport between hosts that follows, and why. */
static void settle_choose(struct dtensor_ctx *ctx, const struct dtn_table *all)
{
    enum dtn_log_level level = ctx->world.rank == 0 ? DTN_LOG_WARN
                                                   : DTN_LOG_DEBUG;
    const int unfit = settle_unfit(ctx, all);
    const unsigned char *why;
    char name[320];
    size_t size;

    ctx->world.cluster->transport.inter_node = unfit < 0 ? DTN_WIRE_RC
                                                         : DTN_WIRE_TCP;
    if (unfit < 0) {
        dtn_log(&ctx->log, DTN_LOG_INFO, "init: inter_node = auto: rc, which "
                "all ranks can use");
        return;
    }
    why = dtn_table_bytes(all, unfit, &size);
    dtn_log(&ctx->log, level, "init: inter_node = auto: tcp, for %s cannot "
            "use rc: %.*s", dtn_world_rank_name(&ctx->world, unfit, name,
            sizeof name), (int)size, (const char *)why);
}

int dtn_wire_negotiate(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_blob mine = { .fd = -1 };
    struct dtensor_error why = { 0 };
    struct dtn_table *all;
    int rc;

    if (ctx->world.cluster->transport.inter_node != DTN_WIRE_AUTO)
        return 0;
    if (settle_look(ctx, &why) != 0) {
        mine.size = strlen(why.text);
        memcpy(mine.bytes, why.text, mine.size);
    }
    rc = dtn_boot_allgather(ctx->boot, &mine, &all, err);
    if (rc != 0)
        return rc;
    settle_choose(ctx, all);
    dtn_table_free(all);
    return 0;
}
