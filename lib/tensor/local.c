/* local.c - tensors of parts that the ranks already hold
 *
 * dtensor_from_local() trusts the caller's global shape and checks only the
 * part of this rank.  So it does not find a wrong part on another rank.  The
 * other two functions exchange the shapes: every rank sends all others 150
 * bytes, and all compute the same result.  Example: parts of 3, 5 and 2 rows on
 * three ranks are not S(0), which would be 4, 4 and 2; they are S(0:3,5,2) of
 * 10 rows.
 */
#include "base/error.h"
#include "job/await.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/lengths.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------- one rank alone --- */

int dtensor_from_local(const struct dtensor_spec *spec, const void *local,
                       size_t size, struct dtensor **tp,
                       struct dtensor_error *err)
{
    struct dtensor *t;
    char text[400];
    int rc = dtn_tensor_create(spec, &t, err);

    if (rc != 0)
        return rc;
    if (t->spec.mesh->ctx->planning) {
        dtensor_destroy(t);
        return dtn_ctx_check(spec->mesh->ctx, err);
    }
    if (size != t->bytes) {
        rc = dtn_fail(err, DTENSOR_EINVAL, "from_local: %zu bytes, but rank %d "
                      "holds %zu of %s", size, spec->mesh->ctx->world.rank,
                      t->bytes, dtn_spec_format(&t->spec, text, sizeof text));
        dtensor_destroy(t);
        return rc;
    }
    if (size > 0 && !local) {
        dtensor_destroy(t);
        return dtn_fail(err, DTENSOR_EINVAL, "from_local: local is NULL, but "
                        "rank %d holds %zu bytes", spec->mesh->ctx->world.rank,
                        size);
    }
    rc = dtn_ctx_check_buffer(spec->mesh->ctx, "from_local", local, size, err);
    if (rc == 0 && size > 0)
        rc = dtn_buffer_copy(spec->mesh->ctx, t->local, local, size, err);
    return dtn_tensor_return(t, rc, tp);
}

/* ------------------------------------------------------ what ranks tell --- */

enum { TOLD_INFERS = 1,                /* the whole is asked for              */
       TOLD_NOTHING = 2,               /* the part is NULL and should not be  */
       TOLD_BROADCASTS = 4 };          /* replicas are made alike             */

/* The message of each rank: its part, and the whole to which it belongs. */
struct told {
    int32_t ndim;
    int32_t dtype;
    uint32_t placements;               /* hash of them and the mesh's sizes   */
    uint32_t flags;
    int64_t part[DTENSOR_MAX_DIMS];
    int64_t whole[DTENSOR_MAX_DIMS];   /* 0 when it is asked for              */
};

/* Without the shape, which a rank may not know. */
static uint32_t told_hash(const struct dtensor_spec *spec)
{
    struct dtensor_spec shapeless = *spec;

    memset(shapeless.shape, 0, sizeof shapeless.shape);
    return (uint32_t)dtn_spec_hash(&shapeless, 0);
}

/* Exchange these messages: an allgather. */
static int told_gather(const struct dtensor_spec *spec, const void *local,
                       const int64_t part[], unsigned flags,
                       struct told **allp, struct dtensor_error *err)
{
    size_t bytes = (size_t)spec->mesh->group.n * sizeof **allp;
    size_t shape_bytes = (size_t)spec->ndim * sizeof part[0];
    struct told mine = { spec->ndim, (int32_t)spec->dtype, told_hash(spec),
                         flags, { 0 }, { 0 } };
    struct told *all = malloc(bytes);
    int rc;

    if (!all)
        return dtn_fail_nomem(err, "parts", bytes);
    memcpy(mine.part, part, shape_bytes);
    if (!(flags & TOLD_INFERS))
        memcpy(mine.whole, spec->shape, shape_bytes);
    if (!local && dtn_numel(spec->ndim, part) > 0)
        mine.flags |= TOLD_NOTHING;
    rc = dtensor_allgather(spec->mesh, &mine, all, sizeof mine, DTENSOR_U8,
                           err);
    if (rc != 0)
        free(all);
    else
        *allp = all;
    return rc;
}

/* "[3,5]" */
static char *told_shape(int ndim, const int64_t shape[], char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "[");

    for (int d = 0; d < ndim && used < size; d++)
        used += (size_t)snprintf(buf + used, size - used, "%s%lld",
                                 d ? "," : "", (long long)shape[d]);
    if (used < size)
        snprintf(buf + used, size - used, "]");
    return buf;
}

/* ----------------------------------------------------- the same verdict --- */

/* The functions below use only these messages, so all ranks return the same
 * result, with the same text.
 */
