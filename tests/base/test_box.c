/* test_box.c - copies of boxes against brute force
 *
 * Each element of a copied, filled or compared box is looked up by its index,
 * one at a time.
 *
 * Without this test, a box with merged or reversed dimensions could copy the
 * wrong elements, and every redistribute would be wrong with it.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "dtensor.h"
#include "tests/support/naive.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAY = 1 << 17, MOST = 1 << 13 };

static _Alignas(64) char src[ARRAY], dst[ARRAY], want[ARRAY];
static uint64_t seed;

/* Where element `i` of the box, row-major, lies on both sides. */
static void locate(const struct dtn_box *box, int64_t i, int64_t *at_dst,
                   int64_t *at_src)
{
    *at_dst = *at_src = 0;
    for (int d = box->ndim - 1; d >= 0; d--) {
        *at_dst += i % box->size[d] * box->dst_stride[d];
        *at_src += i % box->size[d] * box->src_stride[d];
        i /= box->size[d];
    }
}

/* Strides of an array whose dimensions lie in random order, with random gaps;
 * returns its length in elements.
 */
static int64_t lay_out(const struct dtn_box *box, int64_t stride[], bool tight)
{
    int order[DTENSOR_MAX_DIMS];
    int64_t length = 1;

    for (int d = 0; d < box->ndim; d++)
        order[d] = d;
    for (int d = box->ndim - 1; d > 0; d--) {
        const int e = rand_below(&seed, d + 1), swap = order[d];

        if (rand_below(&seed, 2))
            continue;
        order[d] = order[e];
        order[e] = swap;
    }
    for (int d = box->ndim - 1; d >= 0; d--) {
        if (!tight && rand_below(&seed, 3) == 0)
            length += rand_below(&seed, 3) * (length > 1 ? length : 1);
        stride[order[d]] = length;
        length *= box->size[order[d]] ? box->size[order[d]] : 1;
    }
    return length;
}

/* Small boxes of many dimensions, now and then larger ones of few, in arrays
 * of at most `most` elements.
 */
static struct dtn_box random_box(int64_t most)
{
    struct dtn_box box;
    int sizes;
    bool tight;

    do {
        box = (struct dtn_box){ .ndim = rand_below(&seed, 7) };
        tight = rand_below(&seed, 3) == 0;
        sizes = box.ndim < 3 ? 80 : box.ndim < 5 ? 8 : 4;
        for (int d = 0; d < box.ndim; d++)
            box.size[d] = rand_below(&seed, 20) ? 1 + rand_below(&seed, sizes)
                                                : 0;
    } while (lay_out(&box, box.dst_stride, tight) > most ||
             lay_out(&box, box.src_stride, tight) > most);
    return box;
}

static void print_box(const struct dtn_box *box)
{
    for (int d = 0; d < box->ndim; d++)
        note("  size %lld, dst stride %lld, src stride %lld",
             (long long)box->size[d], (long long)box->dst_stride[d],
             (long long)box->src_stride[d]);
}

static void test_copy(size_t bytes)
{
    const int turns = 3000;
    int wrong = 0;

    for (int turn = 0; turn < turns && wrong == 0; turn++) {
        const uint64_t at = seed;
        const struct dtn_box box = random_box(ARRAY / (int64_t)bytes);
        int64_t to, from;

        rand_bytes(&seed, want, 4096);
        memcpy(dst, want, sizeof dst);
        for (int64_t i = 0; i < dtn_box_count(&box); i++) {
            locate(&box, i, &to, &from);
            memcpy(want + to * (int64_t)bytes, src + from * (int64_t)bytes,
                   bytes);
        }
        dtn_box_copy(&box, bytes, dst, src);
        if (memcmp(dst, want, sizeof dst) == 0)
            continue;
        wrong++;
        note("TEST_SEED=%llu %zu bytes", (unsigned long long)at, bytes);
        print_box(&box);
    }
    ok(wrong == 0, "%d boxes of %zu-byte elements are copied, gaps untouched",
       turns, bytes);
}

/* dst by elements, each its own naive_reduce(). */
static void reduce_slowly(const struct dtn_box *box, enum dtensor_dtype dtype,
                          enum dtensor_redop op)
{
    const int64_t size = (int64_t)dtensor_dtype_size(dtype);
    const void *both[2];
    int64_t to, from;

    for (int64_t i = 0; i < dtn_box_count(box); i++) {
        locate(box, i, &to, &from);
        both[0] = want + to * size;
        both[1] = src + from * size;
        naive_reduce(dtype, op, want + to * size, both, 2, 1);
    }
}

static void test_reduce(enum dtensor_dtype dtype)
{
    const int turns = 700;
    int wrong = 0;

    for (int turn = 0; turn < turns && wrong == 0; turn++) {
        const uint64_t at = seed;
        const struct dtn_box box = random_box(MOST);
        struct dtn_reduction how;
        enum dtensor_redop op;

        do
            op = (enum dtensor_redop)rand_below(&seed, DTENSOR_NREDOPS);
        while (!dtn_redop_ok(op, dtype));
        how = dtn_reduction(dtype, op, 1);
        rand_bytes(&seed, want, MOST * dtensor_dtype_size(dtype));
        for (size_t i = 0; dtype == DTENSOR_BOOL && i < MOST; i++)
            want[i] &= 1, src[i] &= 1;
        memcpy(dst, want, sizeof dst);
        reduce_slowly(&box, dtype, op);
        dtn_box_fold(&box, &how, 0, true, dst, src);
        if (memcmp(dst, want, sizeof dst) == 0)
            continue;
        wrong++;
        note("TEST_SEED=%llu %s", (unsigned long long)at,
             dtensor_redop_name(op));
        print_box(&box);
    }
    ok(wrong == 0, "%d boxes of %s are reduced, gaps untouched", turns,
       dtensor_dtype_name(dtype));
}

