/* order.c - which mesh dimension cuts a tensor dimension first
 *
 * Placements apply from left to right.  PyTorch can also cut in another order,
 * and has two notations for it.  One gives the order itself: in S(0)[1]S(0)[0]
 * the second mesh dimension cuts first.  The other uses strided shards:
 * SS(0,2),S(0) on a 4 x 2 mesh means the same, a cut into 2 and of each piece
 * into 4.  The factor of a strided shard is the product of the sizes of the
 * mesh dimensions to its right that cut before it.  So each notation can be
 * converted to the other, unless a factor is not such a product.
 */
#include "base/error.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

static bool order_shards(const struct dtensor_spec *spec, int m, int dim)
{
    const struct dtensor_placement *p = &spec->placement[m];

    return dtn_placement_class(p) == DTENSOR_SHARD && p->dim == dim;
}

/* Does every placement cut a dimension that exists? */
static int order_check(const struct dtensor_spec *spec,
                       struct dtensor_error *err)
{
    int rc = 0;

    for (int m = 0; rc == 0 && m < spec->mesh->ndim; m++)
        rc = dtn_spec_check_dim(spec, m, err);
    return rc;
}

/* ------------------------------------------------------------- shard maps */

int dtensor_spec_dim_map(const struct dtensor_spec *spec, int map[],
                         struct dtensor_error *err)
{
    int made[DTENSOR_MAX_DIMS];
    int rc = order_check(spec, err);

    if (rc != 0)
        return rc;
    for (int d = 0; d < spec->ndim; d++) {
        made[d] = -1;
        for (int m = 0; m < spec->mesh->ndim; m++) {
            if (!order_shards(spec, m, d))
                continue;
            if (made[d] >= 0)
                return dtn_fail(err, DTENSOR_EINVAL, "spec: tensor dimension "
                                "%d is sharded by mesh dimensions %d and %d, "
                                "which no dim_map can say (see "
                                "dtensor_spec_num_shards)", d, made[d], m);
            made[d] = m;
        }
    }
    memcpy(map, made, (size_t)spec->ndim * sizeof made[0]);
    return 0;
}

void dtensor_spec_num_shards(const struct dtensor_spec *spec, int shards[])
{
    for (int d = 0; d < spec->ndim; d++) {
        shards[d] = 1;
        for (int m = 0; m < spec->mesh->ndim; m++)
            if (order_shards(spec, m, d))
                shards[d] *= spec->mesh->size[m];
    }
}

/* ------------------------------------------------------------------ order */

/* The mesh dimensions that cut tensor dimension `dim`, in order of their
 * places.  -1 if the places are not 0, 1, ... once each.
 */
static int order_list(const struct dtensor_spec *spec, int dim,
                      const int place[], int list[])
{
    int n = 0, seen = 0;

    for (int m = 0; m < spec->mesh->ndim; m++)
        n += order_shards(spec, m, dim);
    for (int m = 0; m < spec->mesh->ndim; m++) {
        if (!order_shards(spec, m, dim))
            continue;
        if (place[m] < 0 || place[m] >= n || seen >> place[m] & 1)
            return -1;
        seen |= 1 << place[m];
        list[place[m]] = m;
    }
    return n;
}

int dtensor_spec_set_order(struct dtensor_spec *spec, const int place[],
                           struct dtensor_error *err)
{
    struct dtensor_spec made = *spec;
    int list[DTENSOR_MAX_DIMS];
    int rc = order_check(spec, err);

    if (rc != 0)
        return rc;
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
            (spec->placement[m].kind != DTENSOR_SHARD ||
             spec->placement[m].sizes))
            return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is not "
                            "S(dimension), and only these can be put in "
                            "another order", m);
    for (int d = 0; d < spec->ndim; d++) {
        int n = order_list(spec, d, place, list);

        if (n < 0)
            return dtn_fail(err, DTENSOR_EINVAL, "spec: the order of the mesh "
                            "dimensions that shard tensor dimension %d is "
                            "none (give them 0, 1, ... once each)", d);
        for (int k = 0; k < n; k++) {
            struct dtensor_placement *p = &made.placement[list[k]];

            p->block = 1;
            for (int i = 0; i < k; i++)
                if (list[i] > list[k])
                    p->block *= spec->mesh->size[list[i]];
            p->kind = p->block > 1 ? DTENSOR_STRIDED : DTENSOR_SHARD;
            p->block = p->block > 1 ? p->block : 0;
        }
    }
    *spec = made;
    return 0;
}

/* Insert mesh dimension m into the list where the sizes of the dimensions
 * before it give its factor.
 */
static bool order_insert(const struct dtensor_spec *spec, int m, int list[],
                         int n)
{
    const struct dtensor_placement *p = &spec->placement[m];
    const int64_t factor = p->kind == DTENSOR_STRIDED ? p->block : 1;
    int64_t before = 1;
    int at = 0;

    while (at < n && before < factor)
        before *= spec->mesh->size[list[at++]];
    if (before != factor || p->kind >= DTENSOR_CYCLIC || p->sizes)
        return false;
    memmove(list + at + 1, list + at, (size_t)(n - at) * sizeof list[0]);
    list[at] = m;
    return true;
}

int dtensor_spec_order(const struct dtensor_spec *spec, int place[],
                       struct dtensor_error *err)
{
    int made[DTENSOR_MAX_DIMS], list[DTENSOR_MAX_DIMS];
    int rc = order_check(spec, err);

    if (rc != 0)
        return rc;
    for (int m = 0; m < spec->mesh->ndim; m++)
        made[m] = -1;
    for (int d = 0; d < spec->ndim; d++) {
        int n = 0;

        for (int m = spec->mesh->ndim - 1; m >= 0; m--) {
            if (!order_shards(spec, m, d))
                continue;
            if (!order_insert(spec, m, list, n++))
                return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is in "
                                "no shard order: of the mesh dimensions to its "
                                "right, none that shard tensor dimension %d "
                                "make its factor", m, d);
        }
        for (int k = 0; k < n; k++)
            made[list[k]] = k;
    }
    memcpy(place, made, (size_t)spec->mesh->ndim * sizeof made[0]);
    return 0;
}
