/* spec.c - specs: checks, normal form, comparison
 *
 * A spec is plain data that a user may fill in by hand.  So every computation
 * from a spec begins with a check: with shape [10], S(0:2,3,4) on three ranks
 * is refused because 2 + 3 + 4 is 9.  The normal form of a spec has no negative
 * dimensions, and its lengths are in memory of the context.
 */
#include "layout/spec.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/units.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/lengths.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* --------------------------------------------------------------- checks --- */

char *dtn_spec_shape(const struct dtensor_spec *spec, char *buf, size_t size)
{
    size_t used;

    used = (size_t)snprintf(buf, size, "%s[", dtensor_dtype_name(spec->dtype));
    for (int d = 0; d < spec->ndim && used < size; d++)
        used += (size_t)snprintf(buf + used, size - used, "%s%lld",
                                 d ? "," : "", (long long)spec->shape[d]);
    if (used < size)
        snprintf(buf + used, size - used, "]");
    return buf;
}

static int shape_fail(const char *what, enum dtensor_dtype dtype, int ndim,
                      const int64_t shape[], struct dtensor_error *err)
{
    struct dtensor_spec spec = { .dtype = dtype, .ndim = ndim };
    char text[200];

    memcpy(spec.shape, shape, (size_t)ndim * sizeof *shape);
    return dtn_fail(err, DTENSOR_EINVAL, "%s: %s has over 2^63 bytes (a size "
                    "of 0 counts as 1)", what,
                    dtn_spec_shape(&spec, text, sizeof text));
}

int dtn_shape_check(const char *what, enum dtensor_dtype dtype, int ndim,
                    const int64_t shape[], struct dtensor_error *err)
{
    size_t bytes;

    if (!dtn_dtype_ok(dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: dtype %d is none", what,
                        (int)dtype);
    if (ndim < 0 || ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %d tensor dimensions; "
                        "expected 0 to %d", what, ndim, DTENSOR_MAX_DIMS);
    if (ndim > 0 && !shape)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: shape is NULL, but there are "
                        "%d tensor dimensions", what, ndim);
    bytes = dtensor_dtype_size(dtype);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return dtn_fail(err, DTENSOR_EINVAL, "%s: size %lld of tensor "
                            "dimension %d; expected 0 or more", what,
                            (long long)shape[d], d);
        if (!dtn_mul_size(bytes, shape[d] ? (size_t)shape[d] : 1, &bytes) ||
            bytes > INT64_MAX)
            return shape_fail(what, dtype, ndim, shape, err);
    }
    return 0;
}

int dtn_spec_partial(const struct dtensor_spec *spec)
{
    int op = -1;

    for (int m = 0; m < spec->mesh->ndim; m++) {
        if (spec->placement[m].kind != DTENSOR_PARTIAL)
            continue;
        if (op >= 0 && op != (int)spec->placement[m].op)
            return DTENSOR_SUM;
        op = (int)spec->placement[m].op;
    }
    return op;
}

static int spec_check_partial(const struct dtensor_spec *spec, int m,
                              struct dtensor_error *err)
{
    const enum dtensor_redop op = spec->placement[m].op;

    if (!dtn_redop_ok(op, spec->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is P(%s), "
                        "which %s elements do not have", m,
                        dtensor_redop_name(op),
                        dtensor_dtype_name(spec->dtype));
    for (int k = 0; k < m; k++) {
        const struct dtensor_placement *p = &spec->placement[k];

        if (p->kind == DTENSOR_PARTIAL && !dtn_redops_mix(p->op, op))
            return dtn_fail(err, DTENSOR_EINVAL, "spec: P(%s) and P(%s) in one "
                            "tensor (reduce one of them first; only sum and "
                            "avg go together)", dtensor_redop_name(p->op),
                            dtensor_redop_name(op));
    }
    return 0;
}

/* Check the lengths against the N elements that they divide. */
static int spec_check_sizes(const struct dtensor_spec *spec, int m, int64_t N,
                            struct dtensor_error *err)
{
    const struct dtensor_placement *p = &spec->placement[m];
    uint64_t sum = 0;

