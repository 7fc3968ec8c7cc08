/* totals.c - what a block of floats comes to
 *
 * Elements of f32 are widened to f64 and added to 32 running sums, which are
 * four or more vectors; at the end these are added in pairs.
 *
 * A bf16 has 8 digits.  If the exponents of some numbers differ by 13 at most,
 * f32 holds the sum of 8 of them, and f64 that of thousands, without rounding:
 * then any order has the bits of the 32 running sums.  Of 0.25, 4 and 1.5, say,
 * all sums of 8 are multiples of 2^-9 below 2^6.  So f32 are added, twice as
 * fast, if the least and the largest number of a block allow it; with AVX-512,
 * if nothing was rounded (sums_exact_lanes.h).
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/totals.h"
#include "math/block.h"
#include "math/functions.h"
#include "math/widen.h"
#include "math/width.h"
#include "base/dtype.h"
#include "base/narrow.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef DTN_WIDTHS
#include <immintrin.h>
#endif

typedef double total_f(const void *elements, int64_t n, double total,
                       double middle);

typedef void columns_f(const void *elements, int64_t apart, int64_t n,
                       int64_t width, double total[]);
typedef double exp_f(void *to, const void *elements, int64_t n, double total,
                     double middle);
typedef int64_t place_f(const void *elements, int64_t n, double value);

/* Without AVX-512 columns of up to DTN_TOTAL_BLOCK f32 are added
 * DTN_TOTAL_SHORT at a time, a cache line, without 32 lanes of memory.  Of f64
 * this is slower.  Lanes come in this order: 16 joins 0, 24 joins 8, 8 joins 0,
 * and so on, so that of those that are still to be joined there are at most
 * six.
 */
enum { DTN_TOTAL_SHORT = 16, DTN_TOTAL_BLOCK = 128 };
static const unsigned char total_order[32] = {
    0, 16, 8, 24, 4, 20, 12, 28, 2, 18, 10, 26, 6, 22, 14, 30,
    1, 17, 9, 25, 5, 21, 13, 29, 3, 19, 11, 27, 7, 23, 15, 31
};

/* How many of the lanes n elements reach, as a power of two.  The others have
 * the neutral element, which changes nothing.  Lanes come in the order of every
 * 32 / lanes-th entry above.
 */
static int total_lanes(int64_t n)
{
    int lanes = 32;

    while (lanes > 1 && n <= lanes / 2)
        lanes /= 2;
    return lanes;
}

/* Of f32, of f64, and some of bf16 and of f16. */
struct totals_loops {
    void (*begin)(double first, int64_t n, double total[]);
    total_f *of[4][DTN_TOTALS];
    columns_f *columns[4][DTN_TOTALS];
    exp_f *exp[2];
    place_f *place[2];
};

/* A float as a whole number of the same order: see totals_lanes.h. */
#define KEY(kind, T, I, LARGEST, infinity)                                    \
    typedef I dtn_key_##kind;                                                 \
    static inline I dtn_key_bits_##kind(T x)                                  \
    {                                                                         \
        I bits;                                                               \
                                                                              \
        memcpy(&bits, &x, sizeof bits);                                       \
        return bits;                                                          \
    }                                                                         \
    static inline T dtn_key_float_##kind(I key)                               \
    {                                                                         \
        const I bits = key < 0 ? key ^ LARGEST : key;                         \
        T x;                                                                  \
                                                                              \
        memcpy(&x, &bits, sizeof x);                                          \
        return x;                                                             \
    }                                                                         \
    static inline bool dtn_key_plain_##kind(I key)                            \
    {                                                                         \
        return key <= (infinity) && key >= -(infinity) - 1;                   \
    }

KEY(f32, float, int32_t, INT32_MAX, 0x7f800000)
KEY(f64, double, int64_t, INT64_MAX, 0x7ff0000000000000)

/* Sums of EXACT_TERMS numbers of bf16 are exact in f32 if their exponents
 * differ by EXACT_RANGE at most.  Do they differ by `range` at most, and is the
 * sum finite?  `most` has the bits of the largest, `less` those of the least
 * that is not 0, less 1.
 */
enum { EXACT_TERMS = 8, EXACT_RANGE = 13 };

static bool range_is_exact(uint16_t most, uint16_t less, int range)
{
    const int high = most >> 7, low = (uint16_t)(less + 1) >> 7;

    return high < 250 && high - (low > 1 ? low : 1) <= range;
}

/* bf16 and f16 as 16-bit whole numbers of the same order, and back: the bits of
 * a negative one are turned.  Of 0 and -0 that is 0 and -1.
 */
static inline int16_t narrow_key(uint16_t bits)
{
    return (int16_t)(bits & 0x8000 ? bits ^ 0x7fff : bits);
}

