/* backing.c - the host's memory as the memory of an arena
 *
 * A peer maps the whole range once.  So it reaches a new tensor later with an
 * offset only, without a registration, a file descriptor or a system call.  The
 * range is a sparse file without a name (memfd): 4 ranks on a host of 64 GiB
 * get 64 GiB of addresses each (see arena_size.c), and no page of memory before
 * they write.  Seals fix its size, so a process that maps it cannot be killed
 * by a truncation (SIGBUS).  A file without a name disappears with the last
 * process, however that ends.
 *
 * A network card translates addresses faster with larger pages.  If the
 * administrator has reserved enough pages of 2 MiB for the whole range, they
 * are used.  If there are pages for only a part, or a control group allows only
 * a part, they are not used: the first access to a missing page would be a
 * fatal signal.  Otherwise the kernel is asked for transparent huge pages.
 *
 * A core file would have every page of the range, written or not; 24 GiB take 3
 * minutes.  So it has only the pages from the start of the range to the last
 * block that was ever in use, rounded up to a power of two.
 */
#include "transport/backing.h"
#include "base/error.h"
#include "base/units.h"
#include "transport/cgroup.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define BACKING_STEP_BYTES ((size_t)2 << 20)      /* a huge page              */
#define BACKING_PUNCH_BYTES ((size_t)32 << 20)    /* smallest block whose     */
                                                  /* pages go back            */

#define REMEDY_SHM "set [transport] intra_node = tcp"

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Since Linux 6.3 a system can require that a memfd is not executable; an older
 * kernel does not know the flag.
 */
static int backing_memfd(unsigned pages)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | pages;
    int fd = memfd_create("dtensor", flags | MFD_NOEXEC_SEAL);

    return fd < 0 && errno == EINVAL ? memfd_create("dtensor", flags) : fd;
}

/* ulimit -f: a larger file would be a fatal signal, not an error. */
static size_t backing_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
        || limit.rlim_cur > SIZE_MAX)
        return SIZE_MAX;
    return (size_t)limit.rlim_cur / page_size() * page_size();
}

static int backing_size_file(int fd, size_t size, struct dtensor_error *err)
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

static int backing_map(struct dtn_backing *backing, int flags,
                       struct dtensor_error *err)
{
    char buf[32];
    void *base = mmap(NULL, backing->size, PROT_READ | PROT_WRITE,
                      flags, backing->fd, 0);

    if (base == MAP_FAILED)
        return dtn_fail_sys(err, errno, "arena: cannot map %s of address "
                            "space: %m (see ulimit -v, or lower [transport] "
                            "arena)",
                            dtn_format_size(backing->size, buf, sizeof buf));
    backing->base = base;
    madvise(base, backing->size, MADV_DONTDUMP);
    return 0;
}

/* A file with pages of this kind that peers can map, mapped here. */
static int backing_map_file(struct dtn_backing *backing, unsigned pages,
                            int flags, struct dtensor_error *err)
{
    int rc;

    backing->fd = backing_memfd(pages);
    if (backing->fd < 0)
        return dtn_fail_sys(err, errno, "shm: memfd_create: %m "
                            "(" REMEDY_SHM ")");
    rc = backing_size_file(backing->fd, backing->size, err);
    if (rc == 0)
        rc = backing_map(backing, MAP_SHARED | flags, err);
    if (rc < 0) {
        close(backing->fd);
        backing->fd = -1;
    }
    return rc;
}

static void host_close(struct dtn_backing *backing)
{
    munmap(backing->base, backing->size);
    if (backing->fd >= 0)
        close(backing->fd);
    backing->fd = -1;
}

/* Can all huge pages be written?  The limit of a control group is not checked
 * when pages are reserved, and the first write beyond it is a fatal signal.  So
 * where there is a limit, the pages are taken now.
 */
static bool backing_fill(const struct dtn_backing *backing)
{
    return dtn_cgroup_bytes(DTN_CGROUP_HUGE) == UINT64_MAX
        || madvise(backing->base, backing->size, MADV_POPULATE_WRITE) == 0;
}

/* All of it in pages of 2 MiB, which are reserved for it. */
static bool backing_map_huge(struct dtn_backing *backing, bool shared)
{
    if (backing->size % BACKING_STEP_BYTES != 0)
        return false;
    if (shared ? backing_map_file(backing, MFD_HUGETLB | MFD_HUGE_2MB, 0, NULL)
               : backing_map(backing, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB
                                      | MAP_HUGE_2MB, NULL))
        return false;
    if (!backing_fill(backing)) {
        host_close(backing);
        return false;
    }
    backing->pages = DTN_PAGES_HUGE;
    return true;
}

static int backing_map_any(struct dtn_backing *backing, bool shared,
                           struct dtensor_error *err)
{
    size_t limit = shared ? backing_file_limit() : SIZE_MAX;
    int rc;

    if (backing->size > limit) {
        backing->size = limit;
        backing->bound = DTN_BOUND_ULIMIT_F;
    }
    if (backing->size == 0)
        return dtn_fail(err, DTENSOR_ESYS, "shm: files may not grow at all "
                        "here (see ulimit -f, or " REMEDY_SHM ")");
    if (backing_map_huge(backing, shared))
        return 0;
    rc = shared ? backing_map_file(backing, 0, MAP_NORESERVE, err)
                : backing_map(backing, MAP_PRIVATE | MAP_ANONYMOUS
                                       | MAP_NORESERVE, err);
    if (rc == 0 && madvise(backing->base, backing->size, MADV_HUGEPAGE) == 0)
        backing->pages = DTN_PAGES_ASKED;
    return rc;
}

/* ----------------------------------------------------------- the table --- */

/* From now on core files contain everything up to the end of the block. */
static bool host_touch(struct dtn_backing *backing, size_t offset, size_t size)
{
    size_t to = backing->dumped ? backing->dumped : BACKING_STEP_BYTES;
    const size_t end = offset + size;
    int saved = errno;

    if (end <= backing->dumped)
        return true;
    while (to < end && to <= backing->size / 2)
        to *= 2;
    if (to < end)
        to = backing->size;
    madvise(backing->base, to, MADV_DODUMP);
    backing->dumped = to;
    errno = saved;
    return true;
}

/* Registered memory keeps its pages, and so do reserved pages. */
static void host_release(struct dtn_backing *backing, size_t offset,
                         size_t size)
{
    int saved = errno;

    if (size < BACKING_PUNCH_BYTES || backing->pinned ||
        backing->pages == DTN_PAGES_HUGE)
        return;
    if (backing->fd < 0)
        madvise(backing->base + offset, size, MADV_DONTNEED);
    else
        fallocate(backing->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)offset, (off_t)size);
    errno = saved;
}

static const struct dtn_backing_ops host_ops = {
    host_touch, host_release, host_close
};

int dtn_backing_open_host(struct dtn_backing *backing, size_t size,
                          bool shared, struct dtensor_error *err)
{
    const size_t page = page_size();
    struct dtn_backing made = {
        .ops = &host_ops, .fd = -1, .page_bytes = page,
        .size = (size + page - 1) / page * page
    };
    int rc = backing_map_any(&made, shared, err);

    if (rc == 0)
        *backing = made;
    return rc;
}

const char *dtn_backing_pages(const struct dtn_backing *backing)
{
    static const char *const words[] = {
        [DTN_PAGES_SMALL] = "small pages, for lack of huge ones",
        [DTN_PAGES_ASKED] = "huge pages as found (see vm.nr_hugepages, arena)",
        [DTN_PAGES_HUGE] = "huge pages that are set aside for it",
    };

    return words[backing->pages];
}

