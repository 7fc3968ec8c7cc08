/* pattern.c - element values whose reductions are exact in any order
 *
 * What a rank puts in at index i of iteration t is entry (i + 37 t) mod 1021
 * of a table that differs for each rank.  1021 is prime, so a block that
 * arrives at another block's place shows; the shift by 37 makes a result left
 * over from the iteration before show.  The table is kept twice in a row: a
 * whole period from any start is one memcpy or memcmp.
 *
 * A sum over n ranks must be exact in the dtype whatever its order, so each
 * term is at most limit/n: in bf16 (limit 256) over 4 ranks, 0..64.  With more
 * ranks than the limit, only every k-th rank puts in a 1, where k is just
 * large enough, and which ones depends on the index.
 */
#include "tools/bench/pattern.h"
#include "tools/bench/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_SHIFT 37
#define PATTERN_ENTRIES (2 * PATTERN_PERIOD)
#define PATTERN_TWOS 6            /* factors 2 of a product: 64 fits an i8    */

/* The finalizer of MurmurHash3 mixes 64 bits well in two multiplications. */
static uint64_t pattern_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a << 32 | b) + UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* Is it this source's turn, when at most `most` of n may have one? */
static bool pattern_turn(int source, int n, int64_t pos, int64_t most)
{
    int64_t k = (n + most - 1) / most;

    return source % k == pos % k;
}

static int64_t pattern_sum_term(int64_t limit, int n, int source, int64_t pos)
{
    if (n > limit)
        return limit > 0 && pattern_turn(source, n, pos, limit);
    return (int64_t)(pattern_mix((uint64_t)source, (uint64_t)pos) %
                     (uint64_t)(limit / n + 1));
}

/* Neighbours differ from their mean by +d and -d, and the mean is the same
 * for all: the average is exact too.
 */
static int64_t pattern_avg_term(int64_t limit, int n, int source, int64_t pos)
{
    uint64_t mean = pattern_mix(1u << 31, (uint64_t)pos) %
                    (uint64_t)(limit / n + 1);
    uint64_t d = pattern_mix((1u << 31) + 1 + (unsigned)source / 2,
                             (uint64_t)pos) % (mean + 1);

    if ((source | 1) >= n)
        return (int64_t)mean;
    return (int64_t)(source & 1 ? mean - d : mean + d);
}

static int64_t pattern_term(const struct patterns *p, int64_t limit,
                            int source, int64_t pos)
{
    uint64_t h = pattern_mix((uint64_t)source, (uint64_t)pos);
    size_t bits = 8 * (p->elem_bytes < 8 ? p->elem_bytes : 8);
    uint64_t bit = UINT64_C(1) << h % bits;

    if (p->dtype == DTENSOR_BOOL && p->op != DTENSOR_PROD)
        return (int64_t)(h & 1);
    switch (p->op) {
    case DTENSOR_SUM:
        return pattern_sum_term(limit, p->nsources, source, pos);
    case DTENSOR_AVG:
        return pattern_avg_term(limit, p->nsources, source, pos);
    case DTENSOR_PROD:
        return 1 + pattern_turn(source, p->nsources, pos, PATTERN_TWOS);
    case DTENSOR_BAND:
        return (int64_t)~bit;
    case DTENSOR_BOR:
        return (int64_t)bit;
    case DTENSOR_BXOR:
        return (int64_t)h;
    default:
        return (int64_t)(h % (uint64_t)(limit + 1));
    }
}

static int64_t pattern_fold(enum dtensor_redop op, int64_t a, int64_t b)
{
    switch (op) {
    case DTENSOR_PROD:
        return a * b;
    case DTENSOR_MIN:
        return a < b ? a : b;
    case DTENSOR_MAX:
        return a > b ? a : b;
    case DTENSOR_BAND:
        return a & b;
    case DTENSOR_BOR:
        return a | b;
    case DTENSOR_BXOR:
        return a ^ b;
    default:
        return a + b;
    }
}

static unsigned char *pattern_entry(const struct patterns *p, int source,
                                    int64_t iter, uint64_t index)
{
    uint64_t pos = (index + PATTERN_SHIFT * (uint64_t)iter) % PATTERN_PERIOD;
    size_t row = source == PATTERN_REDUCED ? (size_t)p->nsources
                                           : (size_t)source;

    return p->image + (row * PATTERN_ENTRIES + pos) * p->elem_bytes;
}

static void pattern_put(struct patterns *p, int source, int64_t pos, int64_t v)
{
    unsigned char *entry = pattern_entry(p, source, 0, (uint64_t)pos);

    value_store(p->dtype, entry, 0, v);
    value_store(p->dtype, entry, PATTERN_PERIOD, v);
}

static void pattern_column(struct patterns *p, int scale, int64_t pos)
{
    int64_t limit = value_limit(p->dtype) / scale;
    int64_t folded = 0, term;

    for (int s = 0; s < p->nsources; s++) {
        term = pattern_term(p, limit, s, pos);
        if (s == 0 || p->op != DTENSOR_PROD)
            term *= scale;
        pattern_put(p, s, pos, term);
        folded = s == 0 ? term : pattern_fold(p->op, folded, term);
    }
    if (p->op == DTENSOR_AVG)
        folded /= p->nsources;
    pattern_put(p, PATTERN_REDUCED, pos, folded);
}

bool patterns_init(struct patterns *p, enum dtensor_dtype dtype,
                   enum dtensor_redop op, int nsources, int scale)
{
    p->dtype = dtype;
    p->op = op;
    p->nsources = nsources;
    p->elem_bytes = dtensor_dtype_size(dtype);
    p->image = malloc(((size_t)nsources + 1) * PATTERN_ENTRIES *
                      p->elem_bytes);
    if (!p->image)
        return false;
    for (int64_t pos = 0; pos < PATTERN_PERIOD; pos++)
        pattern_column(p, scale, pos);
    return true;
}

void patterns_fini(struct patterns *p)
{
    free(p->image);
    p->image = NULL;
}

void pattern_fill(const struct patterns *p, int source, int64_t iter,
                  uint64_t index, size_t count, void *out)
{
    const unsigned char *period = pattern_entry(p, source, iter, index);
    size_t whole = PATTERN_PERIOD * p->elem_bytes;
    size_t left = count * p->elem_bytes;
    unsigned char *at = out;

    for (; left > whole; left -= whole, at += whole)
        memcpy(at, period, whole);
    memcpy(at, period, left);
}

size_t pattern_check(const struct patterns *p, int source, int64_t iter,
                     uint64_t index, size_t count, const void *got,
                     size_t *firstp)
{
    const unsigned char *period = pattern_entry(p, source, iter, index);
    const unsigned char *bytes = got;
    size_t wrong = 0, n;

    for (size_t i = 0; i < count; i += n) {
        n = count - i < PATTERN_PERIOD ? count - i : PATTERN_PERIOD;
        if (memcmp(bytes + i * p->elem_bytes, period, n * p->elem_bytes) == 0)
            continue;
        for (size_t j = 0; j < n; j++) {
            if (memcmp(bytes + (i + j) * p->elem_bytes,
                       period + j * p->elem_bytes, p->elem_bytes) == 0)
                continue;
            if (wrong++ == 0)
                *firstp = i + j;
        }
    }
    return wrong;
}

double pattern_value(const struct patterns *p, int source, int64_t iter,
                     uint64_t index)
{
    return value_load(p->dtype, pattern_entry(p, source, iter, index), 0);
}
