/* redist.c - bring a tensor from one spec to another
 *
 * The plan for a pair of specs is kept in an LRU cache, with at most max_scratch
 * bytes of scratch.  The pair of the last call is compared first, some 40 ns; any
 * other costs a hash of some 100 bytes more.  Running a plan walks its steps.  The
 * result of one is the input of the next, in scratch memory that all redistributes
 * share; the last step writes straight to the caller's memory.
 */
#include "redist/redist.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "base/lru.h"
#include "coll/exec.h"
#include "coll/request.h"
#include "job/await.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/slot.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/plan.h"
#include "redist/route.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct dtn_redists {
    struct dtn_lru plans;
    uint64_t hits, misses;
    struct dtn_arena *arena;
    struct redist_scratch {            /* results between steps               */
        void *mem;
        size_t size;
    } scratch[DTN_NTARGETS];
    const void *holder;                /* the request that uses it, or NULL   */
};

/* ------------------------------------------------------------- the cache --- */

struct redist_query {
    const struct dtensor_spec *src, *dst;
    int root;                          /* of a scatter, else DTN_NO_ROOT      */
};

static bool redist_is(const struct dtn_lru_entry *entry, const void *key)
{
    const struct dtensor_plan *r = (const struct dtensor_plan *)entry;
    const struct redist_query *query = key;

    return r->root == query->root && dtn_spec_equal(&r->dst, query->dst) &&
           dtn_spec_equal(&r->src, query->src);
}

static uint64_t redist_hash(const void *key)
{
    const struct redist_query *query = key;

    return dtn_redist_hash(query->src, query->dst, query->root);
}

static void redist_destroy(struct dtn_lru_entry *entry)
{
    dtensor_plan_destroy((struct dtensor_plan *)entry);
}

static const struct dtn_lru_kind redists_kind = { redist_hash, redist_is,
                                                  redist_destroy };

/* Memory that its exchanges keep for what is packed and unpacked. */
static size_t redist_tmp_bytes(const struct dtensor_plan *r)
{
    size_t bytes = 0;

    for (int i = 0; i < r->nsteps; i++)
        if (r->step[i].plan)
            bytes += dtn_sched_scratch(dtn_plan_sched(r->step[i].plan));
    return bytes;
}

static int redists_add(struct dtn_redists *redists,
                       const struct redist_query *query,
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
                ctx->cluster->redistribute.max_scratch_bytes);
    *rp = r;
    return 0;
}

static int redists_get(struct dtn_redists *redists,
                       const struct redist_query *query,
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

static struct dtn_redists *redists_of(const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_REDIST].state;
}

/* By dtensor_fini(): plans and scratch hold memory of the arena. */
static void redists_finish(struct dtensor_ctx *ctx)
{
    struct dtn_redists *redists = redists_of(ctx);

    dtn_lru_clear(&redists->plans, &redists_kind);
    for (size_t i = 0; i < DTN_COUNT(redists->scratch); i++)
        dtn_arena_free(redists->arena, redists->scratch[i].mem);
    free(redists);
    ctx->slots[DTN_ROOM_REDIST].state = NULL;
}

static int redists_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_redists *redists;

    if (redists_of(ctx))
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
    const struct dtn_redists *redists = redists_of(ctx);

    *cache = (struct dtensor_plan_cache){ .limit = DTN_LRU_LIMIT };
    if (!redists)
        return;
    cache->hits = redists->hits;
    cache->misses = redists->misses;
    cache->dropped = redists->plans.dropped;
    cache->entries = redists->plans.n;
}

/* -------------------------------------------------------------- running --- */

/* Scratch that lives until it is asked for again; it only ever grows. */
static int redists_scratch(struct dtn_redists *redists, enum dtn_target which,
                           size_t size, struct dtensor_error *err)
{
    struct redist_scratch *scratch = &redists->scratch[which];

    if (size <= scratch->size)
        return 0;
    dtn_arena_free(redists->arena, scratch->mem);
    scratch->size = 0;
    scratch->mem = dtn_arena_alloc(redists->arena, size);
    if (!scratch->mem)
        return dtn_arena_fail(redists->arena, "redistribute", size, err);
    scratch->size = size;
    return 0;
}

