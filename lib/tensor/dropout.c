/* dropout.c - keep some elements, scaled, and zero the rest
 *
 * What is kept is a Bernoulli tensor, so all that is said of random tensors
 * holds for it: with p = 0.25 an element is kept where its number, uniform in
 * (0, 1], is below 0.75, and then multiplied by 1 / 0.75.
 */
#include "base/dtype.h"
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
static void dropout_narrow(const struct dtensor *t, const unsigned char *keep,
                           float scale, struct dtensor *out)
{
    const enum dtensor_dtype dtype = t->spec.dtype;

    for (size_t i = 0; i < dtn_tensor_count(t); i++) {
        const float x = (float)dtn_load(dtype, t->local, i);

        dtn_store(dtype, out->local, i,
                  (double)(keep[i] ? x * scale : 0.0f * x));
    }
}

static void dropout_apply(const struct dtensor *t, double p,
                          const struct dtensor *mask, struct dtensor *out)
{
    const unsigned char *keep = mask->local;
    const size_t n = dtn_tensor_count(t);

    if (p == 1)
        for (size_t i = 0; i < n; i++)
            dtn_store(t->spec.dtype, out->local, i, 0);
    else if (t->spec.dtype == DTENSOR_F32)
        dropout_f32(t->local, keep, n, 1 / (float)(1 - p), out->local);
    else if (t->spec.dtype == DTENSOR_F64)
        dropout_f64(t->local, keep, n, 1 / (1 - p), out->local);
    else
        dropout_narrow(t, keep, 1 / (float)(1 - p), out);
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
    if (rc != 0) {
        dtensor_destroy(out);
        dtensor_destroy(mask);
        return rc;
    }
    dropout_apply(t, p, mask, out);
    *tp = out;
    if (maskp)
        *maskp = mask;
    else
        dtensor_destroy(mask);
    return 0;
}
