/* models.c - the cost models of groups, made once and kept
 *
 * The costs of hops, messages and bytes are those of the cluster; a group adds
 * the hosts of its ranks.  8 ranks on hosts 3 3 3 3 5 5 5 5 of the cluster are
 * 2 hosts of 4 ranks, numbered in order of appearance: 0 0 0 0 1 1 1 1.  This
 * needs a loop over all ranks, so it is done for the first call over the group,
 * and every later executable uses the result.
 */
#include "base/error.h"
#include "base/ranks.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "coll/choose.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/crossings.h"
#include "sched/model.h"
#include "transport/transport.h"
#include "dtensor.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>

enum { MODELS_BUCKETS = 256 };

/* The model of the group whose list of ranks is at this address. */
struct kept_model {
    struct kept_model *next;      /* next in its bucket                       */
    const struct dtn_ranks *ranks;
    struct dtn_model model;
    int host[];
};

struct dtn_models {
    struct kept_model *bucket[MODELS_BUCKETS];
};

/* ------------------------------------------------------ where ranks are --- */

/* The entry of count[] for a host of the cluster. */
struct host_count {
    int number;                   /* number in order of appearance, from 1;   */
                                  /* 0: none yet                              */
    int ranks;
};

/* The host of a rank, which is mostly that of the last one. */
static int model_host(const struct dtn_world *world, int rank, int last)
{
    const struct dtn_host *host = &world->cluster->hosts[last];

    return rank >= host->first_rank && rank < host->first_rank + host->nranks
         ? last : dtn_world_host(world, rank);
}

/* Number the hosts and count their ranks: the number of hosts, the most ranks
 * and the fewest.
 */
static void model_count(const struct dtn_group *group,
                        struct host_count count[], int host[],
                        struct dtn_model *model)
{
    const struct dtn_world *world = &group->ctx->world;
    int where = 0;

    model->hosts = 0;
    model->locals = 0;
    for (int p = 0; p < group->n; p++) {
        struct host_count *at;

        where = model_host(world, dtn_ranks_at(group->ranks, p), where);
        at = &count[where];
        if (at->number == 0)
            at->number = ++model->hosts;
        at->ranks++;
        if (at->ranks > model->locals)
            model->locals = at->ranks;
        host[p] = at->number - 1;
    }
    model->uneven = model->hosts * model->locals != group->n;
    model->rails = model->locals;
    for (int h = 0; h < world->cluster->nhosts; h++)
        if (count[h].number > 0 && count[h].ranks < model->rails)
            model->rails = count[h].ranks;
    model->crossings = dtn_crossings_count(host, group->n, model->hosts,
                                           model->locals);
}

static enum dtn_reach model_reach(const struct dtn_model *model,
                                  const struct dtn_group *group)
{
    if (group->ctx->world.cluster->transport.intra_node != DTN_WIRE_SHM)
        return group->n == 1 ? DTN_REACH_MAP : DTN_REACH_PUT;
    return model->hosts <= 1 ? DTN_REACH_MAP
         : model->locals > 1 ? DTN_REACH_HOST : DTN_REACH_PUT;
}

/* Eager messages for one rank, all that can be on their way. */
#define MODEL_EAGER_TOTAL ((size_t)1 << 20)

/* Inside a host a byte of an eager message is stored into a cache line that the
 * peer has read, and then copied.  A longer message is faster if the peer loads
 * it, which takes two more signals.  us of two ranks, eager and loaded:
 *
 *                            dtensor_alloc()   malloc()
 *      near CPUs
 *      allreduce of 2 KiB         0.41  0.54   0.39  0.60
 *      allreduce of 4 KiB         0.79  0.52   0.77  0.83
 *      broadcast of 4 KiB         0.67  0.40   0.66  0.50
 *      allgather of 2 * 4 KiB     0.78  0.51   0.76  0.90
 *      far CPUs
 *      allgather of 2 * 4 KiB     2.55  1.22   2.50  1.55
 *
 * If ranks outnumber CPUs, each signal waits for a CPU.
 */
