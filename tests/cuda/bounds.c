/* bounds.c - how far a GPU's value of `fill = cuda` may be from the CPU's
 *
 * A normal is a radius, at most 6.764 for a word of 32 bits, times a sine that
 * is wrong by 2^-20.5.  So with std 1 it is within 4.8e-6, and some units of
 * f32 for the roundings.  A narrower type may round the two to neighbours.  In
 * f64 nothing is approximate in the end: two sets of functions in software are
 * some units in the last place apart.
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
#define F64_ERROR 0x1p-50              /* eight units of the last place       */

bool bounds_apply(const struct dtn_launch *launch)
{
    return launch->kernel >= DTN_KERNEL_fill_cuda_normal_f32
        && launch->kernel <= DTN_KERNEL_fill_cuda_exponential_f64;
}

/* Of its values the relative distance of neighbours, the least one, and the
 * largest; what functions of it are wrong by, relative, and the instructions.
 */
struct type {
    double unit, least, most, functions, sine, lg2, ex2;
};

#define BY_INSTRUCTIONS 0x1p-21, PTX_SIN_ERROR, PTX_LG2_ERROR, PTX_EX2_ERROR

static const struct type types[DTENSOR_NDTYPES] = {
    [DTENSOR_F64] = { 0, 0, DBL_MAX, F64_ERROR, 0, 0, 0 },
    [DTENSOR_F32] = { 0, 0, (double)FLT_MAX, BY_INSTRUCTIONS },
    [DTENSOR_F16] = { 0x1p-10, 0x1p-24, 65504, BY_INSTRUCTIONS },
    [DTENSOR_BF16] = { 0x1p-7, 0x1p-133, 0x1.fep127, BY_INSTRUCTIONS },
    [DTENSOR_F8E4M3] = { 0x1p-3, 0x1p-9, 448, BY_INSTRUCTIONS },
    [DTENSOR_F8E5M2] = { 0x1p-2, 0x1p-16, 57344, BY_INSTRUCTIONS },
};

static double bound_normal(const struct type *type, const struct dtn_dist *dist,
                           double x)
{
    return dist->mul * RADIUS * type->sine
         + (fabs(x) + fabs(dist->add)) * type->functions;
}

/* Of the values before they are rounded to the type. */
static double bound_of(const struct type *type, const struct dtn_dist *dist,
                       double want)
{
    const double x = log(fmax(want, DBL_MIN));

    switch (dist->kind) {
    case DTN_NORMAL:
        return bound_normal(type, dist, want);
    case DTN_LOG_NORMAL:
        return want * expm1(bound_normal(type, dist, x) + type->ex2
                            + (fabs(x) + 1) * type->functions / 2);
    default:                           /* of -1/lambda times a logarithm      */
        return -dist->mul * type->lg2 + want * type->functions;
    }
}

bool bounds_hold(const struct dtn_dist *dist, const void *got,
                 const void *want, size_t count)
{
    const struct type *type = &types[dist->dtype];

    for (size_t i = 0; i < count; i++) {
        const double a = dtn_load(dist->dtype, got, i);
        const double b = dtn_load(dist->dtype, want, i);
        const double most = type->most * (1 + type->unit);
        const double x = isfinite(a) ? a : most, y = isfinite(b) ? b : most;
        const double bound = bound_of(type, dist, y) + type->least
                           + fmax(fabs(x), fabs(y)) * type->unit;

        if (!(fabs(x - y) <= bound)) {
            note("element %zu is %.9g, %.9g on a CPU: more than %.3g apart", i,
                 a, b, bound);
            return false;
        }
    }
    return true;
}