    for (int r = 0; r < spec->mesh->size[m]; r++) {
        if (p->sizes[r] < 0)
            return dtn_fail(err, DTENSOR_EINVAL, "spec: length %d of placement "
                            "%d is %lld; expected 0 or more", r, m,
                            (long long)p->sizes[r]);
        sum += (uint64_t)p->sizes[r];
        if (sum > INT64_MAX)
            break;
    }
    if (sum != (uint64_t)N)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: the lengths of placement "
                        "%d add up to %llu, but there are %lld elements to "
                        "shard (they must be the same)", m,
                        (unsigned long long)sum, (long long)N);
    return 0;
}

/* The number of elements that placement m finds along its dimension.  It must
 * be the same for every coordinate of the mesh dimensions to the left,
 * otherwise the spec is refused.
 */
static int spec_check_lengths(const struct dtensor_spec *spec, int m,
                              struct dtensor_error *err)
{
    const int dim = spec->placement[m].dim;
    int64_t N = spec->shape[dim], found;
    struct dtn_shard shard;

    for (int k = 0; k < m; k++) {
        const struct dtensor_placement *p = &spec->placement[k];

        if (dtn_placement_class(p) != DTENSOR_SHARD || p->dim != dim)
            continue;
        found = N;
        for (int r = 0; r < spec->mesh->size[k]; r++) {
            dtn_shard_of(p, found, spec->mesh->size[k], r, &shard);
            if (r > 0 && dtn_shard_count(&shard) != N)
                return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d has "
                                "lengths, but placement %d leaves %lld "
                                "elements to some and %lld to others (lengths "
                                "can be chosen for equal parts only)", m, k,
                                (long long)N,
                                (long long)dtn_shard_count(&shard));
            N = dtn_shard_count(&shard);
        }
    }
    return spec_check_sizes(spec, m, N, err);
}

bool dtn_spec_shards_alike(const struct dtensor_spec *a,
                           const struct dtensor_spec *b, int m)
{
    const int dim = a->placement[m].dim;

    for (int k = 0; k <= m; k++) {
        const struct dtensor_placement *p = &a->placement[k];
        const struct dtensor_placement *q = &b->placement[k];
        const bool shards =
            (dtn_placement_class(p) == DTENSOR_SHARD && p->dim == dim) ||
            (dtn_placement_class(q) == DTENSOR_SHARD && q->dim == dim);

        if (shards && a->mesh->size[k] > 1 &&
            !dtn_placement_equal(p, q, a->mesh->size[k]))
            return false;
    }
    return true;
}

bool dtn_spec_lengths_fit(const struct dtensor_spec *spec)
{
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_SHARD &&
            spec->placement[m].sizes &&
            spec_check_lengths(spec, m, NULL) != 0)
            return false;
    return true;
}

int dtn_spec_check_dim(const struct dtensor_spec *spec, int m,
                       struct dtensor_error *err)
{
    const struct dtensor_placement *p = &spec->placement[m];

    if (dtn_placement_class(p) != DTENSOR_SHARD ||
        (p->dim >= 0 && p->dim < spec->ndim))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is of dimension "
                    "%d, but the tensor has %d dimensions%s", m, p->dim,
                    spec->ndim, p->dim < 0 && p->dim >= -spec->ndim
                    ? " (see dtensor_spec_normalize)" : "");
}

static int spec_check_shard(const struct dtensor_spec *spec, int m,
                            struct dtensor_error *err)
{
    const struct dtensor_placement *p = &spec->placement[m];
    int rc = dtn_spec_check_dim(spec, m, err);

    if (rc != 0)
        return rc;
    if (p->kind == DTENSOR_STRIDED && p->block < 1)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d has the split "
                        "factor %lld; expected 1 or more", m,
                        (long long)p->block);
    if (p->kind == DTENSOR_CYCLIC && p->block < 1)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d has blocks of "
                        "%lld elements; expected 1 or more", m,
                        (long long)p->block);
    return p->kind == DTENSOR_SHARD && p->sizes
         ? spec_check_lengths(spec, m, err) : 0;
}

