/* permute.c - random permutations, element by element
 *
 * For up to 4096 elements the permutation is the sort order of as many random
 * keys of 64 bits.  For more elements it is a Feistel network.  An index is
 * split into two halves of b bits; in each of twelve rounds one half is xored
 * with a random function of the other.  This permutes 0 .. 4^b - 1.  A result
 * outside 0 .. n - 1 goes through the network again until it is inside.  An
 * element takes less than 4 passes on average, so every rank computes only its
 * own elements.  Example: for 10^12 elements 2b is 40, and 1.1 passes are
 * needed.
 */
#include "random/permute.h"
#include "base/error.h"
#include "random/philox.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

enum { PERMUTE_SORTED = 4096, PERMUTE_ROUNDS = 12 };

struct permute_key {
    uint64_t key;
    int64_t index;
};

static int permute_compare(const void *a, const void *b)
{
    const struct permute_key *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int permute_sort(struct dtn_permute *permute, struct dtensor_error *err)
{
    uint32_t word[4];
    const size_t n = (size_t)permute->n;
    struct permute_key *keys = malloc(n * sizeof *keys);

    permute->sorted = keys ? malloc(n * sizeof *permute->sorted) : NULL;
    if (!permute->sorted) {
        free(keys);
        return dtn_fail_nomem(err, "randperm", n * sizeof *keys);
    }
    for (size_t i = 0; i < n; i++) {
        const struct dtn_counter at = { permute->block, i, true };

        dtn_philox(0, permute->seed, &at, 1, word);
        keys[i] = (struct permute_key){
            (uint64_t)word[1] << 32 | word[0], (int64_t)i
        };
    }
    qsort(keys, n, sizeof keys[0], permute_compare);
    for (size_t i = 0; i < n; i++)
        permute->sorted[i] = keys[i].index;
    free(keys);
    return 0;
}

int dtn_permute_init(struct dtn_permute *permute, uint64_t seed,
                     int64_t offset, int64_t n, struct dtensor_error *err)
{
    *permute = (struct dtn_permute){
        .seed = seed, .block = (uint64_t)offset / 4, .n = n, .half_bits = 1
    };
    if (n > 0 && n <= PERMUTE_SORTED)
        return permute_sort(permute, err);
    while (permute->half_bits < 32 &&
           (uint64_t)n > UINT64_C(1) << 2 * permute->half_bits)
        permute->half_bits++;
    return 0;
}

void dtn_permute_fini(struct dtn_permute *permute)
{
    free(permute->sorted);
}

/* One pass through the network.  The stream is the round and the half. */
static uint64_t permute_pass(const struct dtn_permute *permute, uint64_t x)
{
    const int bits = permute->half_bits;
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    uint64_t left = x >> bits, right = x & mask, mixed;
    uint32_t word[4];

    for (uint64_t r = 0; r < PERMUTE_ROUNDS; r++) {
        const struct dtn_counter at = { permute->block, r << 32 | right, true };

        dtn_philox(0, permute->seed, &at, 1, word);
        mixed = left ^ (word[0] & mask);
        left = right;
        right = mixed;
    }
    return left << bits | right;
}

int64_t dtn_permute_at(const struct dtn_permute *permute, int64_t i)
{
    uint64_t x = (uint64_t)i;

    if (permute->sorted)
        return permute->sorted[i];
    do
        x = permute_pass(permute, x);
    while (x >= (uint64_t)permute->n);
    return (int64_t)x;
}
