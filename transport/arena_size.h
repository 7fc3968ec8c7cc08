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
    uint64_t bytes;
    enum dtn_bound bound;
};

/* The size of the arena of a rank: `want`, or what the machine and the process
 * allow.  `nmapped` arenas of this size are mapped into each process.
 */
struct dtn_arena_limit dtn_arena_limit(const struct dtn_share *want,
                                       int nmapped);

/* The memory limit of the control groups that `proc`, "/proc/self/cgroup", names
 * below `mount`, "/sys/fs/cgroup"; UINT64_MAX: none.
 */
uint64_t dtn_cgroup_bytes(const char *proc, const char *mount);

/* dtn_arena_init() of that size.  If nobody asked for a size and the kernel
 * maps less: of half that size, and so on down to 64 MiB.
 */
int dtn_arena_open(struct dtn_arena *arena, const struct dtn_share *want,
                   int nmapped, bool shared, struct dtensor_error *err);

/* Why it is no larger, "the memory of this host", for the log. */
const char *dtn_arena_why(const struct dtn_arena *arena);

/* ENOMEM with words, after dtn_arena_alloc() of `size` bytes for `what`
 * returned NULL: how much there is, which limit applies, and what helps.
 */
int dtn_arena_fail(const struct dtn_arena *arena, const char *what, size_t size,
                   struct dtensor_error *err);

#endif
