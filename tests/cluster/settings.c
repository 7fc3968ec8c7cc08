/* settings.c - what a cluster file makes a job and a plan do, as text
 *
 * A machine of one RDMA device is made up, and no queue pair is: the attributes
 * that the library asks for are noted and refused.
 */
#include "config.h"
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "transport/device.h"
#include "dtensor.h"
#include "tests/cluster/settings.h"
#include "tests/support/ranks.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#ifdef HAVE_VERBS
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/readback.h"
#endif

/* ------------------------------------------------------------- the file --- */

static void say_line(const char *line, void *arg)
{
    (void)arg;
    say("%s\n", line);
}

void look_read(const char *path, char said[SAID])
{
    struct dtensor_cluster *cluster = NULL;
    struct dtensor_error err;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    say_begin(said);
    if (dtensor_cluster_read(path, say_line, NULL, &cluster, &err) == 0)
        dtensor_cluster_show(cluster, DTENSOR_SHOW_HOSTS, -1, stream, &err);
    fclose(stream);
    say("%s", text);
    free(text);
    dtensor_cluster_destroy(cluster);
}

/* --------------------------------------------------- plans, predictions --- */

/* A context that plans, and its mesh "world"; NULL after saying why not. */
static struct dtensor_ctx *planner(const char *path, char said[SAID],
                                   const struct dtensor_mesh **worldp)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;

    say_begin(said);
    if (dtensor_init_offline(path, 0, 0, &ctx, &err) != 0
        || dtensor_mesh_find(ctx, "world", worldp, &err) != 0)
        say("%s\n", err.text);
    return ctx;
}

void look_meshes(const char *path, char said[SAID])
{
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx = planner(path, said, &mesh);
    char text[256];

    for (int i = 0; ctx && i < ctx->world.cluster->nmeshes; i++) {
        const char *name = ctx->world.cluster->meshes[i].name;

        if (dtensor_mesh_find(ctx, name, &mesh, NULL) != 0
            || dtensor_mesh_format(mesh, text, sizeof text) < 0)
            continue;
        say("%s: %s, ranks", name, text);
        for (int k = 0; k < dtensor_mesh_size(mesh); k++)
            say(" %d", dtensor_mesh_rank(mesh, k));
        say("\n");
    }
    dtensor_fini(ctx);
}

void look_parallel(const char *path, char said[SAID])
{
    const struct dtensor_mesh *world;
    struct dtensor_ctx *ctx = planner(path, said, &world);
    struct dtensor_module *top = NULL, *up = NULL;
    char text[256] = "", mesh[128];
    struct dtensor_error err = { 0 };
    FILE *stream;

    if (!ctx)
        return;
    stream = fmemopen(text, sizeof text, "w");
    if (!stream || dtensor_module_create(ctx, "sequential", NULL, NULL, &top,
                                         &err) != 0
        || dtensor_module_create(ctx, "relu", NULL, NULL, &up, &err) != 0
        || dtensor_module_add(top, "up", up, &err) != 0
        || dtensor_parallelize_plan(top, NULL, "a", -1, &err) != 0
        || dtensor_module_print(up, stream, &err) != 0
        || dtensor_mesh_format(dtensor_module_mesh(up), mesh, sizeof mesh) < 0)
        say("%s\n", err.text);
    else
        say("cut on %s\n%s\n", mesh, text);
    fclose(stream);
    dtensor_module_destroy(top);
    dtensor_fini(ctx);
}

void look_plan(const char *path, char said[SAID])
{
    const int64_t shape[] = { 1000, 1000 };
    const struct dtensor_mesh *world;
    struct dtensor_ctx *ctx = planner(path, said, &world);
    struct dtensor_plan *plan = NULL;
    struct dtensor_plan_step step;
    struct dtensor_plan_info info;
    struct dtensor_spec src, dst;
    struct dtensor_error err;

    if (!ctx)
        return;
    if (dtensor_spec_on(&src, world, "S(0),S(0)", DTENSOR_F32, 2, shape,
                        &err) != 0
        || dtensor_spec_on(&dst, world, "R,S(1)", DTENSOR_F32, 2, shape,
                           &err) != 0
        || dtensor_plan_create(&src, &dst, NULL, &plan, &err) != 0)
        say("%s\n", err.text);
    if (plan) {
        dtensor_plan_info(plan, &info);
        say("%s (%s)\n", info.text, info.why);
        for (int i = 0; i < info.nsteps; i++)
            if (dtensor_plan_step(plan, i, &step, &err) == 0)
                say("%s: %d rounds, scratch %llu\n", step.what, step.rounds,
                    (unsigned long long)step.scratch_bytes);
    }
    dtensor_plan_destroy(plan);
    dtensor_fini(ctx);
}

static bool way_of(const struct dtensor_mesh *world,
                   enum dtensor_collective coll, struct dtensor_way *way)
{
    const struct dtensor_call call = { .coll = coll, .dtype = DTENSOR_F32,
                                       .op = DTENSOR_SUM, .count = 1 << 18 };
    struct dtensor_way ways[16];
    struct dtensor_error err;
    int n = 0;

