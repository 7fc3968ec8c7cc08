/* arena.c - the memory that peers may reach
 *
 * Each rank has one range of address space and allocates in it whatever
 * peers are to read or write.  A peer maps the range once, so that reaching
 * a new tensor later costs nothing: no registration, no file descriptor, no
 * system call, only an offset.  The range is a file without a name (memfd)
 * with holes: 4 ranks on a host of 64 GiB get 64 GiB of addresses each (see
 * arena_size.c), and not one page of memory until they write.  Seals forbid
 * ever changing its size, so nobody who maps it can be killed by a truncation
 * (SIGBUS), and a file without a name is gone with the last process, however it
 * ended.
 *
 * A card translates addresses faster the larger the pages are.  Where the
 * administrator has set aside as many of 2 MiB as the whole range has (a page
 * that is missing when it is touched would be a fatal signal), they are taken;
 * otherwise the kernel is asked to use such as it finds.
 *
 * A core file would have every page of the range, written or not: of 24 GiB it
 * takes 3 minutes.  So it has those from the beginning to the last block that
 * was ever in use, rounded up to a power of two.
 *
 * The books are kept outside of the range, where no peer can spoil them: a
 * sorted array of extents, used or free, that covers it without a gap.  Two
 * free extents never touch.  1000 live blocks make at most 2001 extents, and
 * the one being freed is found in 11 halvings.
 */
#include "transport/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/units.h"
#include "dtensor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_HUGETLB
#define MFD_HUGETLB 0x0004U
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26)
#endif
#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

#define ARENA_PAGED_BYTES ((size_t)64 << 10)    /* page-aligned from here     */
#define ARENA_PUNCH_BYTES ((size_t)32 << 20)    /* pages given back from here */
#define ARENA_STEP_BYTES ((size_t)2 << 20)      /* a huge page                */

#define REMEDY_SHM "set [transport] intra_node = tcp"

struct dtn_extent {
    size_t offset;
    size_t size;
    bool used;
    bool lent;                    /* used, and by the program                  */
};

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* ----------------------------------------------------------- its memory --- */

/* Since Linux 6.3 a system may insist that a memfd never be executable; an
 * older kernel does not know the flag.
 */
static int arena_memfd(unsigned pages)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | pages;
    int fd = memfd_create("dtensor", flags | MFD_NOEXEC_SEAL);

    return fd < 0 && errno == EINVAL ? memfd_create("dtensor", flags) : fd;
}

/* The size a file may have: more would be a fatal signal, not an error. */
static size_t arena_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
        || limit.rlim_cur > SIZE_MAX)
        return SIZE_MAX;
    return (size_t)limit.rlim_cur / page_size() * page_size();
}

static int arena_size_file(int fd, size_t size, struct dtensor_error *err)
{
    char buf[32];

    if (ftruncate(fd, (off_t)size) < 0)
        return dtn_fail_sys(err, errno, "shm: cannot size an arena of %s: %m "
                            "(" REMEDY_SHM ")",
                            dtn_format_size(size, buf, sizeof buf));
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return dtn_fail_sys(err, errno, "shm: cannot seal the arena: %m "
                            "(" REMEDY_SHM ")");
    return 0;
}

static int arena_map(struct dtn_arena *arena, int flags,
                     struct dtensor_error *err)
{
    char buf[32];
    void *base = mmap(NULL, arena->size, PROT_READ | PROT_WRITE,
                      flags, arena->fd, 0);

    if (base == MAP_FAILED)
        return dtn_fail_sys(err, errno, "arena: cannot map %s of address "
                            "space: %m (see ulimit -v, or lower [transport] "
                            "arena)",
                            dtn_format_size(arena->size, buf, sizeof buf));
    arena->base = base;
    madvise(base, arena->size, MADV_DONTDUMP);
    return 0;
}

/* From now on core files contain [0, end). */
static void arena_dump(struct dtn_arena *arena, size_t end)
{
    size_t to = arena->dumped ? arena->dumped : ARENA_STEP_BYTES;
    int saved = errno;

    if (end <= arena->dumped)
        return;
    while (to < end && to <= arena->size / 2)
        to *= 2;
    if (to < end)
        to = arena->size;
    madvise(arena->base, to, MADV_DODUMP);
    arena->dumped = to;
    errno = saved;
}

/* A file of `pages` that peers can map, and our mapping. */
static int arena_map_file(struct dtn_arena *arena, unsigned pages, int flags,
                          struct dtensor_error *err)
{
    int rc;

