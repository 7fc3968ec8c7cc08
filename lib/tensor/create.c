/* create.c - tensors from nothing, from a formula, from an array
 *
 * Every rank makes its own part; only dtensor_distribute() with a root moves
 * data.  Which elements of the whole are a rank's is known from the spec: the
 * part of rank 1 of f32[10,5] as S(0) on 4 ranks begins with row 3, so
 * dtensor_arange() starts there with 15.
 */
#include "base/dtype.h"
#include "base/error.h"
#include "base/reduce.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "random/rows.h"
#include "redist/phases.h"
#include "redist/redist.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <string.h>

int dtensor_empty(const struct dtensor_spec *spec, struct dtensor **tp,
                  struct dtensor_error *err)
{
    return dtn_tensor_create(spec, tp, err);
}

int dtensor_zeros(const struct dtensor_spec *spec, struct dtensor **tp,
                  struct dtensor_error *err)
{
    struct dtensor *t;
    int rc = dtn_tensor_create(spec, &t, err);

    if (rc != 0)
        return rc;
    if (t->bytes > 0)
        memset(t->local, 0, t->bytes);
    *tp = t;
    return 0;
}

/* Repeat the first element, doubling what is there. */
static void tensor_repeat(struct dtensor *t)
{
    size_t elem = dtensor_dtype_size(t->spec.dtype), step;
    unsigned char *local = t->local;

    for (size_t done = elem; done < t->bytes; done += step) {
        step = t->bytes - done < done ? t->bytes - done : done;
        memcpy(local + done, local, step);
    }
}

int dtensor_full(const struct dtensor_spec *spec, double value,
                 struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor_spec whole;
    struct dtn_phase split;
    struct dtensor *t;
    int rc = dtn_tensor_create(spec, &t, err);

    if (rc != 0)
        return rc;
    *tp = t;
    if (t->bytes == 0)
        return 0;
    whole = t->spec;
    for (int m = 0; m < whole.mesh->ndim; m++)
        if (whole.placement[m].kind == DTENSOR_PARTIAL)
            whole.placement[m].kind = DTENSOR_REPLICATE;
    split = dtn_phase_exchange(&whole, &t->spec);
    if (dtn_phase_idle(&split, whole.mesh->group.me))
        dtn_fill_neutral(whole.dtype, split.redop, t->local, 1);
    else
        dtn_store(whole.dtype, t->local, 0, value);
    if (split.divide > 1)
        dtn_scale(whole.dtype, t->local, 1, split.divide);
    tensor_repeat(t);
    return 0;
}

int dtensor_ones(const struct dtensor_spec *spec, struct dtensor **tp,
                 struct dtensor_error *err)
{
    return dtensor_full(spec, 1, tp, err);
}

int dtensor_clone(const struct dtensor *t, struct dtensor **tp,
                  struct dtensor_error *err)
{
    struct dtensor *made;
    int rc = dtn_tensor_create(&t->spec, &made, err);

    if (rc != 0)
        return rc;
    if (t->bytes > 0)
        memcpy(made->local, t->local, t->bytes);
    *tp = made;
    return 0;
}

static void tensor_store_index(enum dtensor_dtype dtype, void *local, size_t i,
                               int64_t index)
{
    if (dtensor_dtype_size(dtype) == 8 && !dtn_dtype_is_float(dtype))
        dtn_store_int(dtype, local, i, index);   /* a double has 53 bits only */
    else
        dtn_store(dtype, local, i, (double)index);
}

int dtensor_arange(const struct dtensor_spec *spec, struct dtensor **tp,
                   struct dtensor_error *err)
{
    struct dtn_rows rows;
    struct dtn_row row;
    struct dtensor *t;
    int rc = dtn_tensor_create(spec, &t, err);

    if (rc != 0)
        return rc;
    if (dtn_spec_partial(spec) >= 0) {
        dtensor_destroy(t);
        return dtn_fail(err, DTENSOR_EINVAL, "arange: no placement may be "
                        "Partial (make it of R and redistribute)");
    }
    *tp = t;
    if (t->bytes == 0)
        return 0;
    dtn_rows_init(&rows, &t->spec, t->spec.mesh->group.me);
    while (dtn_rows_next(&rows, &row))
        for (int64_t i = 0; i < row.count; i++)
            tensor_store_index(t->spec.dtype, t->local, (size_t)(row.local + i),
                               row.global + i);
    return 0;
}

/* Large arrays go in slabs, not to be staged whole where peers reach; small
 * ones by a plan that is kept.
 */
static int distribute_run(const struct dtensor_spec *spec, const void *full,
                          int root, void *local, struct dtensor_error *err)
{
    size_t bytes = (size_t)dtn_numel(spec->ndim, spec->shape) *
                   dtensor_dtype_size(spec->dtype);

    if (root < 0 ||
        bytes <= spec->mesh->ctx->cluster->redistribute.pipeline_bytes)
        return dtn_scatter(spec, root, full, local, err);
    return dtn_scatter_slabs(spec, root, full, local, err);
}

int dtensor_distribute(const struct dtensor_spec *spec, const void *full,
                       int root, struct dtensor **tp,
                       struct dtensor_error *err)
{
    struct dtensor_spec made = *spec;
    struct dtensor *t;
    int rc = dtensor_spec_normalize(&made, err);
    int me, n;

    if (rc != 0)
        return rc;
    spec = &made;
    me = spec->mesh->group.me;
    n = spec->mesh->group.n;
    if (root < -1 || root >= n)
        return dtn_fail(err, DTENSOR_EINVAL, "distribute: root %d is no "
                        "position of the mesh; expected 0 to %d, or -1", root,
                        n - 1);
    if (!full && me >= 0 && (root == me || root == -1) &&
        dtn_numel(spec->ndim, spec->shape) > 0)
        return dtn_fail(err, DTENSOR_EINVAL, "distribute: full is NULL on "
                        "position %d, but root is %d", me, root);
    rc = dtn_tensor_create_all(spec, &t, err);
    if (rc == 0) {
        rc = distribute_run(spec, full, root, t->local, err);
        if (rc != 0)
            dtensor_destroy(t);
        else
            *tp = t;
    }
    return rc;
}
