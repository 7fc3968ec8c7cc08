/* units.c - what a weight says of a call: so many hops, messages, bytes
 *
 * An amount is a multiple of the largest buffer, of a block and of a chunk, and
 * each multiple grows with the ranks.  Example: OTHERS(2) blocks of 1 MiB over
 * 4 ranks are 2 * 3 * 256 KiB.
 */
#include "sched/units.h"
#include "base/compiler.h"
#include "sched/emitters.h"

#include <math.h>
#include <stdbool.h>

/* Of the levels of a tree or butterfly, those inside hosts of `below` ranks: no
 * level is if hosts begin at other places than its pairs.
 */
static int levels_inside(int below)
{
    const int levels = dtn_levels_of(below);

    return 1 << levels == below ? levels : 0;
}

double dtn_term_part(struct dtn_growth term, const struct dtn_peers *part)
{
    const int all = dtn_levels_of(part->n);
    const bool odd = part->counted ? part->counted->odd
                                   : part->constants && 1 << all != part->n;
    const int levels = part->counted ? part->counted->levels
                                     : all - levels_inside(part->below);

    return (part->constants ? term.constant : 0)
         + term.log2n * levels
         + term.per_peer * (part->n - part->below)
         + (odd ? term.not_power_of_two : 0);
}

double dtn_term_value(struct dtn_growth term, int n)
{
    return dtn_term_part(term, &(struct dtn_peers){ 1, n, true, 0, NULL });
}

/* More pieces change times by less than 1 % in most calls; a simulation takes
 * longer.
 */
double dtn_pieces(double bytes)
{
    return fmin(16, fmax(1, floor(bytes / 32768)));
}

double dtn_units_value(const struct dtn_units *units, enum dtn_unit unit)
{
    return unit == DTN_UNIT_WHOLE ? units->whole
         : unit == DTN_UNIT_HALF ? units->whole / 2
         : unit == DTN_UNIT_BLOCK ? units->block : 0;
}

double dtn_amount_part(const struct dtn_amount *amount,
                       const struct dtn_units *units,
                       const struct dtn_peers *part)
{
    return dtn_term_part(amount->whole, part) * units->whole
         + dtn_term_part(amount->block, part) * units->block
         + dtn_term_part(amount->chunk, part) * units->chunk;
}

double dtn_amount_value(const struct dtn_amount *amount,
                        const struct dtn_units *units)
{
    return dtn_amount_part(amount, units,
                           &(struct dtn_peers){ 1, units->n, true, 0, NULL });
}

/* A rank sends to k children at once, each message in p pieces: the first child
 * has its message when k (p - 1) + 1 pieces have left, instead of p, and has
 * k - 1 children.  While its first piece leaves, only some of the others are
 * posted, so its second piece waits for no more than those.
 */
double dtn_fanned_part(const struct dtn_weight *weight,
                       const struct dtn_units *units,
                       const struct dtn_peers *part, double posted)
{
    const struct dtn_growth level = { .log2n = 1 };
    const double levels = dtn_term_part(level, part);
    const double pieces = dtn_pieces(units->whole);
    const double all = levels * (levels - 1) / 2;
    const double most = fmax(0, levels - 1 - posted);
    const double second = all - most * (most + 1) / 2;

    return pieces < 2 ? 0 : weight->fanned.log2n * units->whole
         * ((pieces - 2) * all + second) / pieces;
}

/* Trees cut a half into chunks of at most so many bytes, rings into chunks of
 * at least so many.
 */
struct dtn_units dtn_units_make(int n, double whole,
                                const struct dtn_weight *weight)
{
    struct dtn_units units = { .n = n, .whole = whole, .block = whole / n,
        .chunks = 1,
        .filled = fmin(1, fmax(1, ceil(whole / DTN_CACHE_LINE)) / n) };
    const bool trees = weight->chunk.of == DTN_UNIT_HALF;
    const double bytes = (double)weight->chunk.bytes;
    double cut = dtn_units_value(&units, weight->chunk.of);

    if (trees && n == 2)
        cut = whole;              /* two ranks have one tree                  */
    while (units.chunks < weight->chunk.most
           && (trees ? cut > units.chunks * bytes
                     : cut >= (units.chunks + 1) * bytes))
        units.chunks++;
    units.chunk = cut / units.chunks;
    return units;
}
