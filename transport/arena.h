/* arena.h - memory that peers reach */
#ifndef DTN_TRANSPORT_ARENA_H
#define DTN_TRANSPORT_ARENA_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_extent;

/* One range of memory for each rank, in which all memory that peers reach is
 * allocated: address space for all of the host's RAM, pages only where touched.
 * A sealed memfd that peers map (no name anywhere, gone with the last process),
 * or anonymous memory when no peer is to map it.
 */
enum dtn_pages {
    DTN_PAGES_SMALL,              /* those of the system, 4 KiB                */
    DTN_PAGES_ASKED,              /* huge ones where the kernel has some       */
    DTN_PAGES_HUGE                /* of 2 MiB, set aside for all of it         */
};

/* The limit of the size of an arena. */
enum dtn_bound {
    DTN_BOUND_GIVEN,              /* the size that dtn_arena_init() was given  */
    DTN_BOUND_RAM,                /* of the host                               */
    DTN_BOUND_CGROUP,             /* the memory limit of the control group     */
    DTN_BOUND_KEY,                /* [transport] arena                         */
    DTN_BOUND_ULIMIT_V,           /* addresses of this process                 */
    DTN_BOUND_ULIMIT_F,           /* the size of a file                        */
    DTN_BOUND_SPACE,              /* addresses of any process                  */
    DTN_BOUND_MAP                 /* what the kernel would map                 */
};

struct dtn_arena_limit {
    uint64_t bytes;
    enum dtn_bound bound;
};

struct dtn_arena {
    int fd;                       /* -1: anonymous                             */
    enum dtn_bound bound;
    enum dtn_pages pages;
    unsigned char *base;
    size_t size;
    bool pinned;                  /* a device knows pages: never give any back */
    struct dtn_extent *extents;   /* sorted by offset, covering everything     */
    int nextents;
    int capacity;
    size_t used_bytes;
    size_t dumped;                /* of it, from base on, in a core file       */
};

/* `shared`: make it a memfd.  Errors: ESYS, ENOMEM, with the remedy. */
int dtn_arena_init(struct dtn_arena *arena, size_t size, bool shared,
                   struct dtensor_error *err);
void dtn_arena_fini(struct dtn_arena *arena);

/* Its pages in words, for the log. */
const char *dtn_arena_pages(const struct dtn_arena *arena);

/* The largest block that dtn_arena_alloc() could give. */
size_t dtn_arena_largest(const struct dtn_arena *arena);

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
