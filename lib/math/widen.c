/* widen.c - bf16 and f16 as f32, and back
 *
 * Models compute with these, so they have the widest vectors there are: a block
 * of 512 takes 20 ns.  CPUs have instructions for f16, which compilers do not
 * use by themselves; they make the same bits as base/narrow.h.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

#include "math/widen.h"
#include "math/width.h"
#include "base/narrow.h"
#include "dtensor.h"

#include <stdint.h>

#ifdef DTN_WIDTHS
#include <immintrin.h>
#endif

struct widen_loops {
    void (*widen[2])(float *to, const uint16_t *from, int64_t n);
    void (*narrow[2])(uint16_t *to, const float *from, int64_t n);
    void (*widen_rows[2])(float *to, const uint16_t *from, int64_t apart,
                          int64_t rows);
    void (*narrow_rows[2])(uint16_t *to, int64_t apart, const float *from,
                           int64_t rows);
};
enum { BF16, F16 };

#define LANES_FILE "math/widen_lanes.h"
#define LANES_LOOPS struct widen_loops
#include "math/width_lanes.h"

void dtn_widen_bf16(float *to, const uint16_t *from, int64_t n)
{
    widths[dtn_width()]->widen[BF16](to, from, n);
}

void dtn_narrow_bf16(uint16_t *to, const float *from, int64_t n)
{
    widths[dtn_width()]->narrow[BF16](to, from, n);
}

void dtn_widen_f16(float *to, const uint16_t *from, int64_t n)
{
    widths[dtn_width()]->widen[F16](to, from, n);
}

void dtn_narrow_f16(uint16_t *to, const float *from, int64_t n)
{
    widths[dtn_width()]->narrow[F16](to, from, n);
}

void dtn_widen_rows(enum dtensor_dtype dtype, void *to, const void *from,
                    int64_t apart, int64_t rows)
{
    widths[dtn_width()]->widen_rows[dtype == DTENSOR_F16](to, from, apart,
                                                          rows);
}

void dtn_narrow_rows(enum dtensor_dtype dtype, void *to, int64_t apart,
                     const void *from, int64_t rows)
{
    widths[dtn_width()]->narrow_rows[dtype == DTENSOR_F16](to, apart, from,
                                                           rows);
}
