/* crossings.c - which levels of trees and butterflies lead to other hosts
 *
 * Example: 8 ranks on host 0 and 4 on host 1.  A binomial tree of 12 ranks goes
 * from 0 to 8, the only edge to another host, and from there in two levels to
 * 11.  In recursive doubling 1, 3, 5, 7 are guests of 0, 2, 4, 6; of the other
 * eight each has its peer on the other host in one round of three, and four of
 * each host do.  Of shifts by 1, 2, 4 and 8 the path 11, 0, 2, 6, 10 leads to
 * another host twice, and 7, 8, 10, 2, 10 three times.  Of the 22 edges of two
 * trees four lead to the other host, three of them from host 0.
 */
#include "sched/crossings.h"
#include "sched/emit/trees.h"
#include "sched/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What is counted of each rank or host. */
struct counter {
    const int *host;              /* [n]                                      */
    int n, nhosts;
    int *now, *before, *more, *older;   /* [n], which is no less than nhosts  */
};

/* ----------------------------------------------------------------- tree --- */

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int largest(const int number[], int n)
{
    int most = 0;

    for (int i = 0; i < n; i++)
        most = larger(most, number[i]);
    return most;
}

/* The children of a rank on its host, down to this one. */
static int near_turn(const struct counter *c, int parent, int child)
{
    int turn = 0;

    for (int d = child - parent; parent + d < c->n && (parent & d) == 0; d *= 2)
        turn += c->host[parent + d] == c->host[parent];
    return turn;
}

/* The parent of a rank is the rank without its lowest bit.  Inside a host the
 * CPU moves the bytes for one child after another, first for the largest
 * subtree.
 */
static struct dtn_levels tree_levels(const struct counter *c)
{
    struct dtn_levels most = { 0, 0 };

    for (int r = 1; r < c->n; r++) {
        struct dtn_levels path = { 0, 0 };

        for (int at = r, parent; at > 0; at = parent) {
            parent = at & (at - 1);
            if (c->host[at] != c->host[parent])
                path.beyond++;
            else
                path.inside += near_turn(c, parent, at);
        }
        if (path.beyond > most.beyond
            || (path.beyond == most.beyond && path.inside > most.inside))
            most = path;
    }
    return most;
}

/* Of c->now messages that a rank, or all ranks of a host, send to other hosts
 * at once, the last child has its own after all of them: the sum on a path, at
 * most.
 */
static int tree_fan(const struct counter *c, bool hosts)
{
    int *came = c->before;

    memset(c->now, 0, (size_t)c->n * sizeof c->now[0]);
    for (int r = 1; r < c->n; r++) {
        const int parent = r & (r - 1), from = c->host[parent];

        c->now[hosts ? from : parent] += from != c->host[r];
    }
    came[0] = 0;
    for (int r = 1; r < c->n; r++) {
        const int parent = r & (r - 1), from = c->host[parent];

        came[r] = came[parent] + (from == c->host[r] ? 0
                                  : c->now[hosts ? from : parent]);
    }
    return largest(came, c->n);
}

/* A rank has all its terms when those of other hosts have come, one after
 * another, the smallest subtrees first.
 */
static int tree_turns(const struct counter *c)
{
    for (int r = c->n - 1; r >= 0; r--) {
        c->now[r] = 0;
        for (int d = 1; r + d < c->n && (r & d) == 0; d *= 2) {
            const int child = c->now[r + d];

            c->now[r] = child > c->now[r] ? child : c->now[r];
            c->now[r] += c->host[r] != c->host[r + d];
        }
    }
    return c->now[0];
}

/* --------------------------------------------------------------- shifts --- */

/* All ranks send to the one so far behind them. */
static void shift_by(struct counter *c, int distance)
{
    int *swap = c->before;

    c->before = c->now;
    c->now = swap;
    for (int r = 0; r < c->n; r++) {
        const int from = (r - distance + c->n) % c->n;
        const int came = c->before[from] + (c->host[from] != c->host[r]);

        c->now[r] = came > c->before[r] ? came : c->before[r];
    }
}

static struct dtn_levels shift_levels(const struct counter *counter, bool skips)
{
    struct counter c = *counter;
    const int levels = dtn_levels_of(c.n);
    int most = 0;

    memset(c.now, 0, (size_t)c.n * sizeof c.now[0]);
    for (int k = 0; k < levels; k++) {
        const int rest = levels - k;

        shift_by(&c, skips ? (c.n + (1 << rest) - 1) >> rest : 1 << k);
    }
    for (int r = 0; r < c.n; r++)
        most = c.now[r] > most ? c.now[r] : most;
    return (struct dtn_levels){ most, levels - most };
}

