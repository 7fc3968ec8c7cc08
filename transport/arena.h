/* arena.h - memory that peers reach */
#ifndef DTN_TRANSPORT_ARENA_H
#define DTN_TRANSPORT_ARENA_H

#include "transport/backing.h"
#include "transport/extents.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* One range of memory for each rank, in which all memory that peers reach is
 * allocated: address space for all of the host's RAM, pages only where touched.
 */
struct dtn_arena {
    struct dtn_backing backing;   /* the memory                                */
    struct dtn_extents extents;   /* which parts of it are in use              */
};

/* An arena that was not opened: fini() of it is a no-op. */
#define DTN_ARENA_NONE ((struct dtn_arena){ .backing = { .fd = -1 } })

/* The host's memory, by dtn_backing_open_host().  Errors: ESYS, ENOMEM, with the
 * remedy.
 */
int dtn_arena_init(struct dtn_arena *arena, size_t size, bool shared,
                   struct dtensor_error *err);
void dtn_arena_fini(struct dtn_arena *arena);

/* An arena in any memory: *backing is the arena's from now on, closed on failure.
 * Errors: ENOMEM
 */
int dtn_arena_init_on(struct dtn_arena *arena, struct dtn_backing *backing,
                      struct dtensor_error *err);

/* `size` bytes, 64-byte aligned (page-aligned from 64 KiB on), content
 * unspecified; NULL when full.  free(NULL) is a no-op.  Blocks of 32 MiB and
 * more give their pages back when freed.
 */
void *dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void dtn_arena_free(struct dtn_arena *arena, void *mem);

/* Note that the block at `mem` was given to the program; free it, if it is such
 * a block: false, and nothing is done, of any other pointer.
 */
void dtn_arena_lend(struct dtn_arena *arena, void *mem);
bool dtn_arena_return(struct dtn_arena *arena, void *mem);

/* The block that [mem, mem+size), which lies in the arena, is of; itself, when it
 * is not of one.
 */
struct dtn_block {
    unsigned char *mem;
    size_t size;
};
struct dtn_block dtn_arena_block(const struct dtn_arena *arena,
                                 const void *mem, size_t size);

/* Does [mem, mem+size) lie in the arena? */
bool dtn_arena_contains(const struct dtn_arena *arena, const void *mem,
                        size_t size);

#endif
