/* extents.c - which parts of a range are in use
 *
 * A sorted array of extents, used or free, covers the range without a gap.
 * Two free extents are never neighbours.  1000 blocks make at most 2001
 * extents, and a binary search finds a block in 11 steps.
 *
 * Extents have offsets, and are not stored in the memory that they describe.
 * So they also work for memory that the CPU cannot access, and peers cannot
 * damage them.
 */
#include "transport/extents.h"
#include "base/array.h"
#include "base/compiler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define EXTENTS_PAGED_BYTES ((size_t)64 << 10)    /* page-aligned from here   */

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

bool dtn_extents_init(struct dtn_extents *extents, size_t size,
                      size_t page_bytes)
{
    struct dtn_extents made = { .size = size, .page_bytes = page_bytes };

    if (!dtn_array_reserve(&made.list, &made.capacity, 64, sizeof *made.list))
        return false;
    made.list[0] = (struct dtn_extent){ .size = size };
    made.n = 1;
    *extents = made;
    return true;
}

void dtn_extents_fini(struct dtn_extents *extents)
{
    free(extents->list);
    *extents = (struct dtn_extents){ 0 };
}

/* ------------------------------------------------------------- the list --- */

static void extents_insert(struct dtn_extents *extents, int at,
                           struct dtn_extent extent)
{
    memmove(&extents->list[at + 1], &extents->list[at],
            (size_t)(extents->n - at) * sizeof extent);
    extents->list[at] = extent;
    extents->n++;
}

/* Merge extent at + 1 with extent `at`, if both are free. */
static void extents_merge(struct dtn_extents *extents, int at)
{
    struct dtn_extent *e = &extents->list[at];

    if (at < 0 || at + 1 >= extents->n || e[0].used || e[1].used)
        return;
    e[0].size += e[1].size;
    memmove(&e[1], &e[2], (size_t)(extents->n - at - 2) * sizeof *e);
    extents->n--;
}

/* The index of the extent that contains `offset`. */
static int extents_find(const struct dtn_extents *extents, size_t offset)
{
    int low = 0, high = extents->n - 1;

    while (low < high) {
        int middle = low + (high - low + 1) / 2;

        if (extents->list[middle].offset <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

struct dtn_extent *dtn_extents_at(const struct dtn_extents *extents,
                                  size_t offset)
{
    return &extents->list[extents_find(extents, offset)];
}

/* --------------------------------------------------------------- blocks --- */

/* Take [offset, offset + size) from the free extent `at`; the rest on both
 * sides stays free.  Returns the block.
 */
static const struct dtn_extent *extents_carve(struct dtn_extents *extents,
                                              int at, size_t offset,
                                              size_t size)
{
    const struct dtn_extent whole = extents->list[at];
    const size_t before = offset - whole.offset;
    const size_t after = whole.size - before - size;

    extents->list[at] = (struct dtn_extent){ offset, size, .used = true };
    if (after > 0)
        extents_insert(extents, at + 1,
                       (struct dtn_extent){ .offset = offset + size,
                                            .size = after });
    if (before > 0)
        extents_insert(extents, at++,
                       (struct dtn_extent){ .offset = whole.offset,
                                            .size = before });
    extents->used_bytes += size;
    return &extents->list[at];
}

/* The bytes of an aligned block in this extent, and its offset. */
static size_t extent_usable(const struct dtn_extent *e, size_t align,
                            size_t *offsetp)
{
    const size_t offset = round_up(e->offset, align);
    const size_t skip = offset - e->offset;

    *offsetp = offset;
    return e->used || skip > e->size ? 0 : e->size - skip;
}

const struct dtn_extent *dtn_extents_alloc(struct dtn_extents *extents,
                                           size_t size)
{
    const size_t align = size >= EXTENTS_PAGED_BYTES ? extents->page_bytes
                                                     : DTN_CACHE_LINE;
    size_t offset;

    if (size > extents->size ||
        !dtn_array_reserve(&extents->list, &extents->capacity, extents->n + 2,
                           sizeof *extents->list))
        return NULL;
    size = round_up(size > 0 ? size : 1, align);
    for (int i = 0; i < extents->n; i++)
        if (size <= extent_usable(&extents->list[i], align, &offset))
            return extents_carve(extents, i, offset, size);
    return NULL;
}

size_t dtn_extents_free(struct dtn_extents *extents, size_t offset)
{
    const int at = extents_find(extents, offset);
    struct dtn_extent *e = &extents->list[at];
    const size_t size = e->size;

    assert(e->used && e->offset == offset);
    e->used = e->lent = false;
    extents->used_bytes -= size;
    extents_merge(extents, at);
    extents_merge(extents, at - 1);
    return size;
}

size_t dtn_extents_largest(const struct dtn_extents *extents)
{
    size_t largest = 0, usable, offset;

    for (int i = 0; i < extents->n; i++) {
        usable = extent_usable(&extents->list[i], extents->page_bytes,
                               &offset);
        largest = usable > largest ? usable : largest;
    }
    return largest;
}
