/* process.c - the process of a peer, and its memory
 *
 * A rank of this host is a process, which can die.  The kernel can copy from
 * and to its memory (cross-memory attach): a system call copies each byte once,
 * where a copy into shared memory and one out of it copy it twice.  The call
 * takes 2 us and some 100 ns for each page, so it can be faster from 32 KiB on:
 * 64 KiB of a peer's dirty memory take 8 us.  Debuggers use the same call, so
 * it fails where they are forbidden, by a container or by Yama.
 */
#include "transport/process.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Read state and start time of process `pid`, which may be "self", from /proc.
 * Returns its number there, or -1.
 */
static int64_t process_stat(const char *pid, char *state, uint64_t *start)
{
    char path[64], text[1024];
    const char *after;
    unsigned long long begun;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    after = strrchr(text, ')');   /* the name before it may hold anything */
    if (!after || sscanf(after, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                         "%*u %*u %*d %*d %*d %*d %*d %*d %llu",
                         state, &begun) != 2)
        return -1;
    *start = begun;
    return strtoll(text, NULL, 10);
}

struct dtn_process dtn_process_self(void)
{
    struct dtn_process self = { .pid = getpid() };
    struct stat space;
    char state;

    /* A /proc of another pid namespace shows other processes. */
    if (process_stat("self", &state, &self.start) != self.pid ||
        stat("/proc/self/ns/pid", &space) < 0)
        self.start = 0;
    else
        self.pid_space = space.st_ino;
    return self;
}

bool dtn_process_is_dead(const struct dtn_process *process)
{
    uint64_t start;
    char pid[24], state;

    snprintf(pid, sizeof pid, "%lld", (long long)process->pid);
    if (process_stat(pid, &state, &start) < 0)
        return kill((pid_t)process->pid, 0) < 0 && errno == ESRCH;
    return state == 'Z' || state == 'X' || start != process->start;
}

bool dtn_pidfd_is_dead(int pidfd)
{
    struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN);
}

/* process_vm_readv() or process_vm_writev(). */
typedef ssize_t move_f(pid_t pid, const struct iovec *here,
                       unsigned long nhere, const struct iovec *there,
                       unsigned long nthere, unsigned long flags);

static int process_move(const struct dtn_process *process, move_f *move,
                        const void *mem, uint64_t addr, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct iovec here = { (char *)(uintptr_t)mem + done, size - done };
        struct iovec there = { (char *)(uintptr_t)addr + done, size - done };
        ssize_t n = move((pid_t)process->pid, &here, 1, &there, 1, 0);

        if (n <= 0)
            return n < 0 && errno == ESRCH ? DTENSOR_EPEER : DTENSOR_ESYS;
        done += (size_t)n;
    }
    return 0;
}

int dtn_process_read(const struct dtn_process *process, void *mem,
                     uint64_t addr, size_t size)
{
    return process_move(process, process_vm_readv, mem, addr, size);
}

int dtn_process_write(const struct dtn_process *process, uint64_t addr,
                      const void *mem, size_t size)
{
    return process_move(process, process_vm_writev, mem, addr, size);
}
