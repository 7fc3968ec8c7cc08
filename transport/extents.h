/* extents.h - which parts of a range are in use */
#ifndef DTN_TRANSPORT_EXTENTS_H
#define DTN_TRANSPORT_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>

/* A part of the range, in use or free. */
struct dtn_extent {
    size_t offset;                /* bytes from the start of the range        */
    size_t size;                  /* bytes                                    */
    bool used;                    /* false: free                              */
    bool lent;                    /* the program has it                       */
};

/* A range [0, size) of offsets.  It does not know the memory that they mean. */
struct dtn_extents {
    size_t size;                  /* bytes of the range                       */
    size_t page_bytes;            /* alignment of large blocks                */
    struct dtn_extent *list;      /* [n], sorted by offset, without gaps      */
    int n;                        /* extents in the list                      */
    int capacity;                 /* of the list, extents                     */
    size_t used_bytes;            /* bytes of all used extents                */
};

/* A range that is free.  False: not enough memory. */
bool dtn_extents_init(struct dtn_extents *extents, size_t size,
                      size_t page_bytes);
void dtn_extents_fini(struct dtn_extents *extents);

/* Take the first free place for `size` bytes, aligned to 64 bytes, from 64 KiB
 * on to a page.  NULL: there is none, or not enough memory for the list.  The
 * result is valid until the next call.
 */
const struct dtn_extent *dtn_extents_alloc(struct dtn_extents *extents,
                                           size_t size);

/* Free the block that begins at `offset`; returns its size. */
size_t dtn_extents_free(struct dtn_extents *extents, size_t offset);

/* The extent that contains this offset of the range.  Valid until the next
 * alloc or free.
 */
struct dtn_extent *dtn_extents_at(const struct dtn_extents *extents,
                                  size_t offset);

/* The size of the largest block that dtn_extents_alloc() can take. */
size_t dtn_extents_largest(const struct dtn_extents *extents);

#endif