    arena->fd = arena_memfd(pages);
    if (arena->fd < 0)
        return dtn_fail_sys(err, errno, "shm: memfd_create: %m "
                            "(" REMEDY_SHM ")");
    rc = arena_size_file(arena->fd, arena->size, err);
    if (rc == 0)
        rc = arena_map(arena, MAP_SHARED | flags, err);
    if (rc < 0) {
        close(arena->fd);
        arena->fd = -1;
    }
    return rc;
}

/* All of it in pages of 2 MiB that are set aside for it from now on. */
static bool arena_map_huge(struct dtn_arena *arena, bool shared)
{
    if (arena->size % ARENA_STEP_BYTES != 0)
        return false;
    if (shared ? arena_map_file(arena, MFD_HUGETLB | MFD_HUGE_2MB, 0, NULL)
               : arena_map(arena, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB
                                  | MAP_HUGE_2MB, NULL))
        return false;
    arena->pages = DTN_PAGES_HUGE;
    return true;
}

static int arena_map_any(struct dtn_arena *arena, bool shared,
                         struct dtensor_error *err)
{
    size_t limit = shared ? arena_file_limit() : SIZE_MAX;
    int rc;

    if (arena->size > limit) {
        arena->size = limit;
        arena->bound = DTN_BOUND_ULIMIT_F;
    }
    if (arena->size == 0)
        return dtn_fail(err, DTENSOR_ESYS, "shm: files may not grow at all "
                        "here (see ulimit -f, or " REMEDY_SHM ")");
    if (arena_map_huge(arena, shared))
        return 0;
    rc = shared ? arena_map_file(arena, 0, MAP_NORESERVE, err)
                : arena_map(arena, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            err);
    if (rc == 0 && madvise(arena->base, arena->size, MADV_HUGEPAGE) == 0)
        arena->pages = DTN_PAGES_ASKED;
    return rc;
}

const char *dtn_arena_pages(const struct dtn_arena *arena)
{
    static const char *const words[] = {
        [DTN_PAGES_SMALL] = "small pages, for lack of huge ones",
        [DTN_PAGES_ASKED] = "huge pages as found (see vm.nr_hugepages, arena)",
        [DTN_PAGES_HUGE] = "huge pages that are set aside for it",
    };

    return words[arena->pages];
}

int dtn_arena_init(struct dtn_arena *arena, size_t size, bool shared,
                   struct dtensor_error *err)
{
    struct dtn_arena made = { .fd = -1, .capacity = 64 };
    int rc;

    if (size == 0 || size > SIZE_MAX / 4)
        return dtn_fail(err, DTENSOR_EINVAL, "arena: size %zu is out of range",
                        size);
    made.size = round_up(size, page_size());
    made.extents = calloc((size_t)made.capacity, sizeof *made.extents);
    if (!made.extents)
        return dtn_fail_nomem(err, "arena", sizeof *made.extents * 64);
    rc = arena_map_any(&made, shared, err);
    if (rc < 0) {
        free(made.extents);
        return rc;
    }
    made.extents[0] = (struct dtn_extent){ .size = made.size };
    made.nextents = 1;
    *arena = made;
    return 0;
}

void dtn_arena_fini(struct dtn_arena *arena)
{
    if (!arena->base)
        return;
    munmap(arena->base, arena->size);
    if (arena->fd >= 0)
        close(arena->fd);
    free(arena->extents);
    *arena = (struct dtn_arena){ .fd = -1 };
}

/* ------------------------------------------------------------ its books --- */

/* Make room for two more extents: what one allocation can add. */
static bool arena_reserve(struct dtn_arena *arena)
{
    struct dtn_extent *grown;
    int capacity = arena->capacity * 2;

    if (arena->nextents + 2 <= arena->capacity)
        return true;
    grown = realloc(arena->extents, (size_t)capacity * sizeof *grown);
    if (!grown)
        return false;
    arena->extents = grown;
    arena->capacity = capacity;
    return true;
}

static void arena_insert(struct dtn_arena *arena, int at,
                         struct dtn_extent extent)
{
    memmove(&arena->extents[at + 1], &arena->extents[at],
            (size_t)(arena->nextents - at) * sizeof extent);
    arena->extents[at] = extent;
    arena->nextents++;
}

/* Merge extent at+1 into its left neighbour. */
static void arena_merge(struct dtn_arena *arena, int at)
{
    struct dtn_extent *e = &arena->extents[at];

    e[0].size += e[1].size;
    memmove(&e[1], &e[2],
            (size_t)(arena->nextents - at - 2) * sizeof *e);
    arena->nextents--;
}