/* Without branches, for vectors of them. */
#define PLAIN(kind, infinity)                                                 \
    static inline int16_t narrow_plain_##kind(int16_t low, int16_t high,      \
                                              int16_t end)                    \
    {                                                                         \
        return (high <= (infinity)) & (low >= -(infinity) - 1) & (end != 0) & \
               (end != -1);                                                   \
    }

PLAIN(bf16, 0x7f80)
PLAIN(f16, 0x7c00)

#define LANES_FILE "math/totals_lanes.h"
#define LANES_LOOPS struct totals_loops
#include "math/width_lanes.h"

static int type_of(enum dtensor_dtype work)
{
    return work == DTENSOR_BF16 ? 2 : work == DTENSOR_F16 ? 3
         : work == DTENSOR_F64;
}

bool dtn_total_narrow(enum dtn_total kind)
{
    return kind == DTN_TOTAL_SUM || kind == DTN_TOTAL_PROD ||
           kind == DTN_TOTAL_MAX || kind == DTN_TOTAL_MIN ||
           kind == DTN_TOTAL_ABS || kind == DTN_TOTAL_SQUARES;
}

void dtn_total_begin(enum dtn_total kind, int64_t n, double total[])
{
    const double first = kind == DTN_TOTAL_PROD ? 1
                       : kind == DTN_TOTAL_MAX ? (double)-INFINITY
                       : kind == DTN_TOTAL_MIN || kind == DTN_TOTAL_LEAST
                           ? (double)INFINITY : 0;

    widths[dtn_width()]->begin(first, n, total);
}

double dtn_total(enum dtn_total kind, enum dtensor_dtype work, const void *x,
                 int64_t n, double total, double middle)
{
    return widths[dtn_width()]->of[type_of(work)][kind](x, n, total, middle);
}

/* One loop, what it takes at once, and the bytes of an element. */
struct total_loop { total_f *of; int64_t most; size_t size; };

/* Does the loop take any number of blocks? */
static bool takes_blocks(enum dtn_total kind, enum dtensor_dtype work)
{
    const bool wide = work == DTENSOR_F32 || work == DTENSOR_F64;

    return kind == DTN_TOTAL_MAX || kind == DTN_TOTAL_MIN ||
           (wide && kind != DTN_TOTAL_EXP);
}

static struct total_loop loop_of(enum dtn_total kind, enum dtensor_dtype work)
{
    return (struct total_loop){
        widths[dtn_width()]->of[type_of(work)][kind],
        takes_blocks(kind, work) ? INT64_MAX : DTN_BLOCK,
        dtn_dtype_size(work) };
}

static double row_total(const struct total_loop *loop, const char *x, int64_t n,
                        double total, double middle)
{
    for (; n > loop->most; n -= loop->most) {
        total = loop->of(x, loop->most, total, middle);
        x += (size_t)loop->most * loop->size;
    }
    return n > 0 ? loop->of(x, n, total, middle) : total;
}

double dtn_total_row(enum dtn_total kind, enum dtensor_dtype work,
                     const void *x, int64_t n, double total, double middle)
{
    const struct total_loop loop = loop_of(kind, work);

    return row_total(&loop, x, n, total, middle);
}

void dtn_total_rows(enum dtn_total kind, enum dtensor_dtype work, const void *x,
                    int64_t apart, int64_t rows, int64_t n, double total[])
{
    const struct total_loop loop = loop_of(kind, work);
    const int64_t bytes = apart * (int64_t)loop.size;

    for (int64_t r = 0; r < rows; r++)
        total[r] = row_total(&loop, (const char *)x + r * bytes, n, total[r],
                             0);
}

void dtn_total_columns(enum dtn_total kind, enum dtensor_dtype work,
                       const void *x, int64_t apart, int64_t n, int64_t width,
                       double total[])
{
    const int type = type_of(work);
    const int64_t most = type < 2 ? DTN_TOTAL_COLUMNS : DTN_TOTAL_WIDE;
    columns_f *columns = widths[dtn_width()]->columns[type][kind];

    for (int64_t k = 0; k < width; k += most)
        columns((const char *)x + (size_t)k * dtn_dtype_size(work), apart, n,
                width - k < most ? width - k : most, total + k);
}

double dtn_total_exp(enum dtensor_dtype work, void *made, const void *x,
                     int64_t n, double total, double middle)
{
    return widths[dtn_width()]->exp[work == DTENSOR_F64](made, x, n, total,
                                                         middle);
}

int64_t dtn_total_place(enum dtensor_dtype work, const void *x, int64_t n,
                        double value)
{
    return widths[dtn_width()]->place[work == DTENSOR_F64](x, n, value);
}
