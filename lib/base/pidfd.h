/* pidfd.h - descriptors of processes
 *
 * glibc has no functions for all of them, and headers older than Linux 5.6, as
 * those of RHEL 8, no numbers of the calls.  The numbers are the same on each
 * architecture.  Older kernels return -1 with ENOSYS.
 */
#ifndef DTN_BASE_PIDFD_H
#define DTN_BASE_PIDFD_H

#include <sys/types.h>
#include <unistd.h>

enum { DTN_SYS_PIDFD_OPEN = 434, DTN_SYS_PIDFD_GETFD = 438 };

/* A descriptor that can be read once the process has ended; -1: errno. */
static inline int dtn_pidfd_open(pid_t pid)
{
    return (int)syscall(DTN_SYS_PIDFD_OPEN, pid, 0);
}

/* Descriptor `fd` of that process in this one, close-on-exec; -1: errno. */
static inline int dtn_pidfd_getfd(int pidfd, int fd)
{
    return (int)syscall(DTN_SYS_PIDFD_GETFD, pidfd, fd, 0);
}

#endif