static int spec_check_placement(const struct dtensor_spec *spec, int m,
                                struct dtensor_error *err)
{
    switch (spec->placement[m].kind) {
    case DTENSOR_REPLICATE:
        return 0;
    case DTENSOR_PARTIAL:
        return spec_check_partial(spec, m, err);
    case DTENSOR_SHARD: case DTENSOR_STRIDED: case DTENSOR_CYCLIC:
    case DTENSOR_HEADTAIL:
        return spec_check_shard(spec, m, err);
    }
    return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is of the unknown "
                    "kind %d", m, (int)spec->placement[m].kind);
}

int dtensor_spec_check(const struct dtensor_spec *spec,
                       struct dtensor_error *err)
{
    int rc;

    if (!spec->mesh)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: it has no mesh");
    rc = dtn_shape_check("spec", spec->dtype, spec->ndim, spec->shape, err);
    for (int m = 0; rc == 0 && m < spec->mesh->ndim; m++)
        rc = spec_check_placement(spec, m, err);
    return rc;
}

/* --------------------------------------------------------------- making --- */

int dtensor_spec_normalize(struct dtensor_spec *spec,
                           struct dtensor_error *err)
{
    struct dtensor_spec made = *spec;
    struct dtensor_placement *p;
    int rc;

    if (!made.mesh)
        return dtensor_spec_check(spec, err);
    for (int m = 0; m < made.mesh->ndim; m++) {
        p = &made.placement[m];
        if (dtn_placement_class(p) == DTENSOR_SHARD && p->dim < 0 &&
            p->dim >= -made.ndim)
            p->dim += made.ndim;
    }
    rc = dtensor_spec_check(&made, err);
    for (int m = 0; rc == 0 && m < made.mesh->ndim; m++) {
        p = &made.placement[m];
        if (p->kind == DTENSOR_SHARD && p->sizes)
            rc = dtn_lengths_keep(made.mesh->ctx, p->sizes, made.mesh->size[m],
                                  &p->sizes, err);
    }
    if (rc == 0)
        *spec = made;
    return rc;
}

/* ------------------------------------------------------------ comparing --- */

bool dtn_spec_same_tensor(const struct dtensor_spec *a,
                          const struct dtensor_spec *b)
{
    bool same = a->mesh->ctx == b->mesh->ctx && a->dtype == b->dtype &&
                a->ndim == b->ndim;

    for (int d = 0; same && d < a->ndim; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

bool dtn_spec_equal(const struct dtensor_spec *a, const struct dtensor_spec *b)
{
    if (a->mesh != b->mesh || !dtn_spec_same_tensor(a, b))
        return false;
    for (int m = 0; m < a->mesh->ndim; m++)
        if (!dtn_placement_equal(&a->placement[m], &b->placement[m],
                                 a->mesh->size[m]))
            return false;
    return true;
}

uint64_t dtn_spec_hash(const struct dtensor_spec *spec, uint64_t seed)
{
    int64_t key[3 + 5 * DTENSOR_MAX_DIMS] = {
        (int64_t)spec->mesh->group.hash, spec->dtype, spec->ndim
    };
    size_t n = 3;

    for (int d = 0; d < spec->ndim; d++)
        key[n++] = spec->shape[d];
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];
        const bool shards = dtn_placement_class(p) == DTENSOR_SHARD;

        key[n++] = spec->mesh->size[m];
        key[n++] = p->kind;
        key[n++] = shards ? p->dim
                 : p->kind == DTENSOR_PARTIAL ? (int64_t)p->op : 0;
        key[n++] = shards && p->kind != DTENSOR_SHARD ? p->block : 0;
        if (p->kind == DTENSOR_SHARD && p->sizes)
            seed = XXH3_64bits_withSeed(p->sizes, (size_t)spec->mesh->size[m] *
                                        sizeof p->sizes[0], seed + 1);
    }
    return XXH3_64bits_withSeed(key, n * sizeof key[0], seed);
}

struct dtensor_spec dtn_spec_reduced(struct dtensor_spec spec)
{
    for (int m = 0; m < spec.mesh->ndim; m++)
        if (spec.placement[m].kind == DTENSOR_PARTIAL)
            spec.placement[m] = (struct dtensor_placement){
                .kind = DTENSOR_REPLICATE };
    return spec;
}
