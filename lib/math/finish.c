/* finish.c - computes a block when the totals of its row are known
 *
 * A block is 512 elements.  They were just read for the totals, and are in the
 * L1 cache if the row is not too long.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/finish.h"
#include "math/functions.h"
#include "math/width.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

typedef void finish_f(void *to, const void *const from[], int64_t n,
                      const double by[2]);

/* Of f32, of f64. */
struct finish_loops {
    finish_f *exp[2], *log[2], *norm[2];
    double (*one_log[2])(double x);
    void (*round)(float *out, const double total[], int64_t n);
};

#define LANES_FILE "math/finish_lanes.h"
#define LANES_LOOPS struct finish_loops
#include "math/width_lanes.h"

void dtn_finish_softmax(bool logarithm, enum dtensor_dtype work, void *out,
                        const void *in, int64_t n, const double by[2])
{
    const struct finish_loops *loops = widths[dtn_width()];

    (logarithm ? loops->log : loops->exp)[work == DTENSOR_F64](out, &in, n, by);
}

double dtn_finish_log(enum dtensor_dtype work, double x)
{
    return widths[dtn_width()]->one_log[work == DTENSOR_F64](x);
}

void dtn_finish_f32(float *out, const double total[], int64_t n)
{
    widths[dtn_width()]->round(out, total, n);
}

void dtn_finish_norm(enum dtensor_dtype work, void *out,
                     const void *const from[], int64_t n, const double by[2])
{
    widths[dtn_width()]->norm[work == DTENSOR_F64](out, from, n, by);
}
