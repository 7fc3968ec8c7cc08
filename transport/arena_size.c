/* arena_size.c - the size of an arena, and the error when it is full
 *
 * An arena is address space.  A page of it takes no memory until it is
 * written, so every rank gets as much as the host has RAM: 4 ranks on a host of
 * 64 GiB have 64 GiB of addresses each, and one of them can use nearly all of
 * the memory while the others use little.  A limit of the process can make it
 * smaller: the memory limit of its control group, which Slurm sets; ulimit -v,
 * which counts addresses; or ulimit -f, which limits the file that peers map.
 * All ranks of a host map all of its arenas, so together they are at most
 * 32 TiB of addresses: 256 ranks on a host of 2 TiB get 128 GiB each.
 *
 * [transport] arena sets another size.  The error of an allocation that finds
 * no room names the limit that applied.
 */
#include "transport/arena_size.h"
#include "base/error.h"
#include "base/units.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/cgroup.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#define ARENA_STEP_BYTES (UINT64_C(2) << 20)    /* a huge page                */
#define ARENA_MIN_BYTES (UINT64_C(64) << 20)
#define ARENA_SPACE_BYTES (UINT64_C(32) << 40)  /* of 128 TiB that x86-64 has */

/* The limit of an arena, and how to raise it. */
static const struct { const char *why, *remedy; } bounds[] = {
    [DTN_BOUND_GIVEN] = { "as asked for", "free some memory" },
    [DTN_BOUND_RAM] = {
        "the memory of this host", "free some, or set [transport] arena" },
    [DTN_BOUND_CGROUP] = {
        "the memory limit of its control group",
        "raise that, with Slurm by --mem, or set [transport] arena" },
    [DTN_BOUND_KEY] = {
        "as [transport] arena says", "free some, or raise [transport] arena" },
    [DTN_BOUND_ULIMIT_V] = {
        "a share of half of ulimit -v", "raise ulimit -v" },
    [DTN_BOUND_ULIMIT_F] = { "the most that ulimit -f allows",
        "raise ulimit -f" },
    [DTN_BOUND_SPACE] = {
        "a share of 32 TiB of addresses", "set [transport] arena" },
    [DTN_BOUND_MAP] = { "the most that the kernel would map",
        "see ulimit -v and vm.overcommit_memory" }
};

/* --------------------------------------------------------------- limits --- */

/* ulimit -v, or UINT64_MAX. */
static uint64_t size_of_space(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

static uint64_t size_of_ram(void)
{
    struct sysinfo info;

    return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit
                               : 2 * ARENA_MIN_BYTES;
}

/* ----------------------------------------------------------------- size --- */

static void size_bound(struct dtn_arena_limit *size, uint64_t most,
                       enum dtn_bound bound)
{
    if (most < size->bytes)
        *size = (struct dtn_arena_limit){ most, bound };
}

struct dtn_arena_limit dtn_arena_limit(const struct dtn_share *want,
                                       int nmapped)
{
    struct dtn_arena_limit size = { size_of_ram(), DTN_BOUND_RAM };
    const uint64_t ways = nmapped > 0 ? (uint64_t)nmapped : 1;

    if (want->bytes > 0)
        return (struct dtn_arena_limit){ want->bytes, DTN_BOUND_KEY };
    size_bound(&size, dtn_cgroup_bytes(DTN_CGROUP_MEMORY), DTN_BOUND_CGROUP);
    if (want->percent > 0 && want->percent < 100)
        size_bound(&size, size.bytes / 100 * (unsigned)want->percent,
                   DTN_BOUND_KEY);
    size_bound(&size, size_of_space() / 2 / ways, DTN_BOUND_ULIMIT_V);
    size_bound(&size, ARENA_SPACE_BYTES / ways, DTN_BOUND_SPACE);
    size_bound(&size, SIZE_MAX / 8, DTN_BOUND_SPACE);
    size.bytes = size.bytes / ARENA_STEP_BYTES * ARENA_STEP_BYTES;
    if (size.bytes < ARENA_MIN_BYTES)
        size.bytes = ARENA_MIN_BYTES;
    return size;
}

int dtn_arena_open(struct dtn_arena *arena, const struct dtn_share *want,
                   int nmapped, bool shared, struct dtensor_error *err)
{
    struct dtn_arena_limit limit = dtn_arena_limit(want, nmapped);
    int rc = dtn_arena_init(arena, limit.bytes, shared, err);

    while (rc == DTENSOR_ENOMEM && limit.bound != DTN_BOUND_KEY
           && limit.bytes / 2 >= ARENA_MIN_BYTES) {
        limit = (struct dtn_arena_limit){ limit.bytes / 2, DTN_BOUND_MAP };
        rc = dtn_arena_init(arena, limit.bytes, shared, err);
    }
    if (rc == 0 && arena->backing.bound == DTN_BOUND_GIVEN)
        arena->backing.bound = limit.bound;
    return rc;
}

/* ---------------------------------------------------------------- words --- */

const char *dtn_arena_why(const struct dtn_arena *arena)
{
    return bounds[arena->backing.bound].why;
}

int dtn_arena_fail(const struct dtn_arena *arena, const char *what, size_t size,
                   struct dtensor_error *err)
{
    char wanted[32], all[32], left[32], piece[32];
    size_t largest = dtn_extents_largest(&arena->extents);

    if (size <= largest)                    /* the books could not grow       */
        return dtn_fail_nomem(err, what, size);
    return dtn_fail(err, DTENSOR_ENOMEM, "%s: no room for %s: the arena of this "
                    "rank has %s, %s, of which %s are free, %s in one piece "
                    "(%s)", what, dtn_format_size(size, wanted, sizeof wanted),
                    dtn_format_size(arena->backing.size, all, sizeof all),
                    bounds[arena->backing.bound].why,
                    dtn_format_size(arena->backing.size
                                    - arena->extents.used_bytes, left,
                                    sizeof left),
                    dtn_format_size(largest, piece, sizeof piece),
                    bounds[arena->backing.bound].remedy);
}
