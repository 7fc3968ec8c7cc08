/* redist.c - bring a tensor from one spec to another
 *
 * What was made for a pair of specs is kept, 256 of them, the least recently
 * used dropped: found again it costs a hash of some 100 bytes, about 50 ns.
 * Running it walks its one to three phases.  The result of one phase is the
 * input of the next, in scratch memory that all redistributes share; the last
 * writes straight to the caller's memory.
 */
#include "spec/redist.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#define REDISTS_MAX 256

struct dtn_redists {
    struct dtn_redist *first;          /* most recently used                  */
    int n;
    struct dtn_arena *arena;
    struct redist_scratch {            /* results between phases              */
        void *mem;
        size_t size;
    } scratch[DTN_MAX_PHASES - 1];
};

/* ------------------------------------------------------------------ keys --- */

/* Everything in a spec that has a meaning, the same on every rank. */
static uint32_t redist_hash_spec(const struct dtensor_spec *spec, uint32_t seed)
{
    int64_t key[3 + 5 * DTENSOR_MAX_DIMS] = {
        spec->mesh->group.hash, spec->dtype, spec->ndim
    };
    size_t n = 3;

    for (int d = 0; d < spec->ndim; d++)
        key[n++] = spec->shape[d];
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];
        const bool cuts = dtn_placement_class(p) == DTENSOR_SHARD;

        key[n++] = spec->mesh->size[m];
        key[n++] = p->kind;
        key[n++] = cuts ? p->dim
                 : p->kind == DTENSOR_PARTIAL ? (int64_t)p->op : 0;
        key[n++] = cuts && p->kind != DTENSOR_SHARD ? p->block : 0;
        if (p->kind == DTENSOR_SHARD && p->sizes)
            seed = XXH32(p->sizes, (size_t)spec->mesh->size[m] *
                                   sizeof p->sizes[0], seed + 1);
    }
    return XXH32(key, n * sizeof key[0], seed);
}

static uint32_t redist_hash(const struct dtensor_spec *src,
                            const struct dtensor_spec *dst, int root)
{
    return redist_hash_spec(dst, redist_hash_spec(src, (uint32_t)root));
}

/* ------------------------------------------------------------- the cache --- */

static bool redist_is(const struct dtn_redist *r,
                      const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root, uint32_t hash)
{
    return r->hash == hash && r->root == root && dtn_spec_equal(&r->src, src)
        && dtn_spec_equal(&r->dst, dst);
}

/* Put it in front; when that is one too many, drop the last. */
static void redists_keep(struct dtn_redists *redists, struct dtn_redist *r)
{
    struct dtn_redist **last = &redists->first;

    if (redists->n == REDISTS_MAX) {
        while ((*last)->next)
            last = &(*last)->next;
        dtn_redist_destroy(*last);
        *last = NULL;
        redists->n--;
    }
    r->next = redists->first;
    redists->first = r;
    redists->n++;
}

static int redists_get(struct dtn_redists *redists,
                       const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int root,
                       struct dtn_redist **rp, struct dtensor_error *err)
{
    uint32_t hash = redist_hash(src, dst, root);
    struct dtn_redist **at = &redists->first, *r;
    int rc;

    while (*at && !redist_is(*at, src, dst, root, hash))
        at = &(*at)->next;
    r = *at;
    if (r) {
        *at = r->next;
        redists->n--;
    } else {
        rc = dtn_redist_create(src, dst, root, hash, &r, err);
        if (rc != 0)
            return rc;
        dtn_log(&src->mesh->ctx->log, DTN_LOG_INFO, "spec: %s", r->text);
    }
    redists_keep(redists, r);
    *rp = r;
    return 0;
}

static int redists_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    if (ctx->redists)
        return 0;
    ctx->redists = calloc(1, sizeof *ctx->redists);
    if (!ctx->redists)
        return dtn_fail_nomem(err, "redistribute", sizeof *ctx->redists);
    ctx->redists->arena = &ctx->arena;
    return 0;
}

void dtn_redists_destroy(struct dtn_redists *redists)
{
    struct dtn_redist *next;

    if (!redists)
        return;
    for (struct dtn_redist *r = redists->first; r; r = next) {
        next = r->next;
        dtn_redist_destroy(r);
    }
    for (size_t i = 0; i < DTN_COUNT(redists->scratch); i++)
        dtn_arena_free(redists->arena, redists->scratch[i].mem);
    free(redists);
}

/* -------------------------------------------------------------- running --- */

/* Scratch that lives until it is asked for again; it only ever grows. */
static int redists_scratch(struct dtn_redists *redists, int which, size_t size,
                           void **memp, struct dtensor_error *err)
{
    struct redist_scratch *scratch = &redists->scratch[which];

    if (size > scratch->size) {
        dtn_arena_free(redists->arena, scratch->mem);
        scratch->size = 0;
        scratch->mem = dtn_arena_alloc(redists->arena, size);
        if (!scratch->mem)
            return dtn_fail_nomem(err, "redistribute", size);
        scratch->size = size;
    }
    *memp = scratch->mem;
    return 0;
}

