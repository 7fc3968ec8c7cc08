/* create.c - tensors that are empty, made by a formula, or made of an array
 *
 * Every rank makes its own part; only dtensor_distribute() with a root moves
 * data.  The spec determines the elements of each rank.  Example: for f32[10,5]
 * as S(0) on 4 ranks the part of rank 1 begins with row 3, so dtensor_arange()
 * starts there with 15.
 */
#include "base/dtype.h"
#include "base/error.h"
#include "base/reduce.h"
#include "cuda/launch.h"
#include "device/memory.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/redist.h"
#include "tensor/recorder.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdbool.h>
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
        rc = dtn_buffer_zero(t->spec.mesh->ctx, t->local, t->bytes, err);
    return dtn_tensor_return(t, rc, tp);
}

/* The same element again and again. */
struct repeat {
    unsigned char elem[16];       /* its bytes                                */
    size_t bytes;                 /* of it                                    */
};

/* Write one element, then double the written part again and again. */
static void repeat_make(const void *how, int64_t first, size_t count,
                        void *out, const void *const in[])
{
    const struct repeat *repeat = how;
    const size_t bytes = count * repeat->bytes;
    unsigned char *at = out;

    memcpy(at, repeat->elem, repeat->bytes);
    for (size_t done = repeat->bytes, step; done < bytes; done += step) {
        step = bytes - done < done ? bytes - done : done;
        memcpy(at + done, at, step);
    }
}

static void repeat_launch(const struct dtn_elements *elements, void *out,
                          const void *const in[], struct dtn_launch *launch)
{
    const struct repeat *repeat = elements->how;

    dtn_launch_repeat(repeat->elem, repeat->bytes, out, elements->count,
                      launch);
}

static const struct dtn_formula repeat_formula = { repeat_make, repeat_launch,
                                                   0 };

/* The element of this rank: of a Partial tensor, its term of the value. */
static void repeat_init(struct repeat *repeat, const struct dtensor_spec *spec,
                        double value)
{
    struct dtensor_spec whole = *spec;
    struct dtn_phase split;

    repeat->bytes = dtensor_dtype_size(spec->dtype);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (whole.placement[m].kind == DTENSOR_PARTIAL)
            whole.placement[m].kind = DTENSOR_REPLICATE;
    split = dtn_phase_exchange(&whole, spec);
    if (dtn_phase_idle(&split, spec->mesh->group.me))
        dtn_fill_neutral(spec->dtype, split.redop, repeat->elem, 1);
    else
        dtn_store(spec->dtype, repeat->elem, 0, value);
    if (split.divide > 1)
        dtn_scale(spec->dtype, repeat->elem, 1, split.divide);
}

int dtensor_fill_value(struct dtensor *t, double value,
                       struct dtensor_error *err)
{
    struct repeat repeat;

    dtn_tensor_renew(t);
    if (t->bytes == 0)
        return 0;
    repeat_init(&repeat, &t->spec, value);
    return dtn_buffer_make(t->spec.mesh->ctx, &repeat_formula,
                           &(struct dtn_elements){ .how = &repeat,
                               .count = dtn_tensor_count(t),
                               .out_bytes = repeat.bytes }, t->local, NULL,
                           err);
}

int dtensor_full(const struct dtensor_spec *spec, double value,
                 struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor *t = NULL;
    int rc = dtn_tensor_create(spec, &t, err);

    if (rc == 0)
        rc = dtensor_fill_value(t, value, err);
    return dtn_tensor_return(t, rc, tp);
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
        rc = dtn_buffer_copy(t->spec.mesh->ctx, made->local, t->local,
                             t->bytes, err);
    if (rc == 0)
        rc = dtn_called_one("clone", t, made, err);
    return dtn_tensor_return(made, rc, tp);
}

/* Element i is i, or of an integer its lowest bits. */
static void index_make(const void *how, int64_t first, size_t count, void *out,
                       const void *const in[])
{
    const enum dtensor_dtype dtype = *(const enum dtensor_dtype *)how;
    const enum dtn_dtype_kind kind = dtn_dtype_kind(dtype);
    const bool ints = kind == DTN_DTYPE_SIGNED || kind == DTN_DTYPE_UNSIGNED;

    for (size_t i = 0; i < count; i++)
        if (ints)
            dtn_store_int(dtype, out, i, first + (int64_t)i);
        else
            dtn_store(dtype, out, i, (double)(first + (int64_t)i));
}

static void index_launch(const struct dtn_elements *elements, void *out,
                         const void *const in[], struct dtn_launch *launch)
{
    const enum dtensor_dtype *dtype = elements->how;

    *launch = (struct dtn_launch){
        .kernel = DTN_KERNEL_arange, .threads = elements->count,
        .args.arange = { .dst = out, .first = elements->first,
                         .count = elements->count, .dtype = *dtype }
    };
}

const struct dtn_formula dtn_index_formula = { index_make, index_launch, 0 };

int dtensor_arange(const struct dtensor_spec *spec, struct dtensor **tp,
                   struct dtensor_error *err)
{
    struct dtensor *t = NULL;
    int rc = dtn_tensor_create(spec, &t, err);

    if (rc == 0)
        rc = dtn_refuse_partial("arange", &t->spec, err);
    if (rc == 0)
        rc = dtn_tensor_make(t, &dtn_index_formula, &t->spec.dtype, err);
    return dtn_tensor_return(t, rc, tp);
}

/* Large arrays are sent in slabs, so that the bounce buffers stay small.  Small
 * arrays use a cached plan.
 */
static int distribute_run(const struct dtensor_spec *spec, const void *full,
                          int root, void *local, struct dtensor_error *err)
{
    size_t bytes = (size_t)dtn_numel(spec->ndim, spec->shape) *
                   dtensor_dtype_size(spec->dtype);

    if (root < 0 || spec->mesh->ctx->planning ||
        bytes <= spec->mesh->ctx->world.cluster->redistribute.pipeline_bytes)
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
        !spec->mesh->ctx->planning &&
        dtn_numel(spec->ndim, spec->shape) > 0)
        return dtn_fail(err, DTENSOR_EINVAL, "distribute: full is NULL on "
                        "position %d, but root is %d", me, root);
    if (root == me || root == -1)
        rc = dtn_ctx_check_buffer(spec->mesh->ctx, "distribute", full, 1, err);
    if (rc == 0)
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
