/* calls.c - the calls of the kernel and of threads that the linker wraps
 *
 * Outside of a run, and for real descriptors, they are the real ones.
 */
#include "tests/sim/kernel.h"
#include "tests/sim/memory.h"
#include "tests/sim/sim.h"
#include "tests/sim/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 20000             /* of a look that finds nothing             */
#define YIELD_NS 200000           /* of others, at most                       */
#define NAP_NS 4000000            /* a shorter sleep may take as long         */

/* Declares the wrapped call beside the real one. */
#define WRAPPED(type, name, ...)                                              \
    type __real_##name(__VA_ARGS__);                                          \
    type __wrap_##name(__VA_ARGS__)

static bool mine(int fd)
{
    if (!sim_self || fd < SIM_FD_BASE)
        return false;
    sim_call();
    return true;
}

/* ------------------------------------------------------------- sockets --- */

WRAPPED(int, socket, int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
    if (!sim_self)
        return __real_socket(family, type, protocol);
    sim_call();
    return sim_socket(family);
}

WRAPPED(int, bind, int fd, const struct sockaddr *at, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t size)
{
    return mine(fd) ? sim_bind(fd, at, size) : __real_bind(fd, at, size);
}

WRAPPED(int, listen, int fd, int n);
int __wrap_listen(int fd, int n)
{
    return mine(fd) ? sim_listen(fd) : __real_listen(fd, n);
}

WRAPPED(int, connect, int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    return mine(fd) ? sim_connect(fd, to, size) : __real_connect(fd, to, size);
}

WRAPPED(int, accept4, int fd, struct sockaddr *at, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *at, socklen_t *size, int flags)
{
    return mine(fd) ? sim_accept(fd) : __real_accept4(fd, at, size, flags);
}

WRAPPED(int, getsockname, int fd, struct sockaddr *at, socklen_t *size);
int __wrap_getsockname(int fd, struct sockaddr *at, socklen_t *size)
{
    return mine(fd) ? sim_name(fd, false, at, size)
                    : __real_getsockname(fd, at, size);
}

WRAPPED(int, getpeername, int fd, struct sockaddr *at, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *at, socklen_t *size)
{
    return mine(fd) ? sim_name(fd, true, at, size)
                    : __real_getpeername(fd, at, size);
}

WRAPPED(int, setsockopt, int fd, int level, int name, const void *value,
        socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
                      socklen_t size)
{
    return mine(fd) ? 0 : __real_setsockopt(fd, level, name, value, size);
}

WRAPPED(int, getsockopt, int fd, int level, int name, void *value,
        socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value,
                      socklen_t *size)
{
    if (!mine(fd))
        return __real_getsockopt(fd, level, name, value, size);
    if (level == SOL_SOCKET && name == SO_ERROR)
        *(int *)value = sim_error(fd);
    else if (level == SOL_SOCKET && name == SO_PEERCRED)
        *(struct ucred *)value = (struct ucred){ (pid_t)sim_peer_pid(fd),
                                                 geteuid(), getegid() };
    else if (level == IPPROTO_TCP && name == TCP_INFO)
        sim_tcp_info(fd, value);
    else
        return errno = ENOPROTOOPT, -1;
    return 0;
}

WRAPPED(ssize_t, sendmsg, int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return mine(fd) ? sim_send(fd, msg) : __real_sendmsg(fd, msg, flags);
}

WRAPPED(ssize_t, recvmsg, int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
    return mine(fd) ? sim_recv(fd, msg, flags)
                    : __real_recvmsg(fd, msg, flags);
}

WRAPPED(ssize_t, send, int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    struct iovec iov = { (void *)(uintptr_t)bytes, size };
    const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    return mine(fd) ? sim_send(fd, &msg) : __real_send(fd, bytes, size, flags);
}

WRAPPED(ssize_t, recv, int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    struct iovec iov = { bytes, size };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    return mine(fd) ? sim_recv(fd, &msg, flags)
                    : __real_recv(fd, bytes, size, flags);
}

WRAPPED(ssize_t, readv, int fd, const struct iovec *iov, int n);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int n)
{
    struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
                          .msg_iovlen = (size_t)n };

    return mine(fd) ? sim_recv(fd, &msg, 0) : __real_readv(fd, iov, n);
}

WRAPPED(int, shutdown, int fd, int how);
int __wrap_shutdown(int fd, int how)
{
    return mine(fd) ? sim_shutdown(fd) : __real_shutdown(fd, how);
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    return mine(fd) ? sim_close(fd) : sim_real_close(fd);
}

WRAPPED(int, ioctl, int fd, unsigned long request, void *value);
int __wrap_ioctl(int fd, unsigned long request, void *value)
{
    if (!mine(fd))
        return __real_ioctl(fd, request, value);
    *(int *)value = sim_unsent(fd);
    return 0;
}

int __wrap_fcntl(int fd, int command, long value);
int __wrap_fcntl(int fd, int command, long value)
{
    int copy;

    if (mine(fd))
        return command == F_DUPFD_CLOEXEC ? sim_duplicate(fd) : 0;
    copy = __real_fcntl(fd, command, value);
    if (sim_self && copy >= 0 && command == F_DUPFD_CLOEXEC)
        sim_real_note(copy);
    return copy;
}

