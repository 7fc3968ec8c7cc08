/* extents.h - the books of an arena: which parts of a range are in use */
#ifndef DTN_TRANSPORT_EXTENTS_H
#define DTN_TRANSPORT_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>

/* A part of the range, in use or free. */
struct dtn_extent {
    size_t offset;                /* bytes from the beginning of the range     */
    size_t size;                  /* bytes                                     */
    bool used;
    bool lent;                    /* used, and given to the program            */
};

/* A range [0, size) of offsets.  What memory they stand for is not known here. */
struct dtn_extents {
    size_t size;                  /* bytes of the range                        */
    size_t page_bytes;            /* alignment of large blocks                 */
    struct dtn_extent *list;      /* sorted by offset, covering everything     */
    int n;                        /* extents in the list                       */
    int capacity;                 /* extents that the list has room for        */
    size_t used_bytes;            /* in all used extents                       */
};

/* All free.  False: not enough memory. */
bool dtn_extents_init(struct dtn_extents *extents, size_t size,
                      size_t page_bytes);
void dtn_extents_fini(struct dtn_extents *extents);

/* Take the first free place for `size` bytes, 64-byte aligned (page-aligned from
 * 64 KiB on).  NULL: there is none, or the list cannot grow.  The result is valid
 * until the next call.
 */
const struct dtn_extent *dtn_extents_alloc(struct dtn_extents *extents,
                                           size_t size);

/* Free the block that begins at `offset`; returns its size. */
size_t dtn_extents_free(struct dtn_extents *extents, size_t offset);

/* The extent that `offset`, which lies in the range, belongs to.  Valid until
 * the next alloc or free.
 */
struct dtn_extent *dtn_extents_at(const struct dtn_extents *extents,
                                  size_t offset);

/* The largest block that dtn_extents_alloc() could give. */
size_t dtn_extents_largest(const struct dtn_extents *extents);

#endif
