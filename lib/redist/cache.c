/* cache.c - the plans that a context keeps for redistributes
 *
 * An LRU cache of 256 plans with at most max_scratch bytes of scratch.  The
 * specs of the last call are compared first, which takes about 40 ns.  To find
 * any other plan, about 100 bytes are hashed first.
 */
#include "redist/cache.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "coll/exec.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/ready.h"
#include "redist/route.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

static bool redist_is(const struct dtn_lru_entry *entry, const void *key)
{
    const struct dtensor_plan *r = (const struct dtensor_plan *)entry;
    const struct dtn_redist_query *query = key;

    return r->root == query->root && dtn_spec_equal(&r->dst, query->dst) &&
           dtn_spec_equal(&r->src, query->src);
}

static uint64_t redist_hash(const void *key)
{
    const struct dtn_redist_query *query = key;

    return dtn_redist_hash(query->src, query->dst, query->root);
}

static void redist_destroy(struct dtn_lru_entry *entry)
{
    dtensor_plan_destroy((struct dtensor_plan *)entry);
}

static const struct dtn_lru_kind redists_kind = { redist_hash, redist_is,
                                                  redist_destroy };

/* Scratch that its exchanges keep for packing and unpacking. */
static size_t redist_tmp_bytes(const struct dtensor_plan *r)
{
    size_t bytes = 0;

    for (int i = 0; i < r->nsteps; i++)
        if (r->step[i].exec)
            bytes += dtn_sched_scratch(dtn_exec_sched(r->step[i].exec));
    return bytes;
}

static int redists_add(struct dtn_redists *redists,
                       const struct dtn_redist_query *query,
                       struct dtensor_plan **rp, struct dtensor_error *err)
{
    static const struct dtensor_plan_options defaults;
    struct dtensor_ctx *ctx = query->dst->mesh->ctx;
    struct dtensor_plan *r;
    int rc = dtn_redist_create(query->src, query->dst, query->root, &defaults,
                               &r, err);

    if (rc != 0)
        return rc;
    rc = dtn_redist_ready(r, err);
    if (rc != 0) {
        dtensor_plan_destroy(r);
        return rc;
    }
    dtn_log(&ctx->log, DTN_LOG_INFO, "spec: %s (%s: %s)", r->text,
            dtn_route_name(r->route), r->why);
    redists->misses++;
    r->entry.bytes = redist_tmp_bytes(r);
    dtn_lru_add(&redists->plans, &redists_kind, query, &r->entry,
                ctx->world.cluster->redistribute.max_scratch_bytes);
    *rp = r;
    return 0;
}

int dtn_redists_get(struct dtn_redists *redists,
                    const struct dtn_redist_query *query,
                    struct dtensor_plan **rp, struct dtensor_error *err)
{
    struct dtn_lru_entry *found = dtn_lru_find(&redists->plans, &redists_kind,
                                               query);

    if (!found)
        return redists_add(redists, query, rp, err);
    redists->hits++;
    *rp = (struct dtensor_plan *)found;
    return 0;
}

/* By dtensor_fini(): plans and scratch hold memory of the arena. */
static void redists_finish(struct dtensor_ctx *ctx)
{
    struct dtn_redists *redists = dtn_redists_of(ctx);

    dtn_lru_clear(&redists->plans, &redists_kind);
    for (size_t i = 0; i < DTN_COUNT(redists->scratch); i++)
        dtn_arena_free(redists->arena, redists->scratch[i].mem);
    free(redists);
    ctx->slots[DTN_ROOM_REDIST].state = NULL;
}

int dtn_redists_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_redists *redists;

    if (dtn_redists_of(ctx))
        return 0;
    redists = calloc(1, sizeof *redists);
    if (!redists)
        return dtn_fail_nomem(err, "redistribute", sizeof *redists);
    redists->arena = &ctx->arena;
    ctx->slots[DTN_ROOM_REDIST] = (struct dtn_slot){ redists, redists_finish,
                                                     NULL };
    return 0;
}

void dtensor_plan_cache(const struct dtensor_ctx *ctx,
                        struct dtensor_plan_cache *cache)
{
    const struct dtn_redists *redists = dtn_redists_of(ctx);

    *cache = (struct dtensor_plan_cache){ .limit = DTN_LRU_LIMIT };
    if (!redists)
        return;
    cache->hits = redists->hits;
    cache->misses = redists->misses;
    cache->dropped = redists->plans.dropped;
    cache->entries = redists->plans.n;
}
