/* crossings.h - which levels of trees and butterflies lead to other hosts */
#ifndef DTN_SCHED_CROSSINGS_H
#define DTN_SCHED_CROSSINGS_H

#include <stdbool.h>

/* Levels that lead to other hosts, and the others, on the path of n ranks with
 * the most of the first.
 */
struct dtn_levels {
    int beyond, inside;           /* so many                                  */
};

/* Edges of a pair of binary trees (emit/trees.h) between a host and others. */
struct dtn_tree_edges {
    int one_way;                  /* to its ranks, or from them, at most      */
    int both;                     /* to them and from them, at most           */
};

/* Of n ranks.  Where all hosts have as many, a power of two, levels follow from
 * their number; else they are counted.
 */
struct dtn_crossings {
    struct dtn_tree_edges trees;  /* from rank 0, of the first 8 hosts if all */
                                  /* have as many ranks; 0: not counted       */
    bool counted;                 /* what follows is known                    */
    struct dtn_levels tree;       /* of a binomial tree from rank 0           */
    struct dtn_levels pair;       /* of a pair of binary trees                */
    int copied;                   /* chunks that its ranks copy to children   */
                                  /* on their hosts before they send on       */
    int edges;                    /* of it that leave one host, at most       */
    int fan, fans;                /* messages to other hosts on one path of   */
                                  /* it, with those that its ranks, or all    */
                                  /* ranks of their hosts, send at once       */
    int turns;                    /* messages to one of its ranks from other  */
                                  /* hosts come in turn: so many in all       */
    struct dtn_levels shifts;     /* of shifts by 1, 2, 4, ...                */
    double shifters;              /* ranks of a host that such a shift leads  */
                                  /* to another, in the mean of those levels  */
    struct dtn_levels skips;      /* of those by n / 2, n / 4, ... rounded up */
    struct dtn_levels rounds;     /* of recursive doubling, with the guests   */
    int queued;                   /* messages of those levels, if each is     */
                                  /* counted once for all ranks of its host   */
                                  /* that send at the same time               */
    int ready;                    /* levels and READY between hosts, if the   */
                                  /* levels wait for READY                   */
};

/* host[n] is the host of each rank, hosts of 0 .. nhosts - 1 with at most
 * `locals` ranks.  Not counted: out of memory.
 */
struct dtn_crossings dtn_crossings_count(const int host[], int n, int nhosts,
                                         int locals);

#endif