/* array[i] *= n, by the vectors of the product reduction. */
static void redist_multiply(enum dtensor_dtype dtype, void *array,
                            size_t count, int n)
{
    enum { BLOCK = 256 };
    size_t elem = dtensor_dtype_size(dtype), m;
    int64_t factors[BLOCK];                  /* room for any dtype           */

    for (size_t i = 0; i < BLOCK; i++)
        dtn_store(dtype, factors, i, n);
    for (size_t i = 0; i < count; i += m) {
        unsigned char *at = (unsigned char *)array + i * elem;
        const void *terms[2] = { at, factors };

        m = count - i < BLOCK ? count - i : BLOCK;
        dtn_reduce(dtype, DTENSOR_PROD, at, terms, 2, m);
    }
}

static int redist_run_step(struct dtn_redist_step *step, uint32_t hash,
                           const void *in, void *out, struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    enum dtensor_dtype dtype = phase->dst.dtype;
    struct dtn_call call = { .coll = phase->kind == DTN_PHASE_REDUCE
                                   ? DTN_COLL_ALLREDUCE : DTN_COLL_BROADCAST,
                             .count = step->count, .dtype = dtype,
                             .redop = phase->redop };
    int rc = 0;

    if (phase->kind == DTN_PHASE_EXCHANGE)
        rc = dtn_plan_run(step->plan, in, out,
                          dtn_fingerprint(DTN_COLL_EXCHANGE, dtype,
                                          phase->redop, hash), err);
    else if (step->count > 0)
        rc = dtn_call_run(step->group, &call, in, out, err);
    if (rc == 0 && phase->divide > 1)
        dtn_scale(dtype, out, step->count, phase->divide);
    if (rc == 0 && phase->multiply > 1)
        redist_multiply(dtype, out, step->count, phase->multiply);
    return rc;
}

/* Where the result of step i goes.  An allreduce or broadcast works in place,
 * so what is before it goes where its own result goes.
 */
static int redist_target(struct dtn_redists *redists,
                         const struct dtn_redist *r, int i, void *out,
                         void **targetp, struct dtensor_error *err)
{
    const struct dtn_redist_step *step = &r->step[i];

    while (i + 1 < r->nsteps && r->step[i + 1].phase.kind != DTN_PHASE_EXCHANGE)
        i++;
    if (i + 1 < r->nsteps)
        return redists_scratch(redists, i, step->count *
                               dtensor_dtype_size(r->dst.dtype), targetp, err);
    *targetp = out;
    return 0;
}

static int redist_run(struct dtn_redists *redists, struct dtn_redist *r,
                      const void *in, void *out, struct dtensor_error *err)
{
    void *target = NULL;
    int rc = 0;

    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        rc = redist_target(redists, r, i, out, &target, err);
        if (rc == 0)
            rc = redist_run_step(&r->step[i], r->hash, in, target, err);
        in = target;
    }
    return rc;
}

/* Copy when the part stays as it is, else get what was made and run it. */
static int redist_do(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, int root, const void *in,
                     void *out, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = dst->mesh->ctx;
    size_t bytes = (size_t)dtn_local_numel(dst, dst->mesh->group.me) *
                   dtensor_dtype_size(dst->dtype);
    struct dtn_redist *r;
    int rc = redists_init(ctx, err);

    if (rc == 0)
        rc = redists_get(ctx->redists, src, dst, root, &r, err);
    if (rc != 0)
        return rc;
    memcpy(ctx->plan_text, r->text, sizeof r->text);
    if (r->nsteps == 0 && bytes > 0 && in != out)
        memcpy(out, in, bytes);
    rc = redist_run(ctx->redists, r, in, out, err);
    if (rc == 0)                             /* an allreduce wrote its own   */
        memcpy(ctx->plan_text, r->text, sizeof r->text);
    return rc;
}

_Static_assert(sizeof ((struct dtn_redist *)0)->text ==
               sizeof ((struct dtensor_ctx *)0)->plan_text,
               "the text of a plan is the context's");

/* A rank that fails alone tells the others, who wait for it. */
static int redist_all(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root, const void *in,
                      void *out, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = dst->mesh->ctx;
    struct dtensor_error why;
    int rc;

    if (dst->mesh->group.me < 0)
        return 0;
    rc = dtn_ctx_check(ctx, err);
    if (rc != 0)
        return rc;
    rc = redist_do(src, dst, root, in, out, &why);
    if (rc == 0)
        return 0;
    if (ctx->failure.code == 0 && dst->mesh->group.n > 1)
        dtn_poison(ctx, rc, ctx->self.rank, "%s", why.text);
    if (err)
        *err = why;
    return rc;
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