/* Numbers below n that have this bit. */
static int with_bit(int n, int bit)
{
    const int rest = n % (2 * bit);

    return n / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
}

/* Ranks of a host that shifts by d = 1, 2, 4, ... lead to another, the sum of
 * the most of each.  Of the n blocks of an all-to-all those go by d whose
 * number has that bit: half, or fewer.
 */
static double shift_leavers(const struct counter *c)
{
    double sum = 0;

    for (int d = 1; d < c->n; d *= 2) {
        int most = 0;

        memset(c->now, 0, (size_t)c->nhosts * sizeof c->now[0]);
        for (int r = 0; r < c->n; r++) {
            const int here = c->host[r];

            if (here != c->host[(r + d) % c->n] && ++c->now[here] > most)
                most = c->now[here];
        }
        sum += most * 2.0 * with_bit(c->n, d) / c->n;
    }
    return sum;
}

/* ------------------------------------------------------------- doubling --- */

/* A rank by its number among those that are no guests. */
static int doubler(int number, int guests)
{
    return number < guests ? 2 * number : number + guests;
}

/* A rank has what its peer sends it: of c->now, the messages between hosts on
 * the path to each rank.  It has sent READY two rounds before (c->older), if
 * that is waited for.
 */
static int round_now(const struct counter *c, int r, int peer, bool ready)
{
    const int far = c->host[r] != c->host[peer];
    const int came = larger(c->now[r], c->now[peer] + far);

    return ready ? larger(came, c->older[r] + 2 * far) : came;
}

/* Two ranks exchange their sums.  c->before has the messages on the path
 * through the device of a host, with those of the c->more ranks of it that send
 * in this round.
 */
static void round_meet(const struct counter *c, int r, int peer, bool ready)
{
    const bool far = c->host[r] != c->host[peer];
    const int queue = far ? larger(c->more[c->host[r]], c->more[c->host[peer]])
                          : 0;
    const int mine = round_now(c, r, peer, ready);
    const int others = round_now(c, peer, r, ready);

    c->older[r] = c->now[r];
    c->older[peer] = c->now[peer];
    c->now[r] = mine;
    c->now[peer] = others;
    c->before[r] = c->before[peer] = larger(c->before[r], c->before[peer])
                                   + queue;
}

static void round_count(const struct counter *c, int doublers, int distance,
                        bool ready)
{
    const int guests = c->n - doublers;

    memset(c->more, 0, (size_t)c->nhosts * sizeof c->more[0]);
    for (int i = 0; i < doublers; i++) {
        const int here = c->host[doubler(i, guests)];

        c->more[here] += here != c->host[doubler(i ^ distance, guests)];
    }
    for (int i = 0; i < doublers; i++)
        if ((i & distance) == 0)
            round_meet(c, doubler(i, guests), doubler(i | distance, guests),
                       ready);
}

/* Does this rank have a guest, on another host? */
static bool guest_far(const struct counter *c, int r, int guests)
{
    return r % 2 == 0 && r < 2 * guests && c->host[r] != c->host[r + 1];
}

/* A guest hands in its term before, and takes the result after. */
static struct dtn_levels rounds_count(const struct counter *c, bool ready,
                                      int *queued)
{
    int doublers = 1, guests, most = 0;

    while (2 * doublers <= c->n)
        doublers *= 2;
    guests = c->n - doublers;
    for (int r = 0; r < c->n; r++) {
        c->older[r] = 0;
        c->before[r] = guest_far(c, r, guests);
        c->now[r] = c->before[r] * (ready ? 2 : 1);
    }
    for (int d = 1; d < doublers; d *= 2)
        round_count(c, doublers, d, ready);
    for (int r = 0; r < c->n; r++) {
        const bool far = guest_far(c, r, guests);

        most = larger(most, c->now[r] + far);
        *queued = larger(*queued, c->before[r] + far);
    }
    return (struct dtn_levels){ most, dtn_levels_of(doublers)
                                      + (guests > 0 ? 2 : 0) - most };
}

/* ------------------------------------------------------------ two trees --- */

/* Of equal hosts the first ones are like the others. */
#define EVEN_HOSTS 8

