/* bytes.c - whole reads and writes at an offset
 *
 * A signal or the kernel's limit of 2 GiB can end pread() and pwrite() early:
 * of 3 GiB the first call writes 2147479552 bytes, the second the rest.
 */
#include "file/bytes.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* Count what a call did; false: it failed. */
static bool bytes_count(ssize_t done, size_t *bytes, uint64_t *at)
{
    if (done == 0)
        errno = EIO;
    if (done <= 0)
        return done < 0 && errno == EINTR;
    *bytes -= (size_t)done;
    *at += (uint64_t)done;
    return true;
}

int dtn_bytes_pread(int fd, void *buf, size_t bytes, uint64_t at)
{
    const uint64_t start = at;

    while (bytes > 0)
        if (!bytes_count(pread(fd, (char *)buf + (at - start), bytes,
                               (off_t)at), &bytes, &at))
            return -1;
    return 0;
}

int dtn_bytes_pwrite(int fd, const void *buf, size_t bytes, uint64_t at)
{
    const uint64_t start = at;

    while (bytes > 0)
        if (!bytes_count(pwrite(fd, (const char *)buf + (at - start), bytes,
                                (off_t)at), &bytes, &at))
            return -1;
    return 0;
}