int dtn_phase_finish(const struct dtn_phase *phase, void *out, size_t count,
                     struct dtensor_error *err)
{
    if (phase->kind != DTN_PHASE_BROADCAST || phase->divide <= 1)
        return 0;
    return dtn_buffer_scale(phase->dst.mesh->ctx, phase->dst.dtype, out, count,
                            phase->divide, err);
}

static struct dtn_call redist_call(const struct dtn_redist_step *step)
{
    const struct dtn_phase *phase = &step->phase;

    return (struct dtn_call){
        .coll = phase->kind == DTN_PHASE_REDUCE ? DTN_COLL_ALLREDUCE
                                                : DTN_COLL_BROADCAST,
        .n = step->group->n, .me = step->group->me, .count = step->count,
        .dtype = phase->dst.dtype, .redop = phase->redop,
        .divisor = phase->divide                 /* of a broadcast it is none */
    };
}

bool dtn_redist_idle(const struct dtn_redist_step *step)
{
    return step->group->me < 0 ||
           (step->phase.kind != DTN_PHASE_EXCHANGE && step->count == 0);
}

uint32_t dtn_redist_number(const struct dtensor_plan *r)
{
    return r->nsteps > 0 && r->all->group.me >= 0 ? ++*r->all->group.calls : 0;
}

static int redist_run_step(struct dtn_redist_step *step, uint32_t number,
                           const void *in, void *out,
                           struct dtensor_error *err)
{
    struct dtn_call call = redist_call(step);
    int rc = 0;

    call.number = number;
    if (step->phase.kind == DTN_PHASE_EXCHANGE)
        rc = dtn_plan_run(step->plan, in, out,
                          dtn_fingerprint_numbered(step->fingerprint, number),
                          err);
    else if (step->count > 0)
        rc = dtn_call_run(step->group, &call, in, out, err);
    return rc == 0 ? dtn_phase_finish(&step->phase, out, step->count, err)
                   : rc;
}

int dtn_redist_calls(struct dtensor_plan *r, struct dtensor_error *err)
{
    int rc = dtn_redist_ready(r, err);

    if (r->all->group.me < 0)
        return rc;
    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        struct dtn_redist_step *step = &r->step[i];
        const struct dtn_call call = redist_call(step);

        if (!step->plan && !dtn_redist_idle(step))
            rc = dtn_call_plan(step->group, &call, &step->plan,
                               &step->fingerprint, err);
    }
    return rc;
}

static int redist_scratch(const struct dtensor_plan *r,
                          struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = r->dst.mesh->ctx;
    int rc = redists_init(ctx, err);

    for (int i = 0; rc == 0 && i < DTN_NTARGETS; i++)
        rc = redists_scratch(redists_of(ctx), (enum dtn_target)i,
                             r->scratch[i], err);
    return rc;
}

int dtn_redist_hold(const struct dtensor_plan *r, const void *holder,
                    struct dtensor_error *err)
{
    struct dtn_redists *redists = redists_of(r->dst.mesh->ctx);

    if (r->scratch[DTN_TARGET_EVEN] + r->scratch[DTN_TARGET_ODD] == 0)
        return 0;
    if (redists && redists->holder)
        return DTENSOR_EAGAIN;
    if (redist_scratch(r, err) != 0)
        return DTENSOR_ENOMEM;
    redists_of(r->dst.mesh->ctx)->holder = holder;
    return 0;
}

void dtn_redist_release(struct dtensor_ctx *ctx, const void *holder)
{
    struct dtn_redists *redists = redists_of(ctx);

    if (redists && redists->holder == holder)
        redists->holder = NULL;
}

void *dtn_redist_target(const struct dtensor_plan *r, int i, void *out)
{
    const enum dtn_target target = r->step[i].target;

    return target == DTN_TARGET_OUT ? out
         : redists_of(r->dst.mesh->ctx)->scratch[target].mem;
}

