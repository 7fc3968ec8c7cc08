/* channels.c - find the channel from a part to a position
 *
 * A table with open addressing: 131,072 ranks that talk to 34 others each have
 * 4.5 million channels, and find one in 30 to 100 ns.
 */
#include "sched/play/channels.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { SLOTS_FIRST = 1024 };

/* The slot of a key, or the free one where it belongs. */
static int slot_of(const uint64_t key[], int slots, uint64_t wanted)
{
    uint64_t hash = wanted * 0x9e3779b97f4a7c15u;
    int slot = (int)((hash >> 32) & (uint64_t)(slots - 1));

    while (key[slot] && key[slot] != wanted)
        slot = (slot + 1) & (slots - 1);
    return slot;
}

static bool channels_grow(struct dtn_channels *channels)
{
    int slots = channels->slots ? 2 * channels->slots : SLOTS_FIRST;
    uint64_t *key = calloc((size_t)slots, sizeof *key);
    uint32_t *number = calloc((size_t)slots, sizeof *number);

    if (!key || !number) {
        free(key);
        free(number);
        return false;
    }
    for (int s = 0; s < channels->slots; s++) {
        int slot;

        if (!channels->key[s])
            continue;
        slot = slot_of(key, slots, channels->key[s]);
        key[slot] = channels->key[s];
        number[slot] = channels->number[s];
    }
    dtn_channels_fini(channels);
    channels->key = key;
    channels->number = number;
    channels->slots = slots;
    return true;
}

uint32_t *dtn_channels_find(struct dtn_channels *channels, int part,
                            int position, uint32_t fresh)
{
    const uint64_t wanted = ((uint64_t)part << 32 | (uint64_t)position) + 1;
    int slot;

    if (channels->used >= channels->slots / 2 && !channels_grow(channels))
        return NULL;
    slot = slot_of(channels->key, channels->slots, wanted);
    if (!channels->key[slot]) {
        channels->key[slot] = wanted;
        channels->number[slot] = fresh;
        channels->used++;
    }
    return &channels->number[slot];
}

void dtn_channels_fini(struct dtn_channels *channels)
{
    free(channels->key);
    free(channels->number);
}
