/* ranks.h - a list of ranks: a first one and a step, or an array
 *
 * The ranks of a mesh dimension are mostly evenly spaced: with dp=2, tp=4 the
 * ranks of "dp" are 1 and 5, of "tp" 4 5 6 7.  Such a list takes 24 bytes, no
 * matter how many ranks it has; an array of 131,072 takes 512 KiB.
 */
#ifndef DTN_BASE_RANKS_H
#define DTN_BASE_RANKS_H

#include <stdbool.h>
#include <stddef.h>

struct dtn_ranks {
    int n;                        /* how many                                 */
    int first, step;              /* rank i is first + i * step if there is   */
                                  /* no list                                  */
    const int *list;              /* [n], or NULL                             */
};

static inline int dtn_ranks_at(const struct dtn_ranks *ranks, int i)
{
    return ranks->list ? ranks->list[i] : ranks->first + i * ranks->step;
}

/* All ranks of a world: 0 to n - 1. */
static inline struct dtn_ranks dtn_ranks_all(int n)
{
    return (struct dtn_ranks){ n, 0, 1, NULL };
}

/* The n ranks of an array.  If they are evenly spaced, the result does not use
 * the array; otherwise it is the list.  So equal lists have equal forms.
 */
struct dtn_ranks dtn_ranks_of(const int list[], int n);

/* Are they the same ranks in the same order?  Both are made by _of(). */
bool dtn_ranks_equal(const struct dtn_ranks *a, const struct dtn_ranks *b);

/* The position of a rank, or -1.  A list is looked through. */
int dtn_ranks_find(const struct dtn_ranks *ranks, int rank);

#endif
