/* channels.h - find the channel from a part to a position */
#ifndef DTN_SCHED_PLAY_CHANNELS_H
#define DTN_SCHED_PLAY_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

/* A hash table from (part, position) to a number.  Begins as { 0 }. */
struct dtn_channels {
    uint64_t *key;                /* [slots] part and position, + 1; 0: free  */
    uint32_t *number;             /* [slots]                                  */
    int slots, used;              /* a power of two, and how many are taken   */
};

/* Where the number of this pair is kept; it is `fresh` for a new pair.  NULL:
 * out of memory.
 */
uint32_t *dtn_channels_find(struct dtn_channels *channels, int part,
                            int position, uint32_t fresh);
void dtn_channels_fini(struct dtn_channels *channels);

#endif
