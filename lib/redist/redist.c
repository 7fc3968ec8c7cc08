/* redist.c - redistributes a tensor from one spec to another
 *
 * The plan is found in the cache or made; then its steps run.
 */
#include "redist/redist.h"
#include "job/await.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "redist/cache.h"
#include "redist/fail.h"
#include "redist/plan.h"
#include "redist/run.h"
#include "dtensor.h"

static int redist_all(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root, const void *in,
                      void *out, struct dtensor_error *err)
{
    const struct dtn_redist_query query = { src, dst, root };
    struct dtensor_ctx *ctx = dst->mesh->ctx;
    struct dtensor_plan *r;
    struct dtensor_error why;
    int rc;

    if (dst->mesh->group.me < 0 && src->mesh->group.me < 0 && !ctx->planning)
        return 0;
    rc = in || out ? dtn_ctx_ready(ctx, err) : dtn_ctx_follows(ctx, err);
    if (rc != 0)
        return rc;
    rc = dtn_redists_init(ctx, &why);
    if (rc == 0)
        rc = dtn_redists_get(dtn_redists_of(ctx), &query, &r, &why);
    if (rc == 0)
        rc = dtn_redist_run(r, in, out, &why);
    return rc == 0 ? 0 : dtn_redist_give_up(src, dst, rc, &why, err);
}

int dtn_redistribute_by(struct dtensor_plan *plan,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, const void *in,
                        void *out, struct dtensor_error *err)
{
    struct dtensor_error why;
    int rc = dtn_redist_fits(plan, src, dst, err);

    if (rc == 0)
        rc = dtn_ctx_follows(dst->mesh->ctx, err);
    if (rc != 0 || (plan->all->group.me < 0 && !dst->mesh->ctx->planning))
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