static int judge_alike(const struct dtensor_spec *spec, const struct told all[],
                       struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = spec->mesh;
    const char *what = NULL;
    int i;

    for (i = 0; i < mesh->group.n && !what; i++)
        what = all[i].flags & TOLD_NOTHING ? "has no part"
             : all[i].flags != all[0].flags ? "makes another call"
             : all[i].dtype != all[0].dtype ? "has another dtype"
             : all[i].ndim != all[0].ndim ? "has another number of dimensions"
             : all[i].placements != all[0].placements
               ? "has other placements, or another mesh"
             : memcmp(all[i].whole, all[0].whole, sizeof all[0].whole) != 0
               ? "has another global shape" : NULL;
    if (!what)
        return 0;
    return dtn_fail_rank(err, DTENSOR_EINVAL, dtensor_mesh_rank(mesh, i - 1),
                         "parts: rank %d %s, unlike rank %d (every rank must "
                         "give a part and the same arguments)",
                         dtensor_mesh_rank(mesh, i - 1), what,
                         dtensor_mesh_rank(mesh, 0));
}

/* The first position whose part is not what the spec says, or -1. */
static int judge_parts(const struct dtensor_spec *spec, const struct told all[])
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    for (int i = 0; i < spec->mesh->group.n; i++) {
        dtn_layout(spec, i, shape, offset);
        if (memcmp(shape, all[i].part,
                   (size_t)spec->ndim * sizeof shape[0]) != 0)
            return i;
    }
    return -1;
}

static int judge_fail(const struct dtensor_spec *spec, const struct told all[],
                      int odd, struct dtensor_error *err)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    char holds[160], should[160], text[400];
    int rank = dtensor_mesh_rank(spec->mesh, odd);

    dtn_layout(spec, odd, shape, offset);
    return dtn_fail_rank(err, DTENSOR_EINVAL, rank, "parts: rank %d holds "
                         "%s, but %s is its part of %.200s", rank,
                         told_shape(spec->ndim, all[odd].part, holds,
                                    sizeof holds),
                         told_shape(spec->ndim, shape, should, sizeof should),
                         dtn_spec_format(spec, text, sizeof text));
}

/* ------------------------------------------------------------ inference --- */

/* Does placement m cut tensor dimension d? */
static bool infer_shards(const struct dtensor_spec *spec, int m, int d)
{
    return dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
           spec->placement[m].dim == d;
}

/* The length that all parts together have along d, over the placements from
 * `m` on that cut it, where the others are at the coordinates of `index`.
 * UINT64_MAX and more do not fit.
 */
static uint64_t infer_length(const struct dtensor_spec *spec,
                             const struct told all[], int m, int index, int d)
{
    const struct dtensor_mesh *mesh = spec->mesh;
    uint64_t sum = 0, length;
    int stride = 1;

    while (m < mesh->ndim && !infer_shards(spec, m, d))
        m++;
    if (m == mesh->ndim)
        return (uint64_t)all[index].part[d];
    for (int k = m + 1; k < mesh->ndim; k++)
        stride *= mesh->size[k];
    for (int r = 0; r < mesh->size[m]; r++) {
        length = infer_length(spec, all, m + 1, index + r * stride, d);
        if (length > INT64_MAX || sum + length > INT64_MAX)
            return UINT64_MAX;
        sum += length;
    }
    return sum;
}

/* Give placement m the lengths that were found, unless the chunk rule makes the
 * same; false when there was no memory to keep them.
 */
static int infer_sizes(struct dtensor_spec *spec, const struct told all[],
                       int m, struct dtensor_error *err)
{
    struct dtensor_placement *p = &spec->placement[m];
    int n = spec->mesh->size[m], stride = 1, rc;
    int64_t *sizes = calloc((size_t)n, sizeof *sizes), total = 0;
    bool chunked = true;

    if (!sizes)
        return dtn_fail_nomem(err, "from_local", (size_t)n * sizeof *sizes);
    for (int k = m + 1; k < spec->mesh->ndim; k++)
        stride *= spec->mesh->size[k];
    for (int r = 0; r < n; r++) {
        sizes[r] = (int64_t)infer_length(spec, all, m + 1, r * stride, p->dim);
        total += sizes[r];
    }
    for (int r = 0; r < n; r++) {
        int64_t start, size;

        dtn_chunk(total, n, r, &start, &size);
        chunked = chunked && size == sizes[r];
    }
    rc = chunked ? 0 : dtn_lengths_keep(spec->mesh->ctx, sizes, n, &p->sizes,
                                        err);
    free(sizes);
    return rc;
}

/* Find the global shape: first by the chunk rule; if that does not fit, with
 * the parts' own lengths for S(d).
 */
static int infer(struct dtensor_spec *spec, const struct told all[],
                 struct dtensor_error *err)
{
    struct dtensor_spec made = *spec;
    uint64_t length;
    int rc = 0, odd;

    for (int d = 0; d < made.ndim; d++) {
        length = infer_length(&made, all, 0, 0, d);
        if (length > INT64_MAX)
            return dtn_fail(err, DTENSOR_EINVAL, "parts: they add up to "
                            "over 2^63 elements along dimension %d", d);
        made.shape[d] = (int64_t)length;
    }
    rc = dtensor_spec_check(&made, err);
    if (rc != 0)
        return rc;
    *spec = made;
    odd = judge_parts(spec, all);
    if (odd < 0)
        return 0;
    for (int m = 0; rc == 0 && m < made.mesh->ndim; m++)
        if (made.placement[m].kind == DTENSOR_SHARD && !made.placement[m].sizes)
            rc = infer_sizes(&made, all, m, err);
    if (rc != 0)
        return rc;
    if (dtensor_spec_check(&made, NULL) != 0 || judge_parts(&made, all) >= 0)
        return judge_fail(spec, all, odd, err);
    *spec = made;
    return 0;
}

