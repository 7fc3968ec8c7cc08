/* verbs_memory.c - memory regions, registered once
 *
 * Registering pins pages and costs some 16 us and more; finding a region that
 * is there costs a comparison.  So a block of the arena is registered, all of it,
 * when a part of it is first named or sent from, and stays: a tensor that is
 * redistributed a thousand times is registered once, and so is memory of
 * dtensor_alloc() of which each call uses another part.  The arena keeps its
 * pages while a device knows them.  From 1024 regions on, the one used longest
 * ago goes first, but none that a peer may still have the name of.
 *
 * Every rail of the rank has its own key for the region.
 *
 * Memory from elsewhere is registered only when the user says so, since only
 * the user knows when it goes away: between dtensor_register() and
 * dtensor_unregister() it is a region that stays.
 */
#include "base/array.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "transport/verbs_keys.h"
#include "transport/verbs_memory.h"
#include "transport/verbs_rail.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool dtn_verbs_register(struct dtn_verbs_memory *memory, void *mem, size_t size,
                        struct ibv_mr *mr[DTN_MAX_RAILS])
{
    int why;

    for (int k = 0; k < memory->nrails; k++) {
        mr[k] = ibv_reg_mr(memory->rails[k].pd, mem, size,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (mr[k])
            continue;
        why = errno;
        memory->refused = &memory->rails[k];
        dtn_verbs_deregister(memory, mr);
        errno = why;
        return false;
    }
    return true;
}

void dtn_verbs_deregister(struct dtn_verbs_memory *memory,
                          struct ibv_mr *mr[DTN_MAX_RAILS])
{
    for (int k = 0; k < memory->nrails && mr[k]; k++) {
        ibv_dereg_mr(mr[k]);
        mr[k] = NULL;
    }
}

static bool region_holds(const struct dtn_verbs_region *region,
                         const unsigned char *mem, size_t size)
{
    return mem >= region->start
        && (size_t)(mem - region->start) <= region->size
        && size <= region->size - (size_t)(mem - region->start);
}

/* The first region that starts behind `mem`. */
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

static struct dtn_verbs_region *memory_find(struct dtn_verbs_memory *memory,
                                            const unsigned char *mem,
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

/* Room for one more. */
static bool memory_grow(struct dtn_verbs_memory *memory)
{
    if (memory->n >= DTN_VERBS_REGIONS)
        memory_drop_oldest(memory);
    return dtn_array_reserve(&memory->regions, &memory->capacity,
                             memory->n + 1, sizeof *memory->regions);
}

static struct dtn_verbs_region *memory_add(struct dtn_verbs_memory *memory,
                                           unsigned char *mem, size_t size)
{
    struct dtn_verbs_region region = { .start = mem, .size = size ? size : 1 };
    int i;

    if (!memory_grow(memory)) {
        errno = ENOMEM;
        return NULL;
    }
    if (!dtn_verbs_register(memory, region.start, region.size, region.mr))
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

/* The block it is of, or where all of that is refused, as no more than a part may
 * be locked, just what is asked for.
 */
static struct dtn_verbs_region *
memory_add_block(struct dtn_verbs_memory *memory, const unsigned char *mem,
                 size_t size)
{
    struct dtn_arena *arena = memory->arena;
    unsigned char *part = arena->backing.base + (mem - arena->backing.base);
    struct dtn_block block = dtn_arena_block(arena, mem, size);
    struct dtn_verbs_region *region = memory_add(memory, block.mem, block.size);

    return region || block.size == size ? region
         : memory_add(memory, part, size);
}

struct dtn_verbs_region *dtn_verbs_memory_get(struct dtn_verbs_memory *memory,
                                              const void *mem, size_t size)
{
    struct dtn_verbs_region *region = memory_find(memory, mem, size);

    if (region) {
        memory->hits++;
    } else if (!dtn_arena_contains(memory->arena, mem, size)) {
        errno = EFAULT;
        return NULL;
    } else {
        region = memory_add_block(memory, mem, size);
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

/* The region with that key, if it holds all of the range. */
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
    return memory_keyed(memory, mem, size, key) != NULL;
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