/* Edges between the first hosts and all others. */
static struct dtn_tree_edges trees_edges(const struct counter *c, int hosts)
{
    const size_t bytes = (size_t)c->nhosts * sizeof c->now[0];
    int *to = memset(c->now, 0, bytes), *from = memset(c->before, 0, bytes);
    struct dtn_tree_edges most = { 0, 0 };

    for (int i = 0; i < 2 * c->n; i++) {
        const int r = i / 2, here = c->host[r];
        struct dtn_tree tree;

        if (here >= hosts)
            continue;
        tree = dtn_tree_make(c->n, 0, r, i % 2);
        to[here] += tree.parent >= 0 && c->host[tree.parent] != here;
        for (int k = 0; k < tree.nchildren; k++)
            from[here] += c->host[tree.child[k]] != here;
    }
    for (int h = 0; h < hosts; h++) {
        const int more = to[h] > from[h] ? to[h] : from[h];

        most.one_way = more > most.one_way ? more : most.one_way;
        most.both = to[h] + from[h] > most.both ? to[h] + from[h] : most.both;
    }
    return most;
}

/* Of the chunks that a rank copies to children on its host, those that come no
 * later than what it sends to its child r.
 */
static int pair_copied(const struct counter *c, int rank, int r, int t)
{
    const struct dtn_tree tree = dtn_tree_make(c->n, 0, rank, t);
    int copied = 0;

    for (int k = 0; k < tree.nchildren; k++) {
        copied += c->host[tree.child[k]] == c->host[rank];
        if (tree.child[k] == r)
            break;
    }
    return copied;
}

/* Levels of tree t above a rank: c->now has those to other hosts, c->before
 * the others; -1: not known yet.  c->more has what is copied there.
 */
static void pair_above(const struct counter *c, int r, int t)
{
    const int parent = dtn_tree_parent(c->n, 0, r, t);

    if (c->now[r] >= 0)
        return;
    c->now[r] = c->before[r] = c->more[r] = 0;
    if (parent < 0)
        return;
    pair_above(c, parent, t);
    c->now[r] = c->now[parent] + (c->host[r] != c->host[parent]);
    c->before[r] = c->before[parent] + (c->host[r] == c->host[parent]);
    c->more[r] = c->more[parent] + pair_copied(c, parent, r, t);
}

static void pair_count(const struct counter *c, struct dtn_crossings *crossings)
{
    struct dtn_levels *most = &crossings->pair;

    for (int t = 0; t < 2; t++) {
        memset(c->now, -1, (size_t)c->n * sizeof c->now[0]);
        for (int r = 0; r < c->n; r++) {
            pair_above(c, r, t);
            if (c->now[r] < most->beyond || (c->now[r] == most->beyond
                                             && c->before[r] < most->inside))
                continue;
            if (c->now[r] > most->beyond || c->before[r] > most->inside
                || c->more[r] > crossings->copied)
                crossings->copied = c->more[r];
            *most = (struct dtn_levels){ c->now[r], c->before[r] };
        }
    }
}

/* ---------------------------------------------------------------- whole --- */

struct dtn_crossings dtn_crossings_count(const int host[], int n, int nhosts,
                                         int locals)
{
    const bool even = nhosts * locals == n;
    const bool follows = nhosts < 2
                      || (even && (locals & (locals - 1)) == 0);
    const size_t bytes = (size_t)n * sizeof host[0];
    struct counter c = { host, n, nhosts, malloc(bytes), malloc(bytes),
                         malloc(bytes), malloc(bytes) };
    const bool room = c.now && c.before && c.more && c.older;
    struct dtn_crossings crossings = { .counted = room && !follows };

    if (room)
        crossings.trees = trees_edges(&c, even && nhosts > EVEN_HOSTS
                                              ? EVEN_HOSTS : nhosts);
    if (crossings.counted) {
        crossings.tree = tree_levels(&c);
        pair_count(&c, &crossings);
        crossings.fan = tree_fan(&c, false);
        crossings.fans = tree_fan(&c, true);
        crossings.edges = largest(c.now, nhosts);
        crossings.turns = tree_turns(&c);
        crossings.shifts = shift_levels(&c, false);
        crossings.shifters = shift_leavers(&c)
                           / fmax(1, crossings.shifts.beyond);
        crossings.skips = shift_levels(&c, true);
        crossings.rounds = rounds_count(&c, false, &crossings.queued);
        crossings.ready = rounds_count(&c, true, &crossings.queued).beyond;
    }
    free(c.now);
    free(c.before);
    free(c.more);
    free(c.older);
    return crossings;
}
