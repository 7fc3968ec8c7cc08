/* panels.c - elements of a matrix in the order in which a loop reads them
 *
 * A loop that multiplies 12 rows of a by 32 columns of b reads, for each term,
 * 12 numbers and then 32.  In memory they are far apart, or of another type; so
 * a block of each factor is first copied to panels: term 0 of 12 rows, term 1
 * of 12 rows, and so on.  Each element is copied once and used many times.
 *
 * If the lanes are neighbours in memory, a term of all of them is copied at
 * once.  If not, the terms of a lane are, and 4 lanes are interleaved.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "math/panels.h"
#include "math/block.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

static const char *element_at(const struct dtn_panels *p, int64_t lane,
                              int64_t term)
{
    return (const char *)p->data + (lane * p->lane + term * p->term) *
                                   (int64_t)dtn_dtype_size(p->dtype);
}

static int64_t element_bytes(const struct dtn_panels *p)
{
    return p->work == DTENSOR_F64 ? 8 : 4;
}

/* ------------------------------------------------------ term after term --- */

/* A term of n lanes to the panels, of which one has `deep` terms. */
static void row_spread(const struct dtn_panels *p, const char *row, int64_t n,
                       int64_t deep, char *to)
{
    const int64_t bytes = p->lanes * element_bytes(p), all = n *
                                                             element_bytes(p);
    int64_t at = 0;

    for (; at + bytes <= all; at += bytes, to += bytes * deep)
        for (int64_t i = 0; i < bytes; i += 16)
            memcpy(to + i, row + at + i, 16);
    if (at < all) {
        memcpy(to, row + at, (size_t)(all - at));
        memset(to + all - at, 0, (size_t)(bytes - (all - at)));
    }
}

static void panels_across(const struct dtn_panels *p, int64_t first, int64_t n,
                          int64_t from, int64_t deep, char *to)
{
    const struct dtn_storage how = { p->dtype, p->work, 1 };
    _Alignas(64) char room[DTN_PANELS_LANES * sizeof(double)];

    for (int64_t t = 0; t < deep; t++)
        row_spread(p, dtn_block_load(&how, element_at(p, first, from + t), n,
                                     room),
                   n, deep, to + t * p->lanes * element_bytes(p));
}

/* ------------------------------------------------------ lane after lane --- */

/* to[t * lanes + i] = run[i][t], of 4 runs of `deep` numbers. */
static void interleave_4(const void *const run[4], int64_t deep, int lanes,
                         float *to)
{
    const float *r0 = run[0], *r1 = run[1], *r2 = run[2], *r3 = run[3];
    int64_t t = 0;

#ifdef __SSE2__
    for (; t + 4 <= deep; t += 4) {
        __m128 v0 = _mm_loadu_ps(r0 + t), v1 = _mm_loadu_ps(r1 + t);
        __m128 v2 = _mm_loadu_ps(r2 + t), v3 = _mm_loadu_ps(r3 + t);

        _MM_TRANSPOSE4_PS(v0, v1, v2, v3);
        _mm_storeu_ps(to + t * lanes, v0);
        _mm_storeu_ps(to + (t + 1) * lanes, v1);
        _mm_storeu_ps(to + (t + 2) * lanes, v2);
        _mm_storeu_ps(to + (t + 3) * lanes, v3);
    }
#endif
    for (; t < deep; t++) {
        const float four[4] = { r0[t], r1[t], r2[t], r3[t] };

        memcpy(to + t * lanes, four, sizeof four);
    }
}

static void interleave_8(const void *const run[4], int64_t deep, int lanes,
                         double *to)
{
    const double *r0 = run[0], *r1 = run[1], *r2 = run[2], *r3 = run[3];

    for (int64_t t = 0; t < deep; t++) {
        const double four[4] = { r0[t], r1[t], r2[t], r3[t] };

        memcpy(to + t * lanes, four, sizeof four);
    }
}

/* Lanes `first` to `first` + n - 1 are there; a group of 4 may have fewer. */
static void panels_along(const struct dtn_panels *p, int64_t first, int64_t n,
                         int64_t from, int64_t deep, char *to)
{
    static const double zeros[DTN_PANELS_DEEP];
    const struct dtn_storage how = { p->dtype, p->work, p->term };
    _Alignas(64) double room[4][DTN_PANELS_DEEP];
    const int64_t all = (n + p->lanes - 1) / p->lanes * p->lanes;
    const void *run[4];

    for (int64_t lane = 0; lane < all; lane += 4) {
        const int64_t panel = lane / p->lanes, within = lane % p->lanes;
        char *at = to + (panel * deep * p->lanes + within) * element_bytes(p);

        for (int i = 0; i < 4; i++)
            run[i] = lane + i >= n ? zeros
                   : dtn_block_load(&how, element_at(p, first + lane + i, from),
                                    deep, room[i]);
        if (p->work == DTENSOR_F64)
            interleave_8(run, deep, p->lanes, (double *)at);
        else
            interleave_4(run, deep, p->lanes, (float *)at);
    }
}

void dtn_panels_take(const struct dtn_panels *p, int64_t first, int64_t n,
                     int64_t from, int64_t deep, void *to)
{
    if (p->lane == 1)
        panels_across(p, first, n, from, deep, to);
    else
        panels_along(p, first, n, from, deep, to);
}