/* ----------------------------------------------------------- coalesce --- */

struct pair {
    int64_t dst, src;
};

static int pair_compare(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return (x->dst > y->dst) - (x->dst < y->dst);
}

static void list_pairs(const struct dtn_box *box, struct pair pairs[])
{
    const int64_t count = dtn_box_count(box);

    for (int64_t i = 0; i < count; i++)
        locate(box, i, &pairs[i].dst, &pairs[i].src);
    qsort(pairs, (size_t)count, sizeof pairs[0], pair_compare);
}

static void test_coalesce_random(void)
{
    static struct pair before[MOST], after[MOST];
    const int turns = 3000;
    int wrong = 0;

    for (int turn = 0; turn < turns; turn++) {
        const struct dtn_box box = random_box(MOST);
        const size_t count = (size_t)dtn_box_count(&box);
        struct dtn_box merged = box, again;

        dtn_box_coalesce(&merged);
        again = merged;
        dtn_box_coalesce(&again);
        wrong += dtn_box_count(&merged) != (int64_t)count ||
                 merged.ndim > (box.ndim > 0 ? box.ndim : 1) ||
                 again.ndim != merged.ndim;
        if (wrong)
            break;
        list_pairs(&box, before);
        list_pairs(&merged, after);
        wrong += memcmp(before, after, count * sizeof before[0]) != 0;
    }
    ok(wrong == 0, "merging %d boxes keeps their elements, and is done once",
       turns);
}

static void test_coalesce_known(void)
{
    static const struct {
        const char *claim;
        struct dtn_box box;
        int ndim;
        int64_t last;
    } cases[] = {
        { "one element has no dimensions",
          { 2, { 1, 1 }, { 9, 5 }, { 7, 3 } }, 0, 0 },
        { "a whole array is one run",
          { 3, { 2, 3, 4 }, { 12, 4, 1 }, { 12, 4, 1 } }, 1, 24 },
        { "so it is with dimensions in another order",
          { 3, { 4, 3, 2 }, { 1, 4, 12 }, { 1, 4, 12 } }, 1, 24 },
        { "rows with a gap on one side are not merged",
          { 2, { 3, 4 }, { 4, 1 }, { 5, 1 } }, 2, 4 },
        { "but whole rows below them are",
          { 3, { 3, 4, 5 }, { 20, 5, 1 }, { 40, 5, 1 } }, 2, 20 },
        { "a dimension of one between them does not part them",
          { 3, { 3, 1, 4 }, { 4, 77, 1 }, { 4, 99, 1 } }, 1, 12 },
        { "an empty box is one dimension of size 0",
          { 3, { 3, 0, 4 }, { 4, 4, 1 }, { 4, 4, 1 } }, 1, 0 },
        { "a source read again and again stays apart",
          { 2, { 3, 4 }, { 4, 1 }, { 0, 1 } }, 2, 4 },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        struct dtn_box box = cases[i].box;

        dtn_box_coalesce(&box);
        ok(box.ndim == cases[i].ndim &&
           (box.ndim == 0 || box.size[box.ndim - 1] == cases[i].last),
           "%s", cases[i].claim);
    }
}

static void test_broadcast(void)
{
    static const struct dtn_box box = { 2, { 3, 4 }, { 4, 1 }, { 0, 1 } };
    static const int32_t row[] = { 1, 2, 3, 4 };
    int32_t out[12];
    bool right = true;

    dtn_box_copy(&box, 4, out, row);
    for (int i = 0; i < 12; i++)
        right &= out[i] == row[i % 4];
    ok(right, "a source stride of 0 repeats a row");
}

static void test_nothing(void)
{
    const struct dtn_box none = { 2, { 0, 4 }, { 4, 1 }, { 4, 1 } };
    const struct dtn_box one = { .ndim = 0 };
    const struct dtn_reduction how = dtn_reduction(DTENSOR_I32, DTENSOR_SUM, 1);
    int32_t a = 1;
    const int32_t b = 2;

    dtn_box_copy(&none, 4, NULL, NULL);
    dtn_box_fold(&none, &how, 0, true, NULL, NULL);
    ok(dtn_box_count(&none) == 0, "an empty box touches nothing");
    dtn_box_fold(&one, &how, 0, true, &a, &b);
    ok(a == 3, "a box of no dimensions reduces one element");
    dtn_box_copy(&one, 4, &a, &b);
    ok(a == 2 && dtn_box_count(&one) == 1, "and copies one");
}

int main(void)
{
    static const size_t bytes[] = { 1, 2, 4, 8, 16, 3, 12 };

    seed = rand_seed(8191);
    note("TEST_SEED=%llu", (unsigned long long)seed);
    rand_bytes(&seed, src, sizeof src);
    test_coalesce_known();
    test_coalesce_random();
    for (size_t i = 0; i < DTN_COUNT(bytes); i++)
        test_copy(bytes[i]);
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        test_reduce((enum dtensor_dtype)t);
    test_broadcast();
    test_nothing();
    return done();
}
