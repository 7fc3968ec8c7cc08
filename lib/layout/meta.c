/* meta.c - shape and strides of the whole tensor from its parts, and the
 * reverse
 *
 * Example: parts of 2 x 3 x 1 with strides 3, 1, 1 on a 2 x 3 x 4 mesh as
 * S(0),S(1),S(2) make a whole of 4 x 9 x 4.  Its strides are computed one mesh
 * dimension after another: when dimension 1 becomes three times as long, every
 * stride above that of dimension 1 becomes three times as large.  The result is
 * 36, 1, 3: the elements of dimension 1 are contiguous.
 */
#include "base/error.h"
#include "base/units.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

void dtensor_spec_meta(const struct dtensor_spec *spec, int rank,
                       struct dtensor_meta *meta)
{
    struct dtensor_meta made = { .dtype = spec->dtype, .ndim = spec->ndim };
    int64_t offset[DTENSOR_MAX_DIMS];

    for (int d = 0; d < spec->ndim; d++)
        made.shape[d] = spec->shape[d];
    if (rank >= 0)
        dtensor_spec_local(spec, rank, made.shape, offset);
    dtn_strides(made.ndim, made.shape, made.stride);
    *meta = made;
}

static int meta_check(const struct dtensor_meta *meta,
                      struct dtensor_error *err)
{
    int rc = dtn_shape_check("meta", meta->dtype, meta->ndim, meta->shape, err);

    for (int d = 0; rc == 0 && d < meta->ndim; d++)
        if (meta->stride[d] < 0)
            rc = dtn_fail(err, DTENSOR_EINVAL, "meta: dimension %d has stride "
                          "%lld; expected 0 or more", d,
                          (long long)meta->stride[d]);
    return rc;
}

/* The tensor dimension that mesh dimension m cuts evenly; -1: none. */
static int meta_shard(const struct dtensor_placement *p, int m, int ndim,
                      int *dimp, struct dtensor_error *err)
{
    *dimp = -1;
    if (dtn_placement_class(p) != DTENSOR_SHARD)
        return 0;
    if (p->kind != DTENSOR_SHARD || p->sizes)
        return dtn_fail(err, DTENSOR_EINVAL, "meta: placement %d is not "
                        "S(dimension), the only kind with equal parts (see "
                        "dtensor_spec_meta)", m);
    if (p->dim < -ndim || p->dim >= ndim)
        return dtn_fail(err, DTENSOR_EINVAL, "meta: placement %d is of "
                        "dimension %d, but the tensor has %d dimensions", m,
                        p->dim, ndim);
    *dimp = p->dim < 0 ? p->dim + ndim : p->dim;
    return 0;
}

/* *value *= n, or an error. */
static int meta_grow(int64_t *value, int n, struct dtensor_error *err)
{
    size_t more;

    if (!dtn_mul_size((size_t)*value, (size_t)n, &more) || more > INT64_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "meta: %lld on %d ranks is over "
                        "2^63", (long long)*value, n);
    *value = (int64_t)more;
    return 0;
}

int dtensor_meta_global(const struct dtensor_mesh *mesh,
                        const struct dtensor_placement placement[],
                        const struct dtensor_meta *local,
                        struct dtensor_meta *whole, struct dtensor_error *err)
{
    struct dtensor_meta made = *local;
    int dim, rc = meta_check(local, err);

    for (int m = 0; rc == 0 && m < mesh->ndim; m++) {
        rc = meta_shard(&placement[m], m, made.ndim, &dim, err);
        if (rc != 0 || dim < 0)
            continue;
        rc = meta_grow(&made.shape[dim], mesh->size[m], err);
        for (int d = 0; rc == 0 && d < made.ndim; d++)
            if (d != dim && made.stride[d] >= made.stride[dim])
                rc = meta_grow(&made.stride[d], mesh->size[m], err);
    }
    if (rc == 0)
        rc = meta_check(&made, err);
    if (rc == 0)
        *whole = made;
    return rc;
}

int dtensor_meta_local(const struct dtensor_mesh *mesh,
                       const struct dtensor_placement placement[],
                       const struct dtensor_meta *whole,
                       struct dtensor_meta *local, struct dtensor_error *err)
{
    struct dtensor_meta made = *whole;
    int dim, rc = meta_check(whole, err);

    for (int m = mesh->ndim - 1; rc == 0 && m >= 0; m--) {
        const int n = mesh->size[m];

        rc = meta_shard(&placement[m], m, made.ndim, &dim, err);
        if (rc != 0 || dim < 0)
            continue;
        if (made.shape[dim] % n != 0)
            return dtn_fail(err, DTENSOR_EINVAL, "meta: %lld elements of "
                            "dimension %d do not divide by the %d ranks of "
                            "mesh dimension %d (see dtensor_spec_meta)",
                            (long long)made.shape[dim], dim, n, m);
        made.shape[dim] /= n;
        for (int d = 0; d < made.ndim; d++)
            if (d != dim && made.stride[d] >= made.stride[dim] * n)
                made.stride[d] /= n;
    }
    if (rc == 0)
        *local = made;
    return rc;
}
