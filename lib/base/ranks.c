/* ranks.c - lists of ranks: made, compared, searched
 *
 * 4 5 6 7 becomes first 4, step 1.  6 1 4 3 stays an array.  One rank has step
 * 1, so that a list has one form only.
 */
#include "base/ranks.h"

#include <string.h>

struct dtn_ranks dtn_ranks_of(const int list[], int n)
{
    struct dtn_ranks even = { n, n > 0 ? list[0] : 0,
                              n > 1 ? list[1] - list[0] : 1, NULL };

    for (int i = 2; i < n; i++)
        if (list[i] - list[i - 1] != even.step)
            return (struct dtn_ranks){ n, 0, 0, list };
    return even;
}

bool dtn_ranks_equal(const struct dtn_ranks *a, const struct dtn_ranks *b)
{
    return a->n == b->n && a->first == b->first && a->step == b->step
        && !a->list == !b->list
        && (!a->list
            || memcmp(a->list, b->list, (size_t)a->n * sizeof *a->list) == 0);
}

int dtn_ranks_find(const struct dtn_ranks *ranks, int rank)
{
    const int away = rank - ranks->first;
    int i = 0;

    if (!ranks->list)
        return ranks->step != 0 && away % ranks->step == 0
               && away / ranks->step >= 0 && away / ranks->step < ranks->n
             ? away / ranks->step : -1;
    while (i < ranks->n && ranks->list[i] != rank)
        i++;
    return i < ranks->n ? i : -1;
}
