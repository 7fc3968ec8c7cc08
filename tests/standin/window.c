/* window.c - device memory that the CPU may touch for a while
 *
 * A suite of tests for host memory runs unchanged on device memory if it may
 * read and write it between two calls of the library.  The library may not: the
 * suite shuts the window before each call.
 */
#include "tests/standin/standin.h"

#include <sys/mman.h>

#define EXPORTED __attribute__((visibility("default")))

enum { PANES_MAX = 256 };

int dtn_standin_open(const void *mem);
void dtn_standin_shut(void);

static struct {
    uint64_t at;
    size_t size;
} panes[PANES_MAX];               /* parts that are open                      */
static int npanes;

static void *pane(uint64_t at, size_t size, int access, int flags, int fd,
                  size_t offset)
{
    return mmap((void *)(uintptr_t)at, size, access, MAP_FIXED | flags, fd,
                (off_t)offset);
}

/* Let the CPU read and write the device memory at `mem`.  0: there is none. */
EXPORTED int dtn_standin_open(const void *mem)
{
    const struct standin_range *range = standin_range_at((uintptr_t)mem);
    const struct standin_mapping *mapping =
        range && !range->freed ? standin_mapping_at(range, (uintptr_t)mem)
                               : NULL;

    if (!mapping || !mapping->access || npanes == PANES_MAX
        || pane(mapping->at, mapping->size, PROT_READ | PROT_WRITE, MAP_SHARED,
                mapping->block->fd, mapping->offset) == MAP_FAILED)
        return 0;
    panes[npanes].at = mapping->at;
    panes[npanes++].size = mapping->size;
    return 1;
}

EXPORTED void dtn_standin_shut(void)
{
    for (int i = 0; i < npanes; i++)
        pane(panes[i].at, panes[i].size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    npanes = 0;
}
