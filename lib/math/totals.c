/* totals.c - what a block of floats comes to
 *
 * Elements of f32 are widened to f64 and added to 16 running sums, which are
 * two or more vectors; at the end these are added from the first to the last.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/totals.h"
#include "math/block.h"
#include "math/functions.h"
#include "math/width.h"
#include "dtensor.h"

#include <math.h>
#include <stdint.h>

typedef double total_f(const void *elements, int64_t n, double total,
                       double middle);

struct totals_loops {
    total_f *of[2][DTN_TOTALS];   /* of f32, of f64                           */
};

#define LANES_TARGET
#define LANES_NAME(name) name##_plain
#include "math/totals_lanes.h"

#ifdef DTN_WIDTHS
#define LANES_TARGET DTN_TARGET_AVX2
#define LANES_NAME(name) name##_avx2
#include "math/totals_lanes.h"

#define LANES_TARGET DTN_TARGET_AVX512
#define LANES_NAME(name) name##_avx512
#include "math/totals_lanes.h"
#endif

static const struct totals_loops *const widths[] = {
    &loops_plain,
#ifdef DTN_WIDTHS
    &loops_avx2,
    &loops_avx512,
#endif
};

double dtn_total(enum dtn_total kind, enum dtensor_dtype work, const void *x,
                 int64_t n, double total, double middle)
{
    return widths[dtn_width()]->of[work == DTENSOR_F64][kind](x, n, total,
                                                             middle);
}
