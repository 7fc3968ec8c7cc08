/* test_sparse.c - a large array takes memory for what is written only
 *
 * Without this test, the state of every rank of a job of 131,072 could take
 * hundreds of MiB of each rank again.
 */
#include "base/sparse.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

enum { RANKS = 131072, TALKS = 24 };

struct entry { uint64_t word[13]; };

static bool all_zero(const struct entry *array, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        for (int w = 0; w < 13; w++)
            sum |= array[i].word[w];
    return sum == 0;
}

static void test_large(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = sizeof(struct entry);
    struct entry *array = dtn_sparse_new(RANKS, size);
    bool right = true;
    size_t resident;

    if (!array)
        return (void)ok(false, "there are addresses for %d entries", RANKS);
    ok(all_zero(array, RANKS), "%d entries of %zu bytes are 0", RANKS, size);
    resident = dtn_sparse_resident(array, RANKS, size);
    note("%zu bytes after reading", resident);
    for (int i = 0; i < TALKS; i++)
        array[(i * 5461 + 7) % RANKS].word[5] = (uint64_t)i + 1;
    for (int i = 0; i < TALKS; i++)
        right &= array[(i * 5461 + 7) % RANKS].word[5] == (uint64_t)i + 1;
    ok(right, "%d of them keep what is written", TALKS);
    dtn_sparse_free(array, RANKS, size);

    array = dtn_sparse_new(RANKS, size);
    for (int i = 0; i < TALKS; i++)
        array[(i * 5461 + 7) % RANKS].word[5] = 1;
    resident = dtn_sparse_resident(array, RANKS, size);
    ok(resident > 0 && resident <= 2 * TALKS * page, "they take %zu bytes of "
       "%zu", resident, RANKS * size);
    dtn_sparse_free(array, RANKS, size);
}

static void test_small(void)
{
    struct entry *array = dtn_sparse_new(3, sizeof *array);

    ok(array && all_zero(array, 3)
       && dtn_sparse_resident(array, 3, sizeof *array) == 3 * sizeof *array,
       "a small array is dense");
    dtn_sparse_free(array, 3, sizeof *array);
    array = dtn_sparse_new(0, sizeof *array);
    ok(array, "an array may be empty");
    dtn_sparse_free(array, 0, sizeof *array);
    dtn_sparse_free(NULL, RANKS, sizeof *array);
    ok(!dtn_sparse_new(SIZE_MAX / 2, sizeof *array), "too many are refused");
}

int main(void)
{
    test_large();
    test_small();
    return done();
}
