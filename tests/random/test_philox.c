/* test_philox.c - Philox blocks: known answers, equal at all vector widths,
 * any block at once
 *
 * The published test vectors, and every width against the scalar code.
 *
 * Without this test, random numbers could depend on the CPU of a rank.
 */
#include "base/compiler.h"
#include "random/philox.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#if __has_include(<Random123/philox.h>)
#include <Random123/philox.h>
#define HAVE_RANDOM123 1
#endif

enum { MOST = 200 };

struct answer {
    uint64_t seed, stream, counter;
    uint32_t word[4];
};

/* The first three are those of the paper's own library. */
static const struct answer answers[] = {
    { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { UINT64_MAX, UINT64_MAX, UINT64_MAX,
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { 0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88,
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    { 1234, 0, 0, { 0x2090b348, 0xda7cf0ab, 0x4401906f, 0xcbca470e } },
    { 1234, 0, 1, { 0x9eeede35, 0x1cbe137c, 0xfa277093, 0x147edd50 } },
    { 1234, 1, 0, { 0xd115a128, 0x52fc7c75, 0xc7f33f17, 0x0f1539db } },
    { 42, 0, 0, { 0x9ceaf053, 0x77f5493b, 0x12bf50ad, 0x5742b3d7 } },
    { 0, 0, 1, { 0xf8e4cca4, 0x5cb200db, 0xb1a574eb, 0x097eff67 } },
    { (UINT64_C(1) << 63) + 42, 0, 0,
      { 0xb9c266f2, 0x85047551, 0x146bc9e5, 0xb388e7b8 } },
};

static void known_answers(void)
{
    uint32_t word[4];

    for (size_t i = 0; i < DTN_COUNT(answers); i++) {
        const struct answer *a = &answers[i];
        struct dtn_counter at = { a->counter, a->stream, false };

        dtn_philox(0, a->seed, &at, 1, word);
        ok(memcmp(word, a->word, sizeof word) == 0,
           "seed %" PRIx64 ", stream %" PRIx64 ", counter %" PRIx64, a->seed,
           a->stream, a->counter);
    }
}

/* A place of which every other word is one that is about to carry. */
static struct dtn_counter random_place(uint64_t *state)
{
    struct dtn_counter at = { rand_next(state), rand_next(state),
                             rand_below(state, 2) != 0 };
    uint64_t *moving = at.along_stream ? &at.stream : &at.counter;

    if (rand_below(state, 2))
        *moving |= 0xffffffff - (uint64_t)rand_below(state, MOST);
    if (rand_below(state, 4) == 0)
        *moving |= UINT64_C(0xffffffff) << 32;
    return at;
}

static struct dtn_counter place_after(struct dtn_counter at, uint64_t n)
{
    *(at.along_stream ? &at.stream : &at.counter) += n;
    return at;
}

/* Any number of blocks from anywhere is those blocks one by one. */
static int disagreements(int width, uint64_t *state)
{
    static uint32_t many[4 * MOST + 1];
    uint32_t one[4];
    int bad = 0;

    for (int i = 0; i < 500; i++) {
        const struct dtn_counter first = random_place(state);
        const uint64_t seed = rand_next(state);
        const size_t n = (size_t)rand_below(state, MOST + 1);

        many[4 * n] = 0xdeadbeef;
        dtn_philox(width, seed, &first, n, many);
        bad += many[4 * n] != 0xdeadbeef;
        for (size_t b = 0; b < n; b++) {
            const struct dtn_counter at = place_after(first, b);

            dtn_philox(0, seed, &at, 1, one);
            bad += memcmp(one, many + 4 * b, sizeof one) != 0;
        }
    }
    return bad;
}

static void random123(uint64_t *state)
{
#ifdef HAVE_RANDOM123
    uint32_t word[4];
    int bad = 0;

    for (int i = 0; i < 100000; i++) {
        const struct dtn_counter at = { rand_next(state), rand_next(state),
                                       false };
        const uint64_t seed = rand_next(state);
        const philox4x32_ctr_t ctr = { { (uint32_t)at.counter,
            (uint32_t)(at.counter >> 32), (uint32_t)at.stream,
            (uint32_t)(at.stream >> 32) } };
        const philox4x32_key_t key = { { (uint32_t)seed,
                                         (uint32_t)(seed >> 32) } };
        const philox4x32_ctr_t want = philox4x32(ctr, key);

        dtn_philox(0, seed, &at, 1, word);
        bad += memcmp(word, want.v, sizeof word) != 0;
    }
    ok(bad == 0, "100000 blocks are those of Random123");
#else
    skip("blocks are those of Random123", "librandom123-dev is not installed");
#endif
}

int main(void)
{
    uint64_t state = rand_seed(31), seed = state;

    known_answers();
    for (int w = 0; w < dtn_random_widths(); w++)
        ok(disagreements(w, &state) == 0, "%s: any run of blocks is its blocks "
           "one by one (seed %" PRIu64 ")", dtn_random_width_name(w), seed);
    random123(&state);
    return done();
}
