/* test_array.c - arrays that grow
 *
 * Every growing array of the library makes its room here.
 *
 * Without this test, an array that forgets its elements when it moves, or
 * takes a size that overflows for a small one, would first show as a wrong
 * plan or a crash far away.
 */
#include "base/array.h"
#include "tests/support/tap.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

struct wide {
    char bytes[SIZE_MAX / 16];
};

static void test_append(void)
{
    int *array = NULL, capacity = 0, moves = 0, good = 1;

    for (int n = 0; n < 1000; n++) {
        const int before = capacity;

        good = good && dtn_array_reserve(&array, &capacity, n + 1,
                                         sizeof *array);
        moves += capacity != before;
        array[n] = n;
    }
    for (int n = 0; n < 1000; n++)
        good = good && array[n] == n;
    ok(good && capacity >= 1000, "1000 appended elements are all there");
    ok(moves == 8, "they moved 8 times (%d)", moves);
    ok(dtn_array_reserve(&array, &capacity, 5000, sizeof *array) &&
       capacity == 5000 && array[999] == 999, "room for many at once");
    free(array);
}

/* The address sanitizer ends a program that asks for so much, unless told. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void test_too_much(void)
{
    int *array = NULL, *before, capacity = 0;
    struct wide *wide = NULL;
    int none = 0;

    dtn_array_reserve(&array, &capacity, 3, sizeof *array);
    before = array;
    ok(!dtn_array_reserve(&array, &capacity, INT_MAX, SIZE_MAX / 4) &&
       array == before && capacity == 8,
       "a size that overflows is refused, and nothing has changed");
    ok(!dtn_array_reserve(&wide, &none, 1, sizeof *wide) && !wide && none == 0,
       "... also in an empty array");
    free(array);
}

int main(void)
{
    test_append();
    test_too_much();
    return done();
}
