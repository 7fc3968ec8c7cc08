/* memory.c - memory regions, registered once
 *
 * Registering a range pins its pages and costs 16 us or more; finding a region
 * costs a binary search.  So a whole block of the arena is registered when a
 * part of it is first named or sent from, and it stays registered.  A tensor
 * that is redistributed a thousand times is registered once; so is memory of
 * dtensor_alloc() of which each call uses another part.  From then on the arena
 * keeps its pages (backing.pinned).  At most 1024 regions are registered: a new
 * one replaces the least recently used one that no peer has a name of.
 *
 * Each rail has its own key for a region.  The arena of a device is treated in
 * the same way, but no CPU accesses its regions.
 *
 * Other memory is registered only between dtensor_register() and
 * dtensor_unregister(), because only the user knows when it is freed.
 */
#include "base/array.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/exporter.h"
#include "transport/transport.h"
#include "transport/verbs/keys.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/register.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool region_holds(const struct dtn_verbs_region *region,
                         const unsigned char *mem, size_t size)
{
    return mem >= region->start
        && (size_t)(mem - region->start) <= region->size
        && size <= region->size - (size_t)(mem - region->start);
}

/* Index of the first region that starts after `mem`. */
static int region_after(const struct dtn_verbs_memory *memory,
                        const unsigned char *mem)
{
    int low = 0, high = memory->n;

    while (low < high) {
        int middle = (low + high) / 2;

        if (memory->regions[middle].start <= mem)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct dtn_verbs_region *
memory_find(const struct dtn_verbs_memory *memory, const unsigned char *mem,
            size_t size)
{
    for (int i = region_after(memory, mem) - 1; i >= 0; i--)
        if (region_holds(&memory->regions[i], mem, size))
            return &memory->regions[i];
    return NULL;
}

static void memory_drop(struct dtn_verbs_memory *memory, int i)
{
    dtn_verbs_deregister(memory, memory->regions[i].mr);
    dtn_verbs_keys_drop(&memory->keys, memory->regions[i].row);
    memory->bytes -= memory->regions[i].size;
    memory->n--;
    memmove(&memory->regions[i], &memory->regions[i + 1],
            (size_t)(memory->n - i) * sizeof memory->regions[0]);
}

static void memory_drop_oldest(struct dtn_verbs_memory *memory)
{
    int oldest = -1;

    for (int i = 0; i < memory->n; i++)
        if (memory->regions[i].used != DTN_VERBS_ADOPTED
            && memory->regions[i].names == 0
            && (oldest < 0
                || memory->regions[i].used < memory->regions[oldest].used))
            oldest = i;
    if (oldest >= 0)
        memory_drop(memory, oldest);
}

/* Make room for one more region. */
static bool memory_grow(struct dtn_verbs_memory *memory)
{
    if (memory->n >= DTN_VERBS_REGIONS)
        memory_drop_oldest(memory);
    return dtn_array_reserve(&memory->regions, &memory->capacity,
                             memory->n + 1, sizeof *memory->regions);
}

bool dtn_verbs_memory_on_device(const struct dtn_verbs_memory *memory,
                                const void *mem, size_t size)
{
    const struct dtn_verbs_region *region;

    if (!memory->exporter || dtn_arena_contains(memory->arena, mem, size))
        return false;
    region = memory_find(memory, mem, size);
    return region ? region->on_device
         : memory->exporter->holds(memory->exporter, mem, size);
}

const struct dtn_verbs_region *
dtn_verbs_memory_of_device(const struct dtn_verbs_memory *memory)
{
    for (int i = 0; i < memory->n; i++)
        if (memory->regions[i].on_device)
            return &memory->regions[i];
    return NULL;
}

static bool region_register(struct dtn_verbs_memory *memory,
                            struct dtn_verbs_region *region)
{
    region->on_device = dtn_verbs_memory_on_device(memory, region->start,
                                                   region->size);
    return region->on_device
         ? dtn_verbs_register_device(memory, region->start, region->size,
                                     region->mr)
         : dtn_verbs_register(memory, region->start, region->size, region->mr);
}

static struct dtn_verbs_region *memory_add(struct dtn_verbs_memory *memory,
                                           unsigned char *mem, size_t size)
{
    struct dtn_verbs_region region = { .start = mem, .size = size ? size : 1 };
    int i;

    if (!memory_grow(memory)) {
        memory->refused = memory->rails;
        errno = ENOMEM;
        return NULL;
    }
    if (!region_register(memory, &region))
        return NULL;
    region.row = dtn_verbs_keys_take(&memory->keys, region.mr);
    memory->registered++;
    memory->bytes += region.size;
    i = region_after(memory, region.start);
    memmove(&memory->regions[i + 1], &memory->regions[i],
            (size_t)(memory->n - i) * sizeof region);
    memory->regions[i] = region;
    memory->n++;
    return &memory->regions[i];
}

/* Register the block that the range is part of.  If that is refused, because so
 * much memory may not be locked, only the range.
 */
static struct dtn_verbs_region *
memory_add_block(struct dtn_verbs_memory *memory, struct dtn_arena *arena,
                 const unsigned char *mem, size_t size)
{
    unsigned char *part = arena->backing.base + (mem - arena->backing.base);
    struct dtn_block block = dtn_arena_block(arena, mem, size);
    struct dtn_verbs_region *region = memory_add(memory, block.mem, block.size);

    if (!region && block.size != size)
        region = memory_add(memory, part, size);
    if (region)
        arena->backing.pinned = true;
    return region;
}

/* The arena that the range lies in, or NULL. */
static struct dtn_arena *memory_arena(const struct dtn_verbs_memory *memory,
                                      const void *mem, size_t size)
{
    const struct dtn_exporter *exporter = memory->exporter;

    if (dtn_arena_contains(memory->arena, mem, size))
        return memory->arena;
    return exporter && dtn_arena_contains(exporter->arena, mem, size)
         ? exporter->arena : NULL;
}

struct dtn_verbs_region *dtn_verbs_memory_get(struct dtn_verbs_memory *memory,
                                              const void *mem, size_t size)
{
    struct dtn_verbs_region *region = memory_find(memory, mem, size);

    if (region) {
        memory->hits++;
    } else {
        struct dtn_arena *arena = memory_arena(memory, mem, size);

        if (arena != memory->arena && memory->device_refused)
            arena = NULL;
        errno = EFAULT;
        region = arena ? memory_add_block(memory, arena, mem, size) : NULL;
    }
    if (region && region->used != DTN_VERBS_ADOPTED)
        region->used = ++memory->clock;
    return region;
}

struct dtn_verbs_region *dtn_verbs_memory_adopt(struct dtn_verbs_memory *memory,
                                                void *mem, size_t size)
{
    struct dtn_verbs_region *region = memory_add(memory, mem, size);

    if (region)
        region->used = DTN_VERBS_ADOPTED;
    return region;
}

void dtn_verbs_memory_disown(struct dtn_verbs_memory *memory, void *mem,
                             size_t size)
{
    for (int i = region_after(memory, mem) - 1; i >= 0; i--)
        if (memory->regions[i].start == mem && memory->regions[i].size == size
            && memory->regions[i].used == DTN_VERBS_ADOPTED) {
            memory_drop(memory, i);
            return;
        }
}

/* The region with that key that holds all of the range, or NULL. */
static struct dtn_verbs_region *
memory_keyed(const struct dtn_verbs_memory *memory, const void *mem,
             size_t size, uint32_t key)
{
    for (int i = region_after(memory, mem) - 1; i >= 0; i--)
        if (memory->regions[i].mr[0]->rkey == key
            && region_holds(&memory->regions[i], mem, size))
            return &memory->regions[i];
    return NULL;
}

bool dtn_verbs_memory_open(const struct dtn_verbs_memory *memory,
                           const void *mem, size_t size, uint32_t key)
{
    const struct dtn_verbs_region *region = memory_keyed(memory, mem, size,
                                                         key);

    return region && !region->on_device;
}

void dtn_verbs_memory_forget(struct dtn_verbs_memory *memory,
                             struct dtn_remote name)
{
    struct dtn_verbs_region *region = memory_keyed(
        memory, (void *)(uintptr_t)name.addr, 0, (uint32_t)name.key);

    if (region && region->names > 0)
        region->names--;
}

void dtn_verbs_memory_fini(struct dtn_verbs_memory *memory)
{
    while (memory->n > 0)
        memory_drop(memory, memory->n - 1);
    free(memory->regions);
    memory->regions = NULL;
    memory->capacity = 0;
}
