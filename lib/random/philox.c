/* philox.c - Philox4x32-10: a counter and a key make four random words
 *
 * A block is four words of 32 bits.  Ten rounds of multiplications and xors
 * compute it from a counter, (counter, stream) of 64 bits each, and a key of 64
 * bits, the seed.  Blocks have no common state, so any block costs the same: if
 * all inputs are zero, block 0 begins with 6627e8d5, and block 10^18 also takes
 * 20 multiplications.
 *
 * Consecutive blocks are computed side by side in a vector.  With AVX-512 there
 * are eight: a round has six instructions, two start in a cycle, so a block of
 * 16 bytes takes ten rounds of 3/8 of a cycle.
 *
 * Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3
 * (SC 2011).
 */
/* Packages are built with -O2.  There gcc does not vectorise these loops. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "random/philox.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define PHILOX_M0 UINT32_C(0xD2511F53)
#define PHILOX_M1 UINT32_C(0xCD9E8D57)
#define PHILOX_W0 UINT32_C(0x9E3779B9)
#define PHILOX_W1 UINT32_C(0xBB67AE85)
enum { PHILOX_ROUNDS = 10 };

/* The counter words of the first block, the index of the word that counts the
 * blocks (0: of the counter, 2: of the stream), and the keys of the rounds.  In
 * one run the word that counts does not pass 2^32.
 */
struct philox_run {
    uint32_t word[4];
    int moving;
    uint32_t key[PHILOX_ROUNDS][2];
};

/* Write `nblocks` blocks of four words. */
typedef void philox_blocks_f(const struct philox_run *run, size_t nblocks,
                             uint32_t *out);

/* ------------------------------------------------------------ one block --- */

static void philox_round(uint32_t c[4], const uint32_t key[2])
{
    const uint64_t p0 = (uint64_t)PHILOX_M0 * c[0];
    const uint64_t p1 = (uint64_t)PHILOX_M1 * c[2];

    c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ key[0];
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ key[1];
    c[3] = (uint32_t)p0;
}

static void philox_one(const struct philox_run *run, uint32_t i, uint32_t c[4])
{
    memcpy(c, run->word, sizeof run->word);
    c[run->moving] += i;
    for (int r = 0; r < PHILOX_ROUNDS; r++)
        philox_round(c, run->key[r]);
}

/* --------------------------------------------------------------- widths --- */

enum { PLAIN_LANES = 16, MOST_ABREAST = 32 };

/* Loops that a compiler vectorises with widening multiplications of 32 bits:
 * for NEON and the oldest x86-64.  The loop over the lanes must not be unrolled
 * before, because gcc then vectorises only a few of the sixteen copies.
 */
#if defined(__clang__)
#define PLAIN_ROLLED _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__)
#define PLAIN_ROLLED _Pragma("GCC unroll 1")
#else
#define PLAIN_ROLLED
#endif

static void blocks_plain(const struct philox_run *run, size_t nblocks,
                         uint32_t *out)
{
    uint32_t c[4][PLAIN_LANES], next[2][PLAIN_LANES];

    for (size_t i = 0; i < nblocks; i += PLAIN_LANES) {
        for (int w = 0; w < 4; w++)
            for (int l = 0; l < PLAIN_LANES; l++)
                c[w][l] = run->word[w];
        for (int l = 0; l < PLAIN_LANES; l++)
            c[run->moving][l] += (uint32_t)i + (uint32_t)l;
        for (int r = 0; r < PHILOX_ROUNDS; r++) {
            const uint32_t k0 = run->key[r][0], k1 = run->key[r][1];

            PLAIN_ROLLED
            for (int l = 0; l < PLAIN_LANES; l++) {
                const uint64_t p0 = (uint64_t)PHILOX_M0 * c[0][l];
                const uint64_t p1 = (uint64_t)PHILOX_M1 * c[2][l];

                next[0][l] = (uint32_t)(p1 >> 32) ^ c[1][l] ^ k0;
                next[1][l] = (uint32_t)(p0 >> 32) ^ c[3][l] ^ k1;
                c[1][l] = (uint32_t)p1;
                c[3][l] = (uint32_t)p0;
            }
            memcpy(c[0], next[0], sizeof c[0]);
            memcpy(c[2], next[1], sizeof c[2]);
        }
        for (int l = 0; l < PLAIN_LANES; l++)
            for (int w = 0; w < 4; w++)
                out[4 * (i + (size_t)l) + (size_t)w] = c[w][l];
    }
}

#if defined(__clang__)
#define LANES_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LANES_UNROLL _Pragma("GCC unroll 10")
#endif
#define LANES_INLINE __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_WIDER 1

#define LANES_TARGET __attribute__((target("avx2")))
#define LANES_NAME(name) name##_avx2
#define LANES 4
#define LANES_ABREAST 2
#define LANES_V __m256i
#define LANES_SET(x) _mm256_set1_epi64x((long long)(x))
#define LANES_COUNT _mm256_set_epi64x(3, 2, 1, 0)
#define LANES_ADD _mm256_add_epi64
#define LANES_MUL _mm256_mul_epu32
#define LANES_HIGH(x) _mm256_shuffle_epi32(x, 0xf5)
#define LANES_XOR3(x, y, z) _mm256_xor_si256(x, _mm256_xor_si256(y, z))