    if (dtensor_call_ways(world, &call, ways, 16, &n, &err) != 0)
        say("%s\n", err.text);
    for (int i = 0; i < n && i < 16; i++)
        if (ways[i].taken) {
            *way = ways[i];
            return true;
        }
    return false;
}

void look_ways(const char *path, char said[SAID])
{
    static const char *const names[] = {
        [DTENSOR_ALLREDUCE] = "allreduce", [DTENSOR_REDUCE] = "reduce",
        [DTENSOR_BROADCAST] = "broadcast", [DTENSOR_ALLGATHER] = "allgather",
        [DTENSOR_REDUCE_SCATTER] = "reduce_scatter",
        [DTENSOR_ALL_TO_ALL] = "all_to_all"
    };
    const struct dtensor_mesh *world;
    struct dtensor_ctx *ctx = planner(path, said, &world);
    struct dtensor_way way;

    for (size_t i = 0; ctx && i < DTN_COUNT(names); i++)
        if (way_of(world, (enum dtensor_collective)i, &way))
            say("%s by %s\n", names[i], way.name);
    dtensor_fini(ctx);
}

static void look_ns(const char *path, char said[SAID],
                    enum dtensor_collective coll)
{
    const struct dtensor_mesh *world;
    struct dtensor_ctx *ctx = planner(path, said, &world);
    struct dtensor_way way;

    if (ctx && way_of(world, coll, &way))
        say("%.0f", way.ns);
    dtensor_fini(ctx);
}

void look_allreduce_ns(const char *path, char said[SAID])
{
    look_ns(path, said, DTENSOR_ALLREDUCE);
}

void look_allgather_ns(const char *path, char said[SAID])
{
    look_ns(path, said, DTENSOR_ALLGATHER);
}

void look_all_to_all_ns(const char *path, char said[SAID])
{
    look_ns(path, said, DTENSOR_ALL_TO_ALL);
}

/* ---------------------------------------------------- a made-up machine --- */

int __wrap_dtn_devices_look(struct dtn_devices *devices,
                            struct dtensor_error *err);
void __wrap_dtn_devices_fini(struct dtn_devices *devices);

/* One RoCE port that is up, with GIDs 0 and 1. */
int __wrap_dtn_devices_look(struct dtn_devices *devices,
                            struct dtensor_error *err)
{
    static const struct dtn_gid gids[] = {
        { { [10] = 0xff, 0xff, 10, 1, 0, 7 }, 0, DTN_GID_V1 },
        { { [10] = 0xff, 0xff, 10, 1, 0, 7 }, 1, DTN_GID_V2 }
    };
    static struct dtn_device_name name = { .name = "made0" };
    static struct dtn_port port = {
        .device = "made0", .netdev = "eth7", .port = 1, .nports = 1, .state = 4,
        .physical = 5, .ethernet = true, .mtu = 4096, .max_mtu = 4096,
        .rate_mbps = 100000, .max_qp = 1000, .ngids = 2, .gid_rows = 2,
        .npkeys = 1, .pkey = { 0xffff }
    };

    (void)err;
    memcpy(port.gid, gids, sizeof gids);
    *devices = (struct dtn_devices){ .built = true, .ndevices = 1,
                                     .device = &name, .nports = 1,
                                     .port = &port };
    return 0;
}

void __wrap_dtn_devices_fini(struct dtn_devices *devices)
{
    (void)devices;
}

#ifdef HAVE_VERBS

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)qp;
    if (mask & IBV_QP_PATH_MTU)
        say("mtu %d, sl %d, class %d, ", 128 << attr->path_mtu,
            attr->ah_attr.sl,
            attr->ah_attr.grh.traffic_class);
    if (!(mask & IBV_QP_TIMEOUT))
        return 0;
    say("timeout %d, retry %d, rnr %d\n", attr->timeout, attr->retry_cnt,
        attr->rnr_retry);
    return EINVAL;
}

void look_queue(const char *path, char said[SAID])
{
    struct dtensor_cluster *cluster = NULL;
    struct dtn_verbs_end end = { .gid.raw = { 2 }, .mtu = IBV_MTU_4096 };
    struct dtn_verbs *verbs = calloc(1, sizeof *verbs);
    struct dtn_verbs_peer *peer = calloc(1, sizeof *peer);
    struct dtensor_error err;

    say_begin(said);
    if (dtensor_cluster_read(path, NULL, NULL, &cluster, &err) != 0)
        exit(99);
    verbs->peers = &peer;
    verbs->args.conf = &cluster->transport;
    verbs->nrails = 1;
    verbs->rail[0].device = (struct dtn_verbs_device){ .port = 1,
        .mtu = IBV_MTU_4096, .gid.raw = { 1 } };
    say("%d queue pairs, ", dtn_verbs_queues_wanted(&cluster->transport, 1));
    say("%d reads back, ",
        dtn_verbs_readback_needed(&cluster->transport, false, 1));
    peer->address.end[0] = end;
    peer->nqueues = 1;
    peer->greeting.nqueues = 1;
    peer->queue[0].rail = &verbs->rail[0];
    dtn_verbs_queues_join(verbs, 0, &err);
    free(peer);
    free(verbs);
    dtensor_cluster_destroy(cluster);
}

#else

void look_queue(const char *path, char said[SAID])
{
    (void)path;
    say_begin(said);
}

#endif
