/* equal.c - compare two tensors, or the replicas of one
 *
 * Each rank compares its own part, and the minimum of the answers is the
 * result.  For f32[2,8] as S(0) on 4 ranks two parts are empty, and count as
 * equal.  The terms of a sum do not determine it (1 + 2 is 3 + 0), so Partial
 * tensors are reduced first.
 *
 * Two tensors with different placements are first given the same sharded
 * placements.  For R and S(0) the first is sharded like the second, which moves
 * no data; for S(0) and S(1) the second is redistributed.
 *
 * Replicas are compared by a 128-bit hash of their bytes, so 32 bytes are sent
 * for any size.
 */
#include "base/error.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

int dtensor_is_same_size(const struct dtensor *a, const struct dtensor *b)
{
    return a->spec.ndim == b->spec.ndim &&
           memcmp(a->spec.shape, b->spec.shape,
                  (size_t)a->spec.ndim * sizeof a->spec.shape[0]) == 0;
}

static int equal_check(const struct dtensor *a, const struct dtensor *b,
                       struct dtensor_error *err)
{
    char one[400], other[400];

    if (a->spec.mesh == b->spec.mesh && a->spec.dtype == b->spec.dtype)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "equal: %.200s and %.200s (mesh and "
                    "dtype must be the same: redistribute or convert one)",
                    dtn_spec_format(&a->spec, one, sizeof one),
                    dtn_spec_format(&b->spec, other, sizeof other));
}

/* ---------------------------------------------------------- two tensors --- */

static bool equal_shards(const struct dtensor_placement *p)
{
    return dtn_placement_class(p) == DTENSOR_SHARD;
}

/* The placements for the comparison: sharded where either tensor is, and not
 * Partial.  If chosen lengths of one do not fit the shards of the other, they
 * are the placements of the first.
 */
static struct dtensor_spec equal_spec(const struct dtensor_spec *a,
                                      const struct dtensor_spec *b)
{
    static const struct dtensor_placement whole = {
        .kind = DTENSOR_REPLICATE };
    struct dtensor_spec both = *a, first = *a;

    for (int m = 0; m < a->mesh->ndim; m++) {
        if (!equal_shards(&a->placement[m]))
            first.placement[m] = whole;
        both.placement[m] = equal_shards(&b->placement[m]) &&
                            !equal_shards(&a->placement[m])
                          ? b->placement[m] : first.placement[m];
    }
    return dtensor_spec_check(&both, NULL) == 0 ? both : first;
}

/* The tensor with these placements: itself, or *madep. */
static int equal_bring(const struct dtensor *t,
                       const struct dtensor_spec *spec,
                       const struct dtensor **atp, struct dtensor **madep,
                       struct dtensor_error *err)
{
    int rc = 0;

    if (!dtn_spec_equal(&t->spec, spec))
        rc = dtensor_redistribute_to(t, spec, madep, err);
    *atp = *madep ? *madep : t;
    return rc;
}

int dtensor_equal(const struct dtensor *a, const struct dtensor *b,
                  int *equalp, struct dtensor_error *err)
{
    struct dtensor *made[2] = { NULL, NULL };
    struct dtensor_spec spec;
    int32_t same, all = 1;
    bool alike = false;
    int rc = equal_check(a, b, err);

    if (rc != 0)
        return rc;
    if (!dtensor_is_same_size(a, b)) {
        *equalp = 0;
        return 0;
    }
    spec = equal_spec(&a->spec, &b->spec);
    rc = equal_bring(a, &spec, &a, &made[0], err);
    if (rc == 0)
        rc = equal_bring(b, &spec, &b, &made[1], err);
    if (rc == 0 && spec.mesh->group.me >= 0) {
        rc = dtn_buffer_equal(spec.mesh->ctx, spec.dtype, a->local, b->local,
                              dtn_tensor_count(a), &alike, err);
        same = alike;
        if (rc == 0)
            rc = dtensor_allreduce(spec.mesh, &same, &all, 1, DTENSOR_I32,
                                   DTENSOR_MIN, err);
    }
    if (rc == 0)
        *equalp = all;
    dtensor_destroy(made[0]);
    dtensor_destroy(made[1]);
    return rc;
}

/* ------------------------------------------------------------- replicas --- */

/* The hash of the local part.  Memory that the CPU does not read is copied to
 * it in pieces.
 */
static int replica_hash(const struct dtensor *t, XXH128_hash_t *hashp,
                        struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = t->spec.mesh->ctx;
    unsigned char piece[4096];
    XXH3_state_t state;
    size_t bytes;
    int rc = 0;

    if (!ctx->device) {
        *hashp = XXH3_128bits(t->local, t->bytes);
        return 0;
    }
    XXH3_128bits_reset(&state);
    for (size_t at = 0; rc == 0 && at < t->bytes; at += bytes) {
        bytes = t->bytes - at < sizeof piece ? t->bytes - at : sizeof piece;
        rc = dtn_buffer_copy(ctx, piece, (unsigned char *)t->local + at, bytes,
                             err);
        XXH3_128bits_update(&state, piece, bytes);
    }
    *hashp = XXH3_128bits_digest(&state);
    return rc;
}

/* Are all hashes of the replicas equal?  One minimum finds both ends: the
 * minimum of the complements is the complement of the maximum.
 */
static int replicas_agree(const struct dtensor *t,
                          const struct dtensor_mesh *replicas, int32_t *samep,
                          struct dtensor_error *err)
{
    XXH128_hash_t hash = { 0, 0 };
    int rc = replica_hash(t, &hash, err);
    uint64_t least[] = { hash.low64, hash.high64, ~hash.low64, ~hash.high64 };

    if (rc == 0)
        rc = dtensor_allreduce(replicas, least, least, 4, DTENSOR_U64,
                               DTENSOR_MIN, err);
    *samep = least[0] == ~least[2] && least[1] == ~least[3];
    return rc;
}

int dtensor_replicas_equal(const struct dtensor *t, int *equalp,
                           struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = t->spec.mesh, *replicas;
    struct dtensor_error why;
    int32_t same, all = 1;
    int rc = 0;

    if (mesh->group.me >= 0) {
        rc = dtn_tensor_replicas(t, &replicas, &why);
        if (rc == 0)
            rc = replicas_agree(t, replicas, &same, &why);
        if (rc == 0)
            rc = dtensor_allreduce(mesh, &same, &all, 1, DTENSOR_I32,
                                   DTENSOR_MIN, &why);
        dtn_tensor_end_all(mesh, rc, &why, err);
    }
    if (rc == 0)
        *equalp = all;
    return rc;
}
