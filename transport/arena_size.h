/* arena_size.h - how large an arena is, and why */
#ifndef DTN_TRANSPORT_ARENA_SIZE_H
#define DTN_TRANSPORT_ARENA_SIZE_H

#include "transport/backing.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_share;

/* A size, and why it is no larger. */
struct dtn_arena_limit {
    uint64_t bytes;               /* the size                                 */
    enum dtn_bound bound;         /* the limit that makes it no larger        */
};

/* The size of a rank's arena: `want`, or less if the host or the process does
 * not allow it.  Each process maps `nmapped` arenas of this size.
 */
struct dtn_arena_limit dtn_arena_limit(const struct dtn_share *want,
                                       int nmapped);

/* dtn_arena_init() with the size of dtn_arena_limit().  If the cluster file
 * has no size and the kernel does not map that much, try half of it, and so on,
 * down to 64 MiB.
 */
int dtn_arena_open(struct dtn_arena *arena, const struct dtn_share *want,
                   int nmapped, bool shared, struct dtensor_error *err);

/* The limit of its size in words, such as "the memory of this host". */
const char *dtn_arena_why(const struct dtn_arena *arena);

/* Report that dtn_arena_alloc() of `size` bytes for `what` returned NULL: the
 * size of the arena, its limit, and the remedy.  Returns ENOMEM.
 */
int dtn_arena_fail(const struct dtn_arena *arena, const char *what, size_t size,
                   struct dtensor_error *err);

#endif