__attribute__((target("avx2")))
static inline __m256i lanes_pair_avx2(__m256i p, __m256i c, __m256i k)
{
    const __m256i low = _mm256_blend_epi32(_mm256_xor_si256(c, k),
                                           _mm256_setzero_si256(), 0xaa);

    return _mm256_xor_si256(_mm256_shuffle_epi32(p, 0xb1), low);
}
#define LANES_PAIR lanes_pair_avx2

/* Words 0 and 1, and words 2 and 3, of four blocks become four whole blocks. */
__attribute__((target("avx2")))
static inline void lanes_store_avx2(uint32_t *out, __m256i xy, __m256i zw)
{
    const __m256i even = _mm256_unpacklo_epi64(xy, zw);    /* blocks 0, 2     */
    const __m256i odd = _mm256_unpackhi_epi64(xy, zw);     /* blocks 1, 3     */
    __m256i *to = (__m256i *)(void *)out;

    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}
#define LANES_STORE lanes_store_avx2
#include "random/philox_lanes.h"

#define TARGET_AVX512 "avx512f,avx512bw,avx512dq,avx512vl"
#define LANES_TARGET __attribute__((target(TARGET_AVX512)))
#define LANES_NAME(name) name##_avx512
#define LANES 8
#define LANES_ABREAST 4
#define LANES_V __m512i
#define LANES_SET(x) _mm512_set1_epi64((long long)(x))
#define LANES_COUNT _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)
#define LANES_ADD _mm512_add_epi64
#define LANES_MUL _mm512_mul_epu32
#define LANES_HIGH(x) _mm512_shuffle_epi32(x, 0xf5)
#define LANES_XOR3(x, y, z) _mm512_ternarylogic_epi64(x, y, z, 0x96)

__attribute__((target(TARGET_AVX512)))
static inline __m512i lanes_pair_avx512(__m512i p, __m512i c, __m512i k)
{
    return _mm512_mask_ternarylogic_epi32(_mm512_shuffle_epi32(p, 0xb1),
                                          0x5555, c, k, 0x96);
}
#define LANES_PAIR lanes_pair_avx512

__attribute__((target(TARGET_AVX512)))
static inline void lanes_store_avx512(uint32_t *out, __m512i xy, __m512i zw)
{
    const __m512i low = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    const __m512i high = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);

    _mm512_storeu_si512(out, _mm512_permutex2var_epi64(xy, low, zw));
    _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(xy, high, zw));
}
#define LANES_STORE lanes_store_avx512
#include "random/philox_lanes.h"
#endif

/* Narrowest first.  `group` blocks are computed at a time. */
static const struct {
    const char *name;
    philox_blocks_f *blocks;
    size_t group;
} widths[] = {
    { "plain", blocks_plain, PLAIN_LANES },
#ifdef HAVE_WIDER
    { "avx2", blocks_avx2, 8 },
    { "avx512", blocks_avx512, MOST_ABREAST },
#endif
};

int dtn_random_widths(void)
{
#ifdef HAVE_WIDER
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 3;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 2;
#endif
    return 1;
}

const char *dtn_random_width_name(int width)
{
    return width < dtn_random_widths() ? widths[width].name : NULL;
}

/* --------------------------------------------------------------- blocks --- */

static struct philox_run philox_run(uint64_t seed, const struct dtn_counter *at)
{
    struct philox_run run = {
        { (uint32_t)at->counter, (uint32_t)(at->counter >> 32),
          (uint32_t)at->stream, (uint32_t)(at->stream >> 32) },
        at->along_stream ? 2 : 0, { { 0 } }
    };

    for (uint32_t r = 0; r < PHILOX_ROUNDS; r++) {
        run.key[r][0] = (uint32_t)seed + r * PHILOX_W0;
        run.key[r][1] = (uint32_t)(seed >> 32) + r * PHILOX_W1;
    }
    return run;
}

/* Fewer blocks than a group: compute them singly, or use a part of a group. */
static void philox_rest(int width, struct philox_run *run, size_t nblocks,
                        uint32_t *out)
{
    uint32_t group[4 * MOST_ABREAST];

    if (nblocks > 3) {
        widths[width].blocks(run, widths[width].group, group);
        memcpy(out, group, nblocks * 16);
        return;
    }
    for (size_t i = 0; i < nblocks; i++)
        philox_one(run, (uint32_t)i, out + 4 * i);
}

/* Advance by `n` blocks: add to the word that counts, and carry to the next. */
static void philox_move(struct philox_run *run, size_t n)
{
    uint32_t *word = &run->word[run->moving];

    *word += (uint32_t)n;
    word[1] += n > 0 && *word == 0;
}

void dtn_philox(int width, uint64_t seed, const struct dtn_counter *at,
                size_t nblocks, uint32_t *out)
{
    struct philox_run run = philox_run(seed, at);
    size_t now, rest;

    for (; nblocks > 0; nblocks -= now, out += 4 * now) {
        now = UINT64_C(0x100000000) - run.word[run.moving];
        now = now < nblocks ? now : nblocks;       /* then the next one up   */
        rest = now % widths[width].group;
        if (now > rest)
            widths[width].blocks(&run, now - rest, out);
        philox_move(&run, now - rest);
        philox_rest(width, &run, rest, out + 4 * (now - rest));
        philox_move(&run, rest);
    }
}
