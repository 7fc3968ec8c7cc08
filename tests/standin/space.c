/* space.c - addresses of device memory, and the memory behind them
 *
 * Programs get addresses in a window that is mapped without any access, so
 * that a load or store of the CPU is a SIGSEGV, as with a real device.  The
 * stand-in itself uses an alias of the same size: what is at window + x for
 * programs is at alias + x for it.  Addresses are never given out a second
 * time, so that use of freed memory is always noticed.
 */
#include "tests/standin/standin.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW ((size_t)1 << 38)

/* The first bytes of new memory are not 0, as on a device that was in use. */
enum { DIRTY_BYTES = 256 << 10, DIRTY = 0xdb };

pthread_mutex_t standin_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *window, *alias;
static size_t top = STANDIN_GRANULE; /* bytes given out; the first are a gap  */
static size_t used[STANDIN_DEVICES_MAX]; /* bytes of each device              */
static struct standin_range **ranges;    /* by address                        */
static size_t nranges;

static unsigned char *space_reserve(void)
{
    unsigned char *at = mmap(NULL, WINDOW + STANDIN_GRANULE, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                             0);
    size_t over = (uintptr_t)at % STANDIN_GRANULE;

    if (at == MAP_FAILED)
        return NULL;
    return over ? at + (STANDIN_GRANULE - over) : at;
}

static bool space_begin(void)
{
    if (!window)
        window = space_reserve();
    if (window && !alias)
        alias = space_reserve();
    return window && alias;
}

bool standin_is_device(uint64_t at)
{
    return window && at - (uintptr_t)window < WINDOW;
}

static unsigned char *alias_of(uint64_t at)
{
    return alias + (at - (uintptr_t)window);
}

static size_t whole(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* ---------------------------------------------------------------- blocks -- */

static void block_dirty(int fd, size_t size)
{
    unsigned char bytes[4096];
    size_t end = size < DIRTY_BYTES ? size : DIRTY_BYTES;

    memset(bytes, DIRTY, sizeof bytes);
    for (size_t at = 0; at < end; at += sizeof bytes)
        if (pwrite(fd, bytes, sizeof bytes, (off_t)at) < 0)
            return;
}

/* Takes the descriptor. */
static struct standin_block *block_make(int fd, size_t size, int device)
{
    struct standin_block *block = calloc(1, sizeof *block);

    if (!block || fd < 0) {
        if (fd >= 0)
            close(fd);
        free(block);
        return NULL;
    }
    *block = (struct standin_block){ .fd = fd, .refs = 1, .device = device,
                                     .size = size };
    standin_count(STANDIN_BLOCK, 1);
    return block;
}

struct standin_block *standin_block_new(size_t size, int device)
{
    struct standin_block *block;
    int fd;

    size = whole(size, STANDIN_PAGE);
    if (size > standin_device_bytes() - used[device])
        return NULL;
    fd = memfd_create("standin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, (off_t)size) < 0
                    || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)) {
        close(fd);
        fd = -1;
    }
    block = block_make(fd, size, device);
    if (!block)
        return NULL;
    block_dirty(fd, size);
    block->own = true;
    used[device] += size;
    return block;
}

/* Of another process: its name is a descriptor, which stays the caller's. */
struct standin_block *standin_block_of(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || st.st_size <= 0)
        return NULL;
    return block_make(fcntl(fd, F_DUPFD_CLOEXEC, 3), (size_t)st.st_size, 0);
}

void standin_block_drop(struct standin_block *block)
{
    if (--block->refs > 0)
        return;
    if (block->own)
        used[block->device] -= block->size;
    close(block->fd);
    free(block);
    standin_count(STANDIN_BLOCK, -1);
}

