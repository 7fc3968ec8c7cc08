/* pairs.c - products of bf16 by an instruction that multiplies pairs of them
 *
 * VDPBF16PS adds to each f32 the products of two pairs of bf16: first that of
 * the upper halves, then that of the lower ones, each rounded like a fused
 * multiply-add.  So it makes the same chain as the loops for f32, twice as
 * fast.  There is one difference: a number below 2^-126 counts as 0.
 *
 * If all factors and sums are 0 or at least 2^-126, the bits are the same.  A
 * bf16 has 8 digits, so one of size 2^e or more is a multiple of 2^(e - 7).  If
 * those of a are at least 2^i and those of b at least 2^j, all products and
 * sums are multiples of 2^(i + j - 14): none is too small if i + j >= -112.
 * The smallest numbers that are not 0 are found first, in a pass that takes a
 * hundredth of the time.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "math/pairs.h"
#include "math/block.h"
#include "math/tiles.h"
#include "math/width.h"
#include "base/compiler.h"
#include "base/narrow.h"
#include "dtensor.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef DTN_WIDTHS
#include <immintrin.h>

enum { PAIRS = 16 };

/* One instruction. */
DTN_TARGET_BF16 static void pairs_add(float sums[PAIRS], const uint32_t x[],
                                      const uint32_t y[])
{
    _mm512_storeu_ps(sums, _mm512_dpbf16_ps(
        _mm512_loadu_ps(sums), (__m512bh)_mm512_loadu_si512(x),
        (__m512bh)_mm512_loadu_si512(y)));
}

static float half_of(uint32_t pair, int upper)
{
    return dtn_narrow_float(upper ? pair & 0xffff0000 : pair << 16);
}

/* Is it a chain here?  CPUs are not told to round in between, but do.  Of 16
 * numbers of about 2^0 with all digits, each other order or rounding shows.
 */
static bool pairs_chain(void)
{
    float sums[PAIRS], wanted[PAIRS];
    uint32_t x[PAIRS], y[PAIRS], state = 1;
    bool same = true;

    for (int i = 0; i < PAIRS; i++)
        sums[i] = wanted[i] = 0;
    for (int round = 0; round < 64; round++) {
        for (int i = 0; i < PAIRS; i++) {
            state = state * 1664525 + 1013904223;
            x[i] = (state & 0x80ff81ff) | 0x3f003e00;
            state = state * 1664525 + 1013904223;
            y[i] = (state & 0x81ff80ff) | 0x3e003f00;
            for (int upper = 1; upper >= 0; upper--)
                wanted[i] = __builtin_fmaf(half_of(x[i], upper),
                                           half_of(y[i], upper), wanted[i]);
        }
        pairs_add(sums, x, y);
        same &= memcmp(sums, wanted, sizeof sums) == 0;
    }
    return same;
}

static bool chain;

static void chain_find(void)
{
    chain = __builtin_cpu_supports("avx512bf16") && pairs_chain();
}

static bool pairs_ok(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, chain_find);
    return chain && dtn_width() == DTN_WIDTHS - 1;
}

/* --------------------------------------------------------------- range --- */

/* The least of `least` and n magnitudes less 1; a 0 becomes the largest. */
DTN_TARGET_AVX512
static uint16_t least_of(const uint16_t *bits, int64_t n, uint16_t least)
{
    for (int64_t i = 0; i < n; i++) {
        const uint16_t size = (uint16_t)((bits[i] & 0x7fff) - 1);

        least = size < least ? size : least;
    }
    return least;
}

/* The exponent field of the smallest element that is not 0, of rows of n
 * elements `step` apart; 0 if it is below 2^-126.
 */
static int least_exponent(const void *data, int64_t rows, int64_t apart,
                          int64_t n, int64_t step)
{
    const struct dtn_storage how = { DTENSOR_BF16, DTENSOR_BF16, step };
    uint16_t least = UINT16_MAX, room[DTN_BLOCK];
    int64_t most;

    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < n; i += most) {
            const uint16_t *at = (const uint16_t *)data + row * apart +
                                 i * step;

            most = step == 1 ? n : n - i < DTN_BLOCK ? n - i : DTN_BLOCK;
            least = least_of(dtn_block_load(&how, at, most, room), most, least);
        }
    return least == UINT16_MAX ? 255 : (least + 1) >> 7;
}

static int matrix_exponent(const struct dtn_tiles_matrix *m, int64_t rows,
                           int64_t columns)
{
    return m->stride[0] == 1
        ? least_exponent(m->data, columns, m->stride[1], rows, 1)
        : least_exponent(m->data, rows, m->stride[0], columns, m->stride[1]);
}

/* Also of the sums that are there: f32, which were bf16. */
static bool sums_fit(const struct dtn_tiles_call *c)
{
    if (!c->adds)
        return true;
    for (int64_t row = 0; row < c->m; row++)
        for (int64_t i = 0; i < c->n; i++) {
            const float *out = c->out;
            const uint32_t bits = dtn_narrow_bits(out[row * c->apart + i]);

            if ((bits & 0x7fffffff) != 0 && (bits & 0x7f800000) < (8u << 23))
                return false;
        }
    return true;
}

bool dtn_pairs_fit(const struct dtn_tiles_call *c)
{
    if (c->a.dtype != DTENSOR_BF16 || c->b.dtype != DTENSOR_BF16 ||
        c->work != DTENSOR_F32 || !pairs_ok())
        return false;

    const int a = matrix_exponent(&c->a, c->m, c->k);
    const int b = a > 0 ? matrix_exponent(&c->b, c->k, c->n) : 0;

    return b > 0 && a + b >= 2 * 127 - 112 && sums_fit(c);
}

#else

bool dtn_pairs_fit(const struct dtn_tiles_call *call)
{
    return false;
}

#endif
