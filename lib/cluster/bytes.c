/* bytes.c - a cluster file as bytes, read safely
 *
 * A path may name a directory (which inih reads as an empty file), a FIFO that
 * blocks for ever, or a file of 40 GB.  So the file is opened without blocking,
 * the opened file is tested instead of its name, and at most 1 MiB + 1 byte is
 * read.  Symbolic links are followed, because `current.ini -> gpu-2026.ini` is
 * common.  The permissions that count are those of the link's target.
 */
#include "cluster/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Report a failed system call and return it as the error. */
static int bytes_fail_sys(struct dtn_findings *findings, const char *what,
                          struct dtensor_error *err)
{
    int saved = errno;

    dtn_finding(findings, 0, "cannot %s: %m", what);
    dtn_findings_flush(findings, NULL);
    return dtn_fail_sys(err, saved, "%s: error: cannot %s: %m",
                        *findings->path ? findings->path : "\"\"", what);
}

/* Is it a regular file?  Other users who can write to it can redirect the data
 * of this job.  This gives a warning and not an error, because shared project
 * files and file systems without owners are common.
 */
static bool bytes_trusted(int fd, struct dtn_findings *findings)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        dtn_finding(findings, 0, "cannot look at it: %m");
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        dtn_finding(findings, 0, "is %s; expected a regular file",
                    S_ISDIR(st.st_mode) ? "a directory" :
                    S_ISFIFO(st.st_mode) ? "a FIFO" : "a device or socket");
        return false;
    }
    if (st.st_uid != 0 && st.st_uid != geteuid())
        dtn_finding_warn(findings, 0, "belongs to user %u; expected you or "
                         "root", (unsigned)st.st_uid);
    if (st.st_mode & S_IWOTH)
        dtn_finding_warn(findings, 0, "everybody may write to it; expected "
                         "chmod o-w");
    return true;
}

/* Read up to `max` bytes, fewer only at the end of the file; -1: errno. */
static ssize_t bytes_load(int fd, char *bytes, size_t max)
{
    size_t used = 0;
    ssize_t n;

    while (used < max) {
        n = read(fd, bytes + used, max - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static int bytes_take(int fd, struct dtn_findings *findings, char **bytesp,
                      size_t *np, struct dtensor_error *err)
{
    char *bytes;
    ssize_t n;

    if (!bytes_trusted(fd, findings))
        return dtn_findings_flush(findings, err);
    bytes = malloc(DTN_FILE_MAX + 1);
    if (!bytes)
        return dtn_fail_nomem(err, findings->path, DTN_FILE_MAX + 1);
    n = bytes_load(fd, bytes, DTN_FILE_MAX + 1);
    if (n < 0) {
        free(bytes);
        return bytes_fail_sys(findings, "read", err);
    }
    if (n > DTN_FILE_MAX) {
        free(bytes);
        dtn_finding(findings, 0, "has more than %d bytes; expected a cluster "
                    "file", DTN_FILE_MAX);
        return dtn_findings_flush(findings, err);
    }
    bytes[n] = '\0';
    *bytesp = bytes;
    *np = (size_t)n;
    return 0;
}

int dtn_bytes_read(struct dtn_findings *findings, char **bytesp, size_t *np,
                   struct dtensor_error *err)
{
    int fd = open(findings->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int rc;

    if (fd < 0)
        return bytes_fail_sys(findings, "open", err);
    rc = bytes_take(fd, findings, bytesp, np, err);
    close(fd);
    return rc;
}

int dtn_bytes_bad(const char *text, size_t n)
{
    size_t length;

    for (size_t i = 0; i < n; i += length) {
        const unsigned char byte = (unsigned char)text[i];

        length = dtn_utf8_length(text + i, n - i);
        if (length == 0 || (byte < 0x20 && byte != '\t') || byte == 0x7F)
            return byte;
    }
    return -1;
}
