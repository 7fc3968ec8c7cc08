/* test_order.c - elements in order: NaN, zeros of both signs, extreme integers
 *
 * Without this test, a sort could put a NaN between numbers, or compare
 * integers of 64 bits as doubles.
 */
#include "math/order.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6 };

/* Where the elements of a row of N come from, from the first-th on. */
static void places(enum dtensor_dtype dtype, const void *row, bool down,
                   bool nan, int64_t first, int64_t count, int64_t at[N])
{
    const struct dtn_array in = dtn_array_packed((void *)(uintptr_t)row, dtype,
                                                 1, (const int64_t[]){ N });
    const struct dtn_array index = dtn_array_packed(at, DTENSOR_I64, 1, &count);
    const struct dtn_order order = { .index = &index, .down = down,
                                     .first = first, .nan = nan };
    void *work = malloc(dtn_order_workspace(&in, 0));

    dtn_order(&order, &in, work);
    free(work);
}

static void expect(const char *what, const int64_t at[N], const int64_t want[N])
{
    ok(memcmp(at, want, N * sizeof at[0]) == 0, "%s: %d %d %d %d %d %d", what,
       (int)at[0], (int)at[1], (int)at[2], (int)at[3], (int)at[4], (int)at[5]);
}

int main(void)
{
    const double x[N] = { 1, NAN, -0.0, -INFINITY, 0, INFINITY };
    const int64_t whole[N] = { INT64_MAX - 1, INT64_MIN, INT64_MAX, 0, -1, 0 };
    const uint64_t bits[N] = { UINT64_MAX, 1, UINT64_MAX - 1, 0, 5, 5 };
    const unsigned char bools[N] = { 1, 0, 1, 0, 0, 1 };
    int64_t at[N];

    places(DTENSOR_F64, x, false, false, 0, N, at);
    expect("zeros are equal, a NaN is the largest", at,
           (const int64_t[]){ 3, 2, 4, 0, 5, 1 });
    places(DTENSOR_F64, x, true, false, 0, N, at);
    expect("the largest first, equal ones in their order", at,
           (const int64_t[]){ 1, 5, 0, 2, 4, 3 });
    places(DTENSOR_I64, whole, false, false, 0, N, at);
    expect("integers are compared exactly", at,
           (const int64_t[]){ 1, 4, 3, 5, 0, 2 });
    places(DTENSOR_U64, bits, false, false, 0, N, at);
    expect("and those without sign", at, (const int64_t[]){ 3, 1, 4, 5, 2, 0 });
    places(DTENSOR_BOOL, bools, false, false, 0, N, at);
    expect("bool", at, (const int64_t[]){ 1, 3, 4, 0, 2, 5 });
    places(DTENSOR_F64, x, false, true, 2, 1, at);
    ok(at[0] == 1, "a NaN is taken if that is asked for");
    places(DTENSOR_I64, whole, false, true, 2, 1, at);
    ok(at[0] == 3, "else the place that is named");
    return done();
}
