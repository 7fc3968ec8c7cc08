/* dropout.c - keep some elements, scaled, and zero the rest
 *
 * The mask of kept elements is a Bernoulli tensor and follows the rules of
 * random tensors.  With p = 0.25 an element is kept if its random number,
 * uniform in (0, 1], is below 0.75; it is then multiplied by 1 / 0.75.
 */
#include "base/dtype.h"
#include "device/memory.h"
#include "job/buffer.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/generator.h"
#include "tensor/tensor.h"
#include "dtensor.h"

static void dropout_f32(const float *x, const unsigned char *keep, size_t n,
                        float scale, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = keep[i] ? x[i] * scale : 0.0f * x[i];
}

static void dropout_f64(const double *x, const unsigned char *keep, size_t n,
                        double scale, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = keep[i] ? x[i] * scale : 0.0 * x[i];
}

/* The narrow types are computed as f32, as everywhere. */
static void dropout_narrow(enum dtensor_dtype dtype, const void *in,
                           const unsigned char *keep, size_t n, float scale,
                           void *out)
{
    for (size_t i = 0; i < n; i++) {
        const float x = (float)dtn_load(dtype, in, i);

        dtn_store(dtype, out, i, (double)(keep[i] ? x * scale : 0.0f * x));
    }
}

struct dropout {
    enum dtensor_dtype dtype;
    double p;                     /* of an element to be zeroed               */
};

/* Of an array and the mask of what is kept. */
static void dropout_make(const void *how, int64_t first, size_t n, void *out,
                         const void *const in[])
{
    const struct dropout *dropout = how;
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

static const struct dtn_formula dropout_formula = { dropout_make, 2 };

static int dropout_apply(const struct dtensor *t, double p,
                         const struct dtensor *mask, struct dtensor *out,
                         struct dtensor_error *err)
{
    const struct dropout dropout = { t->spec.dtype, p };
    const size_t elem = dtensor_dtype_size(t->spec.dtype);

    if (t->bytes == 0)
        return 0;
    return dtn_buffer_make(t->spec.mesh->ctx, &dropout_formula,
                           &(struct dtn_elements){ .how = &dropout,
                               .count = dtn_tensor_count(t), .out_bytes = elem,
                               .in_bytes = { elem, 1 } }, out->local,
                           (const void *const[]){ t->local, mask->local }, err);
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
        rc = dtn_random_fill("dropout", mask, &dist, gen, err);
    if (rc == 0)
        rc = dropout_apply(t, p, mask, out, err);
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
