/* dropout.c - keep some elements, scaled, and zero the rest
 *
 * The mask of kept elements is a Bernoulli tensor and follows the rules of
 * random tensors.  With p = 0.25 an element is kept if its random number,
 * uniform in (0, 1], is below 0.75; it is then multiplied by 1 / 0.75.  Every
 * NaN becomes the same, because the bits of 0 * inf depend on the CPU or GPU.
 */
#include "base/dtype.h"
#include "cuda/launch.h"
#include "device/memory.h"
#include "job/buffer.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/generator.h"
#include "tensor/recorder.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

static float dropped_f32(float x, bool keep, float scale)
{
    const float y = keep ? x * scale : 0.0f * x;

    return y != y ? NAN : y;
}

static double dropped_f64(double x, bool keep, double scale)
{
    const double y = keep ? x * scale : 0.0 * x;

    return y != y ? (double)NAN : y;
}

static void dropout_f32(const float *x, const unsigned char *keep, size_t n,
                        float scale, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dropped_f32(x[i], keep[i], scale);
}

static void dropout_f64(const double *x, const unsigned char *keep, size_t n,
                        double scale, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dropped_f64(x[i], keep[i], scale);
}

/* The narrow types are computed as f32, as everywhere. */
static void dropout_narrow(enum dtensor_dtype dtype, const void *in,
                           const unsigned char *keep, size_t n, float scale,
                           void *out)
{
    for (size_t i = 0; i < n; i++) {
        const float x = (float)dtn_load(dtype, in, i);

        dtn_store(dtype, out, i, (double)dropped_f32(x, keep[i], scale));
    }
}

/* Of an array and the mask of what is kept. */
static void dropout_make(const void *how, int64_t first, size_t n, void *out,
                         const void *const in[])
{
    const struct dtn_dropout *dropout = how;
    const double p = dropout->p;

    if (p == 1)
        for (size_t i = 0; i < n; i++)
            dtn_store(dropout->dtype, out, i, 0);
    else if (dropout->dtype == DTENSOR_F32)
        dropout_f32(in[0], in[1], n, 1 / (float)(1 - p), out);
    else if (dropout->dtype == DTENSOR_F64)
        dropout_f64(in[0], in[1], n, 1 / (1 - p), out);
    else
        dropout_narrow(dropout->dtype, in[0], in[1], n, 1 / (float)(1 - p),
                       out);
}

static enum dtn_kernel dropout_kernel(enum dtensor_dtype dtype)
{
    switch (dtype) {
    case DTENSOR_F64:    return DTN_KERNEL_dropout_f64;
    case DTENSOR_F16:    return DTN_KERNEL_dropout_f16;
    case DTENSOR_BF16:   return DTN_KERNEL_dropout_bf16;
    case DTENSOR_F8E4M3: return DTN_KERNEL_dropout_f8e4m3;
    case DTENSOR_F8E5M2: return DTN_KERNEL_dropout_f8e5m2;
    default:             return DTN_KERNEL_dropout_f32;
    }
}

static void dropout_launch(const struct dtn_elements *elements, void *out,
                           const void *const in[], struct dtn_launch *launch)
{
    const struct dtn_dropout *dropout = elements->how;
    const enum dtensor_dtype dtype = dropout->dtype;
    const double scale = dtype == DTENSOR_F64
                       ? 1 / (1 - dropout->p)
                       : (double)(1 / (float)(1 - dropout->p));

    if (dropout->p == 1) {
        dtn_launch_repeat((const double[2]){ 0 }, elements->out_bytes, out,
                          elements->count, launch);
        return;
    }
    *launch = (struct dtn_launch){
        .kernel = dropout_kernel(dtype), .threads = elements->count,
        .args.dropout = { .dst = out, .in = in[0], .keep = in[1],
                          .count = elements->count, .scale = scale }
    };
}

const struct dtn_formula dtn_dropout_formula = { dropout_make, dropout_launch,
                                                 2 };

static int dropout_apply(const void *in, double p, const struct dtensor *mask,
                         struct dtensor *out, struct dtensor_error *err)
{
    const struct dtn_dropout dropout = { out->spec.dtype, p };
    const size_t elem = dtensor_dtype_size(out->spec.dtype);

    if (out->bytes == 0)
        return 0;
    return dtn_buffer_make(out->spec.mesh->ctx, &dtn_dropout_formula,
                           &(struct dtn_elements){ .how = &dropout,
                               .count = dtn_tensor_count(out),
                               .out_bytes = elem, .in_bytes = { elem, 1 } },
                           out->local, (const void *const[]){ in, mask->local },
                           err);
}

int dtn_dropout(const void *in, double p, struct dtensor_generator *gen,
                struct dtensor *out, struct dtensor *mask,
                struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_keep(&dist, out->spec.dtype, p, err);

    gen = dtn_generator_of(out->spec.mesh, gen);
    if (rc == 0)                  /* an error names the tensor, not its mask  */
        rc = dtn_random_check("dropout", &out->spec, gen, err);
    if (rc == 0)
        rc = dtn_random_fill("dropout", mask, &dist, gen, err);
    return rc == 0 ? dropout_apply(in, p, mask, out, err) : rc;
}

static int dropout_told(const struct dtensor *t, double p, struct dtensor *out,
                        struct dtensor *mask, struct dtensor_error *err)
{
    return dtn_called(&(struct dtn_called){
        .op = "dropout", .args = &(struct dtensor_op_args){ .p = p }, .nin = 1,
        .nout = 2, .in = &t, .out = (struct dtensor *const[]){ out, mask } },
        err);
}

int dtensor_dropout(const struct dtensor *t, double p,
                    struct dtensor_generator *gen, struct dtensor **tp,
                    struct dtensor **maskp, struct dtensor_error *err)
{
    struct dtensor *out = NULL, *mask = NULL;
    struct dtensor_spec spec = t->spec;
    struct dtn_dist dist;
    int rc = dtn_dist_keep(&dist, spec.dtype, p, err);

    if (rc != 0)
        return rc;
    spec.dtype = DTENSOR_BOOL;
    rc = dtn_tensor_create(&t->spec, &out, err);
    if (rc == 0)
        rc = dtn_tensor_create(&spec, &mask, err);
    if (rc == 0)
        rc = dtn_dropout(t->local, p, gen, out, mask, err);
    if (rc == 0)
        rc = dropout_told(t, p, out, mask, err);
    if (rc != 0) {
        dtensor_destroy(out);
        dtensor_destroy(mask);
        return rc;
    }
    *tp = out;
    if (maskp)
        *maskp = mask;
    else
        dtensor_destroy(mask);
    return 0;
}