#define MODEL_MAPPED_EAGER ((size_t)2 << 10)

/* Over tcp eager messages are longer, but of many peers together not more than
 * a rank has room for.
 */
size_t dtn_model_group_eager(const struct dtn_model *model,
                             const struct dtn_transport_conf *conf, int n)
{
    const size_t share = MODEL_EAGER_TOTAL / (size_t)(n > 0 ? n : 1);
    size_t bytes = DTN_KEPT_MAX;

    if (n > 1 && model->reach == DTN_REACH_MAP && model->ranks_per_cpu <= 1)
        return MODEL_MAPPED_EAGER;
    if (model->locals > 1 && dtn_wire_eager_bytes(conf->intra_node) < bytes)
        bytes = dtn_wire_eager_bytes(conf->intra_node);
    if (model->hosts > 1 && dtn_wire_eager_bytes(conf->inter_node) < bytes)
        bytes = dtn_wire_eager_bytes(conf->inter_node);
    bytes = share < bytes ? share : bytes;
    return bytes > DTN_EAGER_MAX ? bytes : DTN_EAGER_MAX;
}

int dtn_model_make(const struct dtn_group *group, int host[],
                   struct dtn_model *model, struct dtensor_error *err)
{
    const struct dtensor_cluster *cluster = group->ctx->world.cluster;
    const size_t nhosts = (size_t)cluster->nhosts + 1;
    struct host_count *count = calloc(nhosts, sizeof *count);
    int first;

    if (!count)
        return dtn_fail_nomem(err, "model", nhosts * sizeof *count);
    dtn_model_costs(cluster, model);
    dtn_model_oversubscribe(model, group->ctx->cpus.ranks_per_cpu);
    model_count(group, count, host, model);
    free(count);
    first = group->n > 0 ? dtn_world_host(&group->ctx->world,
                                          dtn_ranks_at(group->ranks, 0)) : 0;
    model->host = host;
    model->reach = model_reach(model, group);
    model->eager_bytes = dtn_model_group_eager(model, &cluster->transport,
                                               group->n);
    model->ranks_per_device =
        (double)model->locals / dtn_model_devices(cluster, first);
    if (model->ranks_per_device < 1)
        model->ranks_per_device = 1;
    return 0;
}

/* -------------------------------------------------------------- keeping --- */

int dtn_model_of(const struct dtn_group *group,
                 const struct dtn_model **modelp, struct dtensor_error *err)
{
    const size_t size = sizeof(struct kept_model)
                      + (size_t)group->n * sizeof(int);
    struct dtn_coll_state *coll = dtn_coll_of(group->ctx);
    struct kept_model **bucket, *kept;
    int rc;

    if (!coll->models && !(coll->models = calloc(1, sizeof *coll->models)))
        return dtn_fail_nomem(err, "model", sizeof *coll->models);
    bucket = &coll->models->bucket[XXH3_64bits(&group->ranks,
                                               sizeof group->ranks)
                                   % MODELS_BUCKETS];
    kept = *bucket;
    while (kept && kept->ranks != group->ranks)
        kept = kept->next;
    if (!kept) {
        kept = malloc(size);
        if (!kept)
            return dtn_fail_nomem(err, "model", size);
        *kept = (struct kept_model){ .next = *bucket, .ranks = group->ranks };
        rc = dtn_model_make(group, kept->host, &kept->model, err);
        if (rc != 0) {
            free(kept);
            return rc;
        }
        *bucket = kept;
    }
    *modelp = &kept->model;
    return 0;
}

void dtn_models_destroy(struct dtn_models *models)
{
    struct kept_model *kept;

    for (int b = 0; models && b < MODELS_BUCKETS; b++)
        while ((kept = models->bucket[b])) {
            models->bucket[b] = kept->next;
            free(kept);
        }
    free(models);
}