/* ------------------------------------------------------------ everyone --- */

/* A tensor of the spec with a copy of the local part. */
static int local_make(const struct dtensor_spec *spec, const void *local,
                      struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor *t;
    int rc = dtn_tensor_create(spec, &t, err);

    if (rc != 0)
        return rc;
    rc = dtn_ctx_check_buffer(t->spec.mesh->ctx, "from_local", local, t->bytes,
                              err);
    if (rc == 0 && t->bytes > 0)
        rc = dtn_buffer_copy(t->spec.mesh->ctx, t->local, local, t->bytes, err);
    return dtn_tensor_return(t, rc, tp);
}

/* Exchange the shapes, check them, make the tensor. */
static int local_agree(struct dtensor_spec *spec, const void *local,
                       const int64_t part[], unsigned flags,
                       struct dtensor **tp, struct dtensor_error *err)
{
    struct told *all = NULL;
    int rc = told_gather(spec, local, part, flags, &all, err), odd;

    if (rc != 0)
        return rc;
    rc = judge_alike(spec, all, err);
    if (rc == 0 && flags & TOLD_INFERS) {
        rc = infer(spec, all, err);
    } else if (rc == 0) {
        odd = judge_parts(spec, all);
        if (odd >= 0)
            rc = judge_fail(spec, all, odd, err);
    }
    free(all);
    return rc == 0 ? local_make(spec, local, tp, err) : rc;
}

/* Give all replicas the part of the first of them. */
static int local_broadcast(struct dtensor *t, struct dtensor_error *err)
{
    const struct dtensor_mesh *replicas;
    int rc = dtn_tensor_replicas(t, &replicas, err);

    if (rc == 0 && t->bytes > 0)
        rc = dtensor_broadcast(replicas, 0, t->local, t->bytes, DTENSOR_U8,
                               err);
    return rc;
}

/* Exchange the shapes of all parts; the global shape is known. */
static int local_known(const struct dtensor_spec *spec, const void *local,
                       const int64_t part[], unsigned flags,
                       struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor_spec known = *spec;
    struct dtensor *t = NULL;
    struct dtensor_error why;
    int rc = dtensor_spec_normalize(&known, err);

    if (rc != 0)
        return rc;
    if (known.mesh->group.me < 0)
        return dtn_tensor_create(&known, tp, err);
    rc = local_agree(&known, local, part, flags, &t, &why);
    if (rc == 0 && flags & TOLD_BROADCASTS)
        rc = local_broadcast(t, &why);
    if (rc != 0)
        dtensor_destroy(t);
    else
        *tp = t;
    return dtn_tensor_end_all(known.mesh, rc, &why, err);
}

int dtensor_from_local_checked(const struct dtensor_spec *spec,
                               const void *local, const int64_t local_shape[],
                               struct dtensor **tp, struct dtensor_error *err)
{
    return local_known(spec, local, local_shape, 0, tp, err);
}

int dtensor_from_local_broadcast(const struct dtensor_spec *spec,
                                 const void *local,
                                 const int64_t local_shape[],
                                 struct dtensor **tp,
                                 struct dtensor_error *err)
{
    return local_known(spec, local, local_shape, TOLD_BROADCASTS, tp, err);
}

/* Check all but the lengths, which need the global shape. */
static int parts_check(const struct dtensor_spec *parts,
                       struct dtensor_spec *made, struct dtensor_error *err)
{
    int rc;

    *made = *parts;
    for (int m = 0; made->mesh && m < made->mesh->ndim; m++)
        made->placement[m].sizes = NULL;
    rc = dtensor_spec_normalize(made, err);
    for (int m = 0; rc == 0 && m < made->mesh->ndim; m++)
        if (made->placement[m].kind == DTENSOR_SHARD)
            made->placement[m].sizes = parts->placement[m].sizes;
    return rc;
}

int dtensor_from_parts(const struct dtensor_spec *parts, const void *local,
                       struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor_spec made;
    struct dtensor_error why;
    int rc = parts_check(parts, &made, err);

    if (rc != 0)
        return rc;
    if (made.mesh->group.me < 0) {           /* it never learns the whole    */
        memset(made.shape, 0, sizeof made.shape);
        for (int m = 0; m < made.mesh->ndim; m++)
            made.placement[m].sizes = NULL;
        return dtn_tensor_create(&made, tp, err);
    }
    rc = local_agree(&made, local, parts->shape, TOLD_INFERS, tp, &why);
    return dtn_tensor_end_all(made.mesh, rc, &why, err);
}
