/* units.h - what a weight says of a call: so many hops, messages, bytes */
#ifndef DTN_SCHED_UNITS_H
#define DTN_SCHED_UNITS_H

#include "sched/emitters.h"

#include <stdbool.h>

/* A call in the units of struct dtn_weight. */
struct dtn_units {
    int n;                        /* ranks                                    */
    double whole;                 /* bytes of the largest buffer              */
    double block;                 /* bytes of the part of one rank            */
    double chunk;                 /* bytes that are moved at once             */
    double chunks;                /* so many of them                          */
    double filled;                /* share of the blocks that are not empty   */
};

/* A part of what a weight says: with some of the peers, by one kind of link.
 * With 8 ranks on each of 4 hosts 24 of 31 peers are on other hosts, and 2 of 5
 * levels of a tree lead there.
 */
struct dtn_peers {
    int below, n;                 /* the peers beyond the first `below` ranks */
                                  /* of n; 1: all                             */
    bool constants;               /* with what does not grow with n           */
    double sharing;               /* ranks that send by one network device at */
                                  /* the same time; 0: inside a host          */
    const struct dtn_levels_part *counted;     /* its levels, if they do not  */
                                  /* follow from `below`; else NULL           */
};

/* Levels of a tree or a butterfly, and whether what is more if n is no power of
 * two is among them.
 */
struct dtn_levels_part {
    int levels;                   /* of the part                              */
    bool odd;                     /* with what not_power_of_two adds          */
    double waits;                 /* how much longer their bytes take, since  */
                                  /* they come in turn                        */
};

/* Levels of a tree or a butterfly of n ranks: log2 n, rounded up. */
static inline int dtn_levels_of(int n)
{
    int levels = 0;

    while (1 << levels < n)
        levels++;
    return levels;
}

/* Of n ranks a call whose largest buffer has `whole` bytes. */
struct dtn_units dtn_units_make(int n, double whole,
                                const struct dtn_weight *weight);

/* In how many pieces a message takes a port that messages for other ranks share
 * with it.
 */
double dtn_pieces(double bytes);

/* Bytes of a unit. */
double dtn_units_value(const struct dtn_units *units, enum dtn_unit unit);

/* A term over n ranks, or the part of it. */
double dtn_term_value(struct dtn_growth term, int n);
double dtn_term_part(struct dtn_growth term, const struct dtn_peers *part);

/* Bytes of an amount, or of a part of it. */
double dtn_amount_value(const struct dtn_amount *amount,
                        const struct dtn_units *units);
double dtn_amount_part(const struct dtn_amount *amount,
                       const struct dtn_units *units,
                       const struct dtn_peers *part);

/* More bytes that pass a port before the largest subtree of a tree can go on,
 * since a rank sends to all its children at once.  While a piece leaves it
 * posts to `posted` children.
 */
double dtn_fanned_part(const struct dtn_weight *weight,
                       const struct dtn_units *units,
                       const struct dtn_peers *part, double posted);

#endif