int dtn_redist_run(struct dtensor_plan *r, const void *in, void *out,
                   struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = r->dst.mesh->ctx;
    const uint32_t number = dtn_redist_number(r);
    int rc = dtn_requests_finish(ctx, err);

    if (rc == 0)
        rc = dtn_redist_ready(r, err);
    if (rc == 0)
        rc = redist_scratch(r, err);
    if (rc == 0 && r->nsteps == 0 && r->out_bytes > 0 && in != out)
        rc = dtn_buffer_copy(ctx, out, in, r->out_bytes, err);
    memcpy(ctx->plan_text, r->text, sizeof r->text);
    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        void *to = dtn_redist_target(r, i, out);

        if (dtn_redist_idle(&r->step[i]))
            continue;
        rc = redist_run_step(&r->step[i], number, in, to, err);
        if (r->step[i].phase.kind != DTN_PHASE_EXCHANGE)
            memcpy(ctx->plan_text, r->text, sizeof r->text);
        in = to;
    }
    return rc;
}

_Static_assert(sizeof ((struct dtensor_plan *)0)->text ==
               sizeof ((struct dtensor_ctx *)0)->plan_text,
               "the text of a plan is the context's");

int dtn_redist_give_up(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int rc,
                       const struct dtensor_error *why,
                       struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = dst->mesh->ctx;

    if (ctx->failure.code == 0 &&
        (dst->mesh->group.n > 1 || src->mesh != dst->mesh))
        dtn_poison(ctx, rc, ctx->self.rank, "%s", why->text);
    if (err)
        *err = *why;
    return rc;
}

static int redist_all(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root, const void *in,
                      void *out, struct dtensor_error *err)
{
    const struct redist_query query = { src, dst, root };
    struct dtensor_ctx *ctx = dst->mesh->ctx;
    struct dtensor_plan *r;
    struct dtensor_error why;
    int rc;

    if (dst->mesh->group.me < 0 && src->mesh->group.me < 0)
        return 0;
    rc = dtn_ctx_ready(ctx, err);
    if (rc != 0)
        return rc;
    rc = redists_init(ctx, &why);
    if (rc == 0)
        rc = redists_get(redists_of(ctx), &query, &r, &why);
    if (rc == 0)
        rc = dtn_redist_run(r, in, out, &why);
    return rc == 0 ? 0 : dtn_redist_give_up(src, dst, rc, &why, err);
}

int dtn_redist_fits(const struct dtensor_plan *plan,
                    const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, struct dtensor_error *err)
{
    const bool from = dtn_spec_equal(src, &plan->src);
    char have[400], want[400];

    if (from && dtn_spec_equal(dst, &plan->dst))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "plan: the %s is %.200s, but the plan "
                    "was made for %.200s", from ? "destination" : "source",
                    dtn_spec_format(from ? dst : src, have, sizeof have),
                    dtn_spec_format(from ? &plan->dst : &plan->src, want,
                                    sizeof want));
}

int dtn_redistribute_by(struct dtensor_plan *plan,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, const void *in,
                        void *out, struct dtensor_error *err)
{
    struct dtensor_error why;
    int rc = dtn_redist_fits(plan, src, dst, err);

    if (rc == 0)
        rc = dtn_ctx_ready(dst->mesh->ctx, err);
    if (rc != 0 || plan->all->group.me < 0)
        return rc;
    rc = dtn_redist_run(plan, in, out, &why);
    return rc == 0 ? 0 : dtn_redist_give_up(src, dst, rc, &why, err);
}

int dtn_redistribute(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, const void *in, void *out,
                     struct dtensor_error *err)
{
    return redist_all(src, dst, DTN_NO_ROOT, in, out, err);
}

int dtn_scatter(const struct dtensor_spec *dst, int root, const void *full,
                void *out, struct dtensor_error *err)
{
    struct dtensor_spec src = *dst;

    for (int m = 0; m < src.mesh->ndim; m++)
        src.placement[m].kind = DTENSOR_REPLICATE;
    return redist_all(&src, dst, root, full, out, err);
}
