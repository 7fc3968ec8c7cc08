/* test_ranks.c - lists of ranks keep their order, in whichever form
 *
 * Random lists, half of them evenly spaced, are compared with their arrays.
 * Without this test, a mesh with a step of 2 or -1 could name other ranks than
 * it was given.
 */
#include "base/ranks.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WORLD = 64, LISTS = 20000 };

/* Some ranks of the world, none twice: evenly spaced, or in any order. */
static int list_make(uint64_t *state, int list[WORLD])
{
    const int n = 1 + rand_below(state, WORLD);
    const int step = 1 + rand_below(state, WORLD / n);
    const int first = rand_below(state, WORLD - (n - 1) * step);
    const bool turned = rand_below(state, 2);

    for (int i = 0; i < n; i++)
        list[turned ? n - 1 - i : i] = first + i * step;
    for (int swaps = rand_below(state, 2) * n; swaps > 0; swaps--) {
        const int a = rand_below(state, n), b = rand_below(state, n);
        const int rank = list[a];

        list[a] = list[b];
        list[b] = rank;
    }
    return n;
}

static bool list_even(const int list[], int n)
{
    bool even = true;

    for (int i = 2; i < n; i++)
        even = even && list[i] - list[i - 1] == list[1] - list[0];
    return even;
}

static bool found(const struct dtn_ranks *ranks, const int list[], int n)
{
    for (int rank = -1; rank <= WORLD; rank++) {
        int at = 0;

        while (at < n && list[at] != rank)
            at++;
        if (dtn_ranks_find(ranks, rank) != (at < n ? at : -1))
            return false;
    }
    return true;
}

int main(void)
{
    int before[WORLD], list[WORLD], nbefore = 0, even = 0, same = 0;
    bool kept = true, form = true, position = true, equal = true;
    struct dtn_ranks last = { 0 }, all = dtn_ranks_all(5);
    uint64_t state = 3;

    for (int i = 0; i < LISTS; i++) {
        const int n = list_make(&state, list);
        const struct dtn_ranks ranks = dtn_ranks_of(list, n);
        const bool alike = n == nbefore
            && memcmp(list, before, (size_t)n * sizeof *list) == 0;

        for (int p = 0; p < n; p++)
            kept = kept && dtn_ranks_at(&ranks, p) == list[p];
        form = form && ranks.n == n && !ranks.list == list_even(list, n);
        position = position && found(&ranks, list, n);
        equal = equal && dtn_ranks_equal(&ranks, &last) == alike;
        even += !ranks.list;
        same += alike;
        nbefore = n;
        memcpy(before, list, sizeof before);
        last = dtn_ranks_of(before, n);
    }
    ok(kept, "rank i of %d lists is that of the array", LISTS);
    ok(form && even > LISTS / 4 && even < LISTS, "%d are evenly spaced, and "
       "need no array", even);
    ok(position, "a rank is found where it is, and no other");
    ok(equal && same > 0, "two are equal if their arrays are: %d times", same);
    ok(dtn_ranks_at(&all, 0) == 0 && dtn_ranks_at(&all, 4) == 4
       && dtn_ranks_find(&all, 5) == -1, "all of 5 are 0 to 4");
    all = dtn_ranks_of(list, 0);
    ok(all.n == 0 && dtn_ranks_find(&all, 0) == -1, "of none, none is found");
    return done();
}