/* ------------------------------------------------------------- waiting --- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int poll_look(struct pollfd *polls, nfds_t n, int64_t *next)
{
    int ready = 0;

    *next = SIM_NEVER;
    for (nfds_t i = 0; i < n; i++) {
        polls[i].revents = 0;
        if (polls[i].fd < 0)
            continue;
        ready += sim_ready(polls[i].fd, polls[i].events, &polls[i].revents);
        *next = earlier(*next, sim_ready_next(polls[i].fd));
    }
    return ready;
}

static int poll_until(struct pollfd *polls, nfds_t n, int64_t until)
{
    int64_t next;
    int ready;

    while ((ready = poll_look(polls, n, &next)) == 0 && sim_now() < until)
        sim_block(earlier(next, until), true);
    return ready;
}

WRAPPED(int, poll, struct pollfd *polls, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *polls, nfds_t n, int timeout_ms)
{
    if (!sim_self || (n == 1 && polls->fd >= 0 && polls->fd < SIM_FD_BASE))
        return __real_poll(polls, n, timeout_ms);
    sim_call();
    return poll_until(polls, n, timeout_ms < 0 ? SIM_NEVER
                      : sim_now() + timeout_ms * INT64_C(1000000));
}

WRAPPED(int, ppoll, struct pollfd *polls, nfds_t n, const struct timespec *wait,
        const sigset_t *signals);
int __wrap_ppoll(struct pollfd *polls, nfds_t n, const struct timespec *wait,
                 const sigset_t *signals)
{
    if (!sim_self)
        return __real_ppoll(polls, n, wait, signals);
    sim_call();
    return poll_until(polls, n, !wait ? SIM_NEVER
                      : wait->tv_sec > 100000 ? SIM_NEVER
                      : sim_now() + wait->tv_sec * INT64_C(1000000000)
                        + wait->tv_nsec);
}

WRAPPED(int, epoll_create1, int flags);
int __wrap_epoll_create1(int flags)
{
    return sim_self ? sim_epoll() : __real_epoll_create1(flags);
}

WRAPPED(int, epoll_ctl, int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    return mine(epoll) ? sim_epoll_change(epoll, op, fd, event)
                       : __real_epoll_ctl(epoll, op, fd, event);
}

/* A rank that looks in vain loses the CPU for a while. */
WRAPPED(int, epoll_wait, int epoll, struct epoll_event *events, int n, int ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int n, int ms)
{
    int got;

    if (!mine(epoll))
        return __real_epoll_wait(epoll, events, n, ms);
    got = sim_epoll_look(epoll, events, n);
    if (got > 0)
        return got;
    sim_block(earlier(sim_files_next(sim_self->process), sim_now() + POLL_NS),
              true);
    return sim_epoll_look(epoll, events, n);
}

WRAPPED(int, sched_yield, void);
int __wrap_sched_yield(void)
{
    if (!sim_self)
        return __real_sched_yield();
    sim_call();
    sim_block(earlier(sim_files_next(sim_self->process), sim_now() + YIELD_NS),
              true);
    return 0;
}

WRAPPED(int, nanosleep, const struct timespec *wait, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
    const int64_t ns = wait->tv_sec * INT64_C(1000000000) + wait->tv_nsec;

    if (!sim_self)
        return __real_nanosleep(wait, left);
    sim_call();
    if (ns >= NAP_NS)
        sim_block(sim_now() + ns, false);
    else
        sim_block(earlier(sim_files_next(sim_self->process) + ns,
                          sim_now() + NAP_NS), true);
    return 0;
}

WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    const int64_t hour = INT64_C(3600000000000);
    int64_t now = 1000 * hour;

    if (!sim_self)
        return __real_clock_gettime(clock, ts);
    sim_call();
    now += sim_now();
    if (clock != CLOCK_MONOTONIC) /* somebody sets the clock of the day */
        now += (int64_t)sim_random(2 * (uint64_t)hour) - hour;
    ts->tv_sec = now / 1000000000;
    ts->tv_nsec = now % 1000000000;
    return 0;
}

/* ----------------------------------------------------------- processes --- */

WRAPPED(int, sched_getaffinity, pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    if (!sim_self)
        return __real_sched_getaffinity(pid, size, set);
    memset(set, 0, size);
    CPU_SET_S(0, size, set);
    return 0;
}

WRAPPED(pid_t, getpid, void);
pid_t __wrap_getpid(void)
{
    return sim_self ? sim_pid(sim_self->process) : __real_getpid();
}

static long pidfd_open(pid_t pid)
{
    struct sim_process *process = sim_process(pid - sim_pid(sim_process(0)));

    if (process && process->state != SIM_ENDED)
        return sim_pidfd(process);
    errno = ESRCH;
    return -1;
}

WRAPPED(long, syscall, long number, long a, long b, long c, long d);
long __wrap_syscall(long number, long a, long b, long c, long d)
{
    if (!sim_self)
        return __real_syscall(number, a, b, c, d);
    sim_call();
    switch (number) {
    case SYS_pidfd_open:
        return pidfd_open((pid_t)a);
    case SYS_gettid:
        return sim_pid(sim_self->process) + 100000
             * (sim_self != sim_self->process->first);
    case SYS_set_robust_list:
        sim_self->robust = (struct robust_list_head *)a;
        return 0;
    default:
        return __real_syscall(number, a, b, c, d);
    }
}

WRAPPED(char *, getenv, const char *name);
char *__wrap_getenv(const char *name)
{
    return sim_self ? (char *)(uintptr_t)sim_options->env(sim_rank(), name)
                    : __real_getenv(name);
}

WRAPPED(ssize_t, getrandom, void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    if (!sim_self)
        return __real_getrandom(bytes, size, flags);
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)sim_random(256);
    return (ssize_t)size;
}
