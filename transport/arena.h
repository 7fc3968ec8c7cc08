/* arena.h - the memory of a rank that peers can access */
#ifndef DTN_TRANSPORT_ARENA_H
#define DTN_TRANSPORT_ARENA_H

#include "transport/backing.h"
#include "transport/extents.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* One range of addresses for each rank, as large as the host's RAM.  All memory
 * that peers access is allocated in it.  Only pages that were written take
 * memory.
 */
struct dtn_arena {
    struct dtn_backing backing;   /* the memory                               */
    struct dtn_extents extents;   /* which parts of it are in use             */
};

/* An arena that was not opened; fini() does nothing with it. */
#define DTN_ARENA_NONE ((struct dtn_arena){ .backing = { .fd = -1 } })

/* Open an arena of `size` bytes of the host's memory; peers can map it if
 * `shared`.   Errors: ESYS, ENOMEM, with the remedy
 */
int dtn_arena_init(struct dtn_arena *arena, size_t size, bool shared,
                   struct dtensor_error *err);
void dtn_arena_fini(struct dtn_arena *arena);

/* The same in any memory.  The arena owns *backing, and closes it on failure.
 * Errors: ENOMEM
 */
int dtn_arena_init_on(struct dtn_arena *arena, struct dtn_backing *backing,
                      struct dtensor_error *err);

/* Allocate `size` bytes, aligned to 64 bytes, from 64 KiB on to a page.  Their
 * content is unspecified.  NULL: the arena is full.
 */
void *dtn_arena_alloc(struct dtn_arena *arena, size_t size);

/* Free a block, or NULL.  From 32 MiB on its pages go back to the system. */
void dtn_arena_free(struct dtn_arena *arena, void *mem);

/* Mark the block at `mem` as one that the program has. */
void dtn_arena_lend(struct dtn_arena *arena, void *mem);

/* Free the block at `mem` if it is marked so.  False: it is no such block. */
bool dtn_arena_return(struct dtn_arena *arena, void *mem);

/* The block that contains [mem, mem + size) of the arena; if no block does,
 * these bytes themselves.
 */
struct dtn_block {
    unsigned char *mem;           /* begin                                    */
    size_t size;                  /* bytes                                    */
};
struct dtn_block dtn_arena_block(const struct dtn_arena *arena,
                                 const void *mem, size_t size);

/* Is [mem, mem + size) in the arena? */
bool dtn_arena_contains(const struct dtn_arena *arena, const void *mem,
                        size_t size);

#endif
