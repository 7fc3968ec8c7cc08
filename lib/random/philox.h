/* philox.h - blocks of four random words */
#ifndef DTN_RANDOM_PHILOX_H
#define DTN_RANDOM_PHILOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The Philox counter of the first of several blocks.  From block to block the
 * lower half advances, or with along_stream the upper half.
 */
struct dtn_counter {
    uint64_t counter;             /* lower half                               */
    uint64_t stream;              /* upper half: CUDA's subsequence           */
    bool along_stream;            /* which half advances                      */
};

/* Write `nblocks` blocks, four words each, under the key `seed`. */
void dtn_philox(int width, uint64_t seed, const struct dtn_counter *at,
                size_t nblocks, uint32_t *out);

/* Vector widths of this CPU, by number, narrowest first: how many there are,
 * and a name.  Every width gives the same bits.
 */
int dtn_random_widths(void);
const char *dtn_random_width_name(int width);

#endif
