/* arena.c - the memory of a rank that peers can access
 *
 * Each rank has one range of addresses, in which it allocates all memory that
 * peers read or write.  The extents (extents.c) tell which parts of the range
 * are in use.  The backing (for the host's memory backing.c) is the memory.
 * This file turns offsets of the extents to addresses of the backing.
 */
#include "transport/arena.h"
#include "base/error.h"
#include "transport/backing.h"
#include "transport/extents.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

int dtn_arena_init(struct dtn_arena *arena, size_t size, bool shared,
                   struct dtensor_error *err)
{
    struct dtn_backing backing;
    int rc;

    if (size == 0 || size > SIZE_MAX / 4)
        return dtn_fail(err, DTENSOR_EINVAL, "arena: size %zu is out of range",
                        size);
    rc = dtn_backing_open_host(&backing, size, shared, err);
    return rc < 0 ? rc : dtn_arena_init_on(arena, &backing, err);
}

int dtn_arena_init_on(struct dtn_arena *arena, struct dtn_backing *backing,
                      struct dtensor_error *err)
{
    struct dtn_extents extents;

    if (!dtn_extents_init(&extents, backing->size, backing->page_bytes)) {
        backing->ops->close(backing);
        return dtn_fail_nomem(err, "arena", sizeof *extents.list);
    }
    *arena = (struct dtn_arena){ *backing, extents };
    return 0;
}

void dtn_arena_fini(struct dtn_arena *arena)
{
    if (!arena->backing.base)
        return;
    arena->backing.ops->close(&arena->backing);
    dtn_extents_fini(&arena->extents);
    *arena = DTN_ARENA_NONE;
}

/* --------------------------------------------------------------- blocks --- */

static size_t arena_offset(const struct dtn_arena *arena, const void *mem)
{
    return (size_t)((const unsigned char *)mem - arena->backing.base);
}

void *dtn_arena_alloc(struct dtn_arena *arena, size_t size)
{
    struct dtn_backing *backing = &arena->backing;
    const struct dtn_extent *block = dtn_extents_alloc(&arena->extents, size);

    if (!block)
        return NULL;
    if (backing->ops->touch(backing, block->offset, block->size))
        return backing->base + block->offset;
    dtn_extents_free(&arena->extents, block->offset);
    return NULL;
}

void dtn_arena_free(struct dtn_arena *arena, void *mem)
{
    struct dtn_backing *backing = &arena->backing;
    size_t offset, size;

    if (!mem)
        return;
    offset = arena_offset(arena, mem);
    size = dtn_extents_free(&arena->extents, offset);
    backing->ops->release(backing, offset, size);
}

/* The block that begins at `mem`, or NULL. */
static struct dtn_extent *arena_begins(const struct dtn_arena *arena,
                                       const void *mem)
{
    struct dtn_extent *e;

    if (!dtn_arena_contains(arena, mem, 1))
        return NULL;
    e = dtn_extents_at(&arena->extents, arena_offset(arena, mem));
    return e->used && e->offset == arena_offset(arena, mem) ? e : NULL;
}

void dtn_arena_lend(struct dtn_arena *arena, void *mem)
{
    arena_begins(arena, mem)->lent = true;
}

bool dtn_arena_return(struct dtn_arena *arena, void *mem)
{
    const struct dtn_extent *e = arena_begins(arena, mem);

    if (!e || !e->lent)
        return false;
    dtn_arena_free(arena, mem);
    return true;
}

struct dtn_block dtn_arena_block(const struct dtn_arena *arena,
                                 const void *mem, size_t size)
{
    unsigned char *base = arena->backing.base;
    const size_t offset = arena_offset(arena, mem);
    const struct dtn_extent *e = dtn_extents_at(&arena->extents, offset);

    if (!e->used || size > e->size - (offset - e->offset))
        return (struct dtn_block){ base + offset, size };
    return (struct dtn_block){ base + e->offset, e->size };
}

bool dtn_arena_contains(const struct dtn_arena *arena, const void *mem,
                        size_t size)
{
    const struct dtn_backing *backing = &arena->backing;
    const uintptr_t at = (uintptr_t)mem, base = (uintptr_t)backing->base;

    return base != 0 && at >= base && at - base <= backing->size &&
           size <= backing->size - (at - base);
}
