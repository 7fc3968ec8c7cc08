/* bounds.c - how far a GPU's value of `fill = cuda` may be from the CPU's
 *
 * A normal is a radius, at most 6.764 for a word of 32 bits, times a sine that
 * is wrong by 2^-20.5.  So with std 1 it is within 4.8e-6, and some units of
 * f32 for the roundings.  A narrower type may round the two to neighbours.
 */
#include "tests/cuda/bounds.h"
#include "base/dtype.h"
#include "cuda/kernels.h"
#include "dtensor.h"
#include "random/dist.h"
#include "tests/cuda/ptx_approximate.h"
#include "tests/support/tap.h"

#include <float.h>
#include <math.h>

#define RADIUS 6.765                   /* sqrt(-2 log 2^-33), rounded up      */

bool bounds_apply(const struct dtn_launch *launch)
{
    return launch->kernel == DTN_KERNEL_fill_cuda_normal_f32
        || launch->kernel == DTN_KERNEL_fill_cuda_log_normal_f32
        || launch->kernel == DTN_KERNEL_fill_cuda_exponential_f32;
}

/* The relative distance of neighbours, the least one, and the largest value. */
struct type {
    double unit, least, most;
};

static struct type type_of(enum dtensor_dtype dtype)
{
    switch (dtype) {
    case DTENSOR_F16:    return (struct type){ 0x1p-10, 0x1p-24, 65504 };
    case DTENSOR_BF16:   return (struct type){ 0x1p-7, 0x1p-133, 0x1.fep127 };
    case DTENSOR_F8E4M3: return (struct type){ 0x1p-3, 0x1p-9, 448 };
    case DTENSOR_F8E5M2: return (struct type){ 0x1p-2, 0x1p-16, 57344 };
    default:             return (struct type){ 0, 0, (double)FLT_MAX };
    }
}

static double bound_normal(const struct dtn_dist *dist, double x)
{
    return dist->mul * RADIUS * PTX_SIN_ERROR
         + (fabs(x) + fabs(dist->add)) * 0x1p-21;
}

/* Of the values before they are rounded to the type. */
static double bound_of(const struct dtn_dist *dist, double want)
{
    const double x = log(fmax(want, DBL_MIN));

    switch (dist->kind) {
    case DTN_NORMAL:
        return bound_normal(dist, want);
    case DTN_LOG_NORMAL:
        return want * expm1(bound_normal(dist, x) + PTX_EX2_ERROR
                            + fabs(x) * 0x1p-22 + 0x1p-22);
    default:                           /* of -1/lambda times a logarithm      */
        return -dist->mul * PTX_LG2_ERROR + want * 0x1p-21;
    }
}

bool bounds_hold(const struct dtn_dist *dist, const void *got,
                 const void *want, size_t count)
{
    const struct type type = type_of(dist->dtype);

    for (size_t i = 0; i < count; i++) {
        const double a = dtn_load(dist->dtype, got, i);
        const double b = dtn_load(dist->dtype, want, i);
        const double most = type.most * (1 + type.unit);
        const double x = isfinite(a) ? a : most, y = isfinite(b) ? b : most;
        const double bound = bound_of(dist, y) + type.least
                           + fmax(fabs(x), fabs(y)) * type.unit;

        if (!(fabs(x - y) <= bound)) {
            note("element %zu is %.9g, %.9g on a CPU: more than %.3g apart", i,
                 a, b, bound);
            return false;
        }
    }
    return true;
}