/* Take [offset, offset+size) out of the free extent `at`; what is left of it
 * on either side stays free.
 */
static void arena_carve(struct dtn_arena *arena, int at, size_t offset,
                        size_t size)
{
    struct dtn_extent whole = arena->extents[at];
    size_t before = offset - whole.offset;
    size_t after = whole.size - before - size;

    arena->extents[at] = (struct dtn_extent){ offset, size, true,
                                                 false };
    if (after > 0)
        arena_insert(arena, at + 1,
                     (struct dtn_extent){ offset + size, after, false, false });
    if (before > 0)
        arena_insert(arena, at,
                     (struct dtn_extent){ whole.offset, before, false, false });
    arena->used_bytes += size;
}

/* The aligned part of the extent that can be allocated, and where it begins. */
static size_t arena_usable(const struct dtn_extent *e, size_t align,
                           size_t *offsetp)
{
    size_t offset = round_up(e->offset, align), skip = offset - e->offset;

    *offsetp = offset;
    return e->used || skip > e->size ? 0 : e->size - skip;
}

size_t dtn_arena_largest(const struct dtn_arena *arena)
{
    size_t largest = 0, usable, offset;

    for (int i = 0; i < arena->nextents; i++) {
        usable = arena_usable(&arena->extents[i], page_size(), &offset);
        largest = usable > largest ? usable : largest;
    }
    return largest;
}

void *dtn_arena_alloc(struct dtn_arena *arena, size_t size)
{
    size_t align = size >= ARENA_PAGED_BYTES ? page_size() : DTN_CACHE_LINE;
    size_t offset;

    if (size > arena->size || !arena_reserve(arena))
        return NULL;
    size = round_up(size > 0 ? size : 1, align);
    for (int i = 0; i < arena->nextents; i++) {
        if (size > arena_usable(&arena->extents[i], align, &offset))
            continue;
        arena_carve(arena, i, offset, size);
        arena_dump(arena, offset + size);
        return arena->base + offset;
    }
    return NULL;
}

/* The index of the extent that begins at `offset`. */
static int arena_find(const struct dtn_arena *arena, size_t offset)
{
    int low = 0, high = arena->nextents - 1;

    while (low < high) {
        int middle = low + (high - low + 1) / 2;

        if (arena->extents[middle].offset <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Give the pages of a freed block back to the system.  Best effort. */
static void arena_punch(struct dtn_arena *arena, size_t offset, size_t size)
{
    int saved = errno;

    if (arena->fd < 0)
        madvise(arena->base + offset, size, MADV_DONTNEED);
    else
        fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)offset, (off_t)size);
    errno = saved;
}

void dtn_arena_free(struct dtn_arena *arena, void *mem)
{
    struct dtn_extent *e;
    size_t offset;
    int at;

    if (!mem)
        return;
    offset = (size_t)((unsigned char *)mem - arena->base);
    at = arena_find(arena, offset);
    e = &arena->extents[at];
    assert(e->used && e->offset == offset);
    if (e->size >= ARENA_PUNCH_BYTES && !arena->pinned
        && arena->pages != DTN_PAGES_HUGE)    /* set aside, once: keep them   */
        arena_punch(arena, offset, e->size);
    e->used = e->lent = false;
    arena->used_bytes -= e->size;
    if (at + 1 < arena->nextents && !arena->extents[at + 1].used)
        arena_merge(arena, at);
    if (at > 0 && !arena->extents[at - 1].used)
        arena_merge(arena, at - 1);
}

/* The block that begins at `mem`, or NULL. */
static struct dtn_extent *arena_begins(const struct dtn_arena *arena,
                                       const void *mem)
{
    struct dtn_extent *e;
    size_t offset;

    if (!dtn_arena_contains(arena, mem, 1))
        return NULL;
    offset = (size_t)((const unsigned char *)mem - arena->base);
    e = &arena->extents[arena_find(arena, offset)];
    return e->used && e->offset == offset ? e : NULL;
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
    size_t offset = (size_t)((const unsigned char *)mem - arena->base);
    const struct dtn_extent *e = &arena->extents[arena_find(arena, offset)];

    if (!e->used || size > e->size - (offset - e->offset))
        return (struct dtn_block){ arena->base + offset, size };
    return (struct dtn_block){ arena->base + e->offset, e->size };
}

bool dtn_arena_contains(const struct dtn_arena *arena, const void *mem,
                        size_t size)
{
    uintptr_t at = (uintptr_t)mem, base = (uintptr_t)arena->base;

    return arena->base && at >= base && at - base <= arena->size &&
           size <= arena->size - (at - base);
}
