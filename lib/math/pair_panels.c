/* pair_panels.c - panels of pairs of bf16, for the instruction of pairs.h
 *
 * Two neighbours in memory are a number of 32 bits already, but the first of
 * them is its lower half, and the instruction multiplies the upper one first.
 * So where a lane's terms are neighbours, each number is rotated, 16 at a time,
 * and 4 lanes are interleaved.  Where the lanes are neighbours, the terms of a
 * pair are in two rows: one is widened and shifted, the other put below it.
 */
#include "math/pair_panels.h"
#include "math/block.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef DTN_WIDTHS
#include <immintrin.h>

enum { SOME = 16 };               /* pairs in a vector                        */

static const uint16_t *term_at(const struct dtn_panels *p, int64_t lane,
                               int64_t term)
{
    return (const uint16_t *)p->data + lane * p->lane + term * p->term;
}

/* ------------------------------------------------------ pair after pair --- */

/* The lower `n` of 16, which may be none or more than all. */
static __mmask16 some_of(int64_t n)
{
    return (__mmask16)(n >= SOME ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

/* A pair of n lanes, to panels that are `apart` from each other; without
 * `lower` its second term is p->odd.
 */
DTN_TARGET_AVX512
static void pair_spread(const struct dtn_panels *p, const uint16_t *upper,
                        const uint16_t *lower, int64_t n, int64_t apart,
                        uint32_t *to)
{
    for (int64_t lane = 0; lane < n; lane += p->lanes, to += apart)
        for (int64_t i = 0; i < p->lanes; i += SOME) {
            const int64_t at = lane + i;
            const __mmask16 there = some_of(n - at);
            const __m512i first = _mm512_slli_epi32(_mm512_cvtepu16_epi32(
                _mm256_maskz_loadu_epi16(there, upper + at)), 16);
            const __m512i second = !lower
                ? _mm512_maskz_set1_epi32(there, p->odd)
                : _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there,
                                                                 lower + at));

            _mm512_mask_storeu_epi32(to + i, some_of(p->lanes - i),
                                     _mm512_or_si512(first, second));
        }
}

static void panels_across(const struct dtn_panels *p, int64_t first, int64_t n,
                          int64_t from, int64_t deep, uint32_t *to)
{
    for (int64_t t = 0; t < deep; t++) {
        const int64_t term = 2 * (from + t);

        pair_spread(p, term_at(p, first, term),
                    term + 1 < p->terms ? term_at(p, first, term + 1) : NULL, n,
                    deep * p->lanes, to + t * p->lanes);
    }
}

/* ------------------------------------------------------ lane after lane --- */

/* The four quarters of a vector, 4 rows of a panel from each other. */
DTN_TARGET_AVX512
static void quarters_store(__m512i v, int64_t lanes, uint32_t *to)
{
    _mm_storeu_si128((__m128i *)to, _mm512_castsi512_si128(v));
    _mm_storeu_si128((__m128i *)(to + 4 * lanes),
                     _mm512_extracti32x4_epi32(v, 1));
    _mm_storeu_si128((__m128i *)(to + 8 * lanes),
                     _mm512_extracti32x4_epi32(v, 2));
    _mm_storeu_si128((__m128i *)(to + 12 * lanes),
                     _mm512_extracti32x4_epi32(v, 3));
}

DTN_TARGET_AVX512
static __m512i some_turned(const uint16_t *run)
{
    return _mm512_ror_epi32(_mm512_loadu_si512(run), 16);
}

/* 16 pairs of 4 lanes: those of pair t to to[t * lanes]. */
DTN_TARGET_AVX512
static void some_interleave(const uint16_t *const run[4], int64_t lanes,
                            uint32_t *to)
{
    const __m512i r0 = some_turned(run[0]), r1 = some_turned(run[1]);
    const __m512i r2 = some_turned(run[2]), r3 = some_turned(run[3]);
    const __m512i a = _mm512_unpacklo_epi32(r0, r1);
    const __m512i b = _mm512_unpackhi_epi32(r0, r1);
    const __m512i c = _mm512_unpacklo_epi32(r2, r3);
    const __m512i d = _mm512_unpackhi_epi32(r2, r3);

    quarters_store(_mm512_unpacklo_epi64(a, c), lanes, to);
    quarters_store(_mm512_unpackhi_epi64(a, c), lanes, to + lanes);
    quarters_store(_mm512_unpacklo_epi64(b, d), lanes, to + 2 * lanes);
    quarters_store(_mm512_unpackhi_epi64(b, d), lanes, to + 3 * lanes);
}

/* `deep` pairs of 4 lanes, of which `whole` have two terms. */
static void lanes_interleave(const struct dtn_panels *p,
                             const uint16_t *const run[4], int64_t deep,
                             int64_t whole, uint32_t *to)
{
    int64_t t = 0;

    for (; t + SOME <= whole; t += SOME)
        some_interleave((const uint16_t *const[]){
            run[0] + 2 * t, run[1] + 2 * t, run[2] + 2 * t, run[3] + 2 * t },
            p->lanes, to + t * p->lanes);
    for (; t < deep; t++)
        for (int i = 0; i < 4; i++)
            to[t * p->lanes + i] = (uint32_t)run[i][2 * t] << 16 |
                                   (t < whole ? run[i][2 * t + 1] : p->odd);
}

static void panels_along(const struct dtn_panels *p, int64_t first, int64_t n,
                         int64_t from, int64_t deep, uint32_t *to)
{
    static const uint16_t zeros[2 * DTN_PANELS_DEEP];
    const struct dtn_storage how = { p->dtype, p->dtype, p->term };
    const int64_t left = p->terms - 2 * from;
    const int64_t some = left < 2 * deep ? left : 2 * deep;
    const int64_t all = (n + p->lanes - 1) / p->lanes * p->lanes;
    uint16_t room[4][2 * DTN_PANELS_DEEP];
    const uint16_t *run[4];

    for (int64_t lane = 0; lane < all; lane += 4) {
        const int64_t panel = lane / p->lanes, within = lane % p->lanes;

        for (int i = 0; i < 4; i++)
            run[i] = lane + i >= n ? zeros
                   : dtn_block_load(&how, term_at(p, first + lane + i,
                                                  2 * from), some, room[i]);
        lanes_interleave(p, run, deep, some / 2,
                         to + panel * deep * p->lanes + within);
    }
}

void dtn_pair_panels_take(const struct dtn_panels *p, int64_t first, int64_t n,
                          int64_t from, int64_t deep, void *to)
{
    if (p->lane == 1)
        panels_across(p, first, n, from, deep, to);
    else
        panels_along(p, first, n, from, deep, to);
}

#endif