CUresult standin_cuMemGetInfo(size_t *freep, size_t *total)
{
    CUresult rc = standin_enter_context("cuMemGetInfo");

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    *total = standin_device_bytes();
    *freep = *total - used[standin_current()];
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- ranges -- */

struct standin_range *standin_range_new(size_t size)
{
    size_t step = whole(size, STANDIN_GRANULE) + STANDIN_GRANULE;
    struct standin_range *range = calloc(1, sizeof *range);
    struct standin_range **more = realloc(ranges, (nranges + 1)
                                                  * sizeof *ranges);

    if (more)
        ranges = more;
    if (!space_begin() || !more || !range || step > WINDOW - top) {
        if (window && step > WINDOW - top)
            standin_complain("the window is used up");
        free(range);
        return NULL;
    }
    *range = (struct standin_range){ .at = (uintptr_t)window + top,
                                     .size = size };
    top += step;
    ranges[nranges++] = range;
    standin_count(STANDIN_RANGE, 1);
    return range;
}

/* The range that begins at or before it. */
struct standin_range *standin_range_at(uint64_t at)
{
    size_t low = 0, high = nranges;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges[middle]->at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || at - ranges[low - 1]->at >= ranges[low - 1]->size)
        return NULL;
    return ranges[low - 1];
}

struct standin_mapping *standin_mapping_at(const struct standin_range *range,
                                           uint64_t at)
{
    struct standin_mapping *mapping = range->mappings;

    while (mapping && !(at >= mapping->at && at - mapping->at < mapping->size))
        mapping = mapping->next;
    return mapping;
}

/* `at` and `size` are whole pages, except the end of a range. */
bool standin_map(struct standin_range *range, uint64_t at, size_t size,
                 struct standin_block *block, size_t offset)
{
    struct standin_mapping *mapping = calloc(1, sizeof *mapping);

    if (!mapping
        || mmap(alias_of(at), whole(size, STANDIN_PAGE),
                PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block->fd,
                (off_t)offset) == MAP_FAILED) {
        free(mapping);
        return false;
    }
    *mapping = (struct standin_mapping){ .at = at, .size = size,
        .offset = offset, .block = block, .next = range->mappings };
    range->mappings = mapping;
    block->refs++;
    return true;
}

bool standin_unmap(struct standin_range *range, uint64_t at, size_t size)
{
    struct standin_mapping **link = &range->mappings, *mapping;

    while (*link && !((*link)->at == at && (*link)->size == size))
        link = &(*link)->next;
    mapping = *link;
    if (!mapping)
        return false;
    mmap(alias_of(at), whole(size, STANDIN_PAGE), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    standin_block_drop(mapping->block);
    *link = mapping->next;
    free(mapping);
    return true;
}

/* Why [at, at + size) may not be touched; NULL: it may. */
static const char *space_refuses(uint64_t at, size_t size)
{
    const struct standin_range *range = standin_range_at(at);
    const struct standin_mapping *mapping;

    if (!range)
        return "never allocated";
    if (range->freed)
        return "freed";
    if (size > range->size - (at - range->at))
        return "past the end of the allocation";
    for (uint64_t end = at + size; at < end; at = mapping->at + mapping->size) {
        mapping = standin_mapping_at(range, at);
        if (!mapping)
            return "reserved, but not mapped";
        if (!mapping->access)
            return "mapped, but no access was given";
    }
    return NULL;
}

void *standin_look(uint64_t at, size_t size, const char **whyp)
{
    *whyp = NULL;
    if (!standin_is_device(at))
        return (void *)(uintptr_t)at;
    pthread_mutex_lock(&standin_lock);
    *whyp = space_refuses(at, size);
    pthread_mutex_unlock(&standin_lock);
    return *whyp ? NULL : alias_of(at);
}

void *standin_reach(uint64_t at, size_t size, const char *what)
{
    const char *why;
    void *mem = standin_look(at, size, &why);

    if (!mem) {
        standin_complain("%s: %zu bytes at %#llx: %s", what, size,
                         (unsigned long long)at, why);
        standin_stick(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    return mem;
}
