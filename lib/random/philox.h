/* philox.h - blocks of four random words */
#ifndef DTN_RANDOM_PHILOX_H
#define DTN_RANDOM_PHILOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first of some blocks.  The counter moves along; with along_stream the
 * counter stays and the stream does.
 */
struct dtn_blocks {
    uint64_t counter;
    uint64_t stream;
    bool along_stream;
};

/* Write `nblocks` blocks, four words each, under the key `seed`. */
void dtn_philox(int width, uint64_t seed, const struct dtn_blocks *at,
                size_t nblocks, uint32_t *out);

/* Vector widths of this CPU, by number, narrowest first: how many there are,
 * and a name.  Every width gives the same bits.
 */
int dtn_random_widths(void);
const char *dtn_random_width_name(int width);

#endif
