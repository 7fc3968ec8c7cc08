/* syscalls.c - the system calls of the library, each of which can fail */
#include "config.h"
#include "base/wait.h"
#include "tests/job/syscalls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Type, name, parameters, arguments, what it returns on failure, and why. */
#define SYSCALLS(X)                                                           \
    X(int, accept4, (int a, struct sockaddr *b, socklen_t *c, int d), (a, b,  \
      c, d), -1, EMFILE)                                                      \
    X(int, bind, (int a, const struct sockaddr *b, socklen_t c), (a, b, c),   \
      -1, EACCES)                                                             \
    X(int, connect, (int a, const struct sockaddr *b, socklen_t c), (a, b,    \
      c), -1, ENOBUFS)                                                        \
    X(int, epoll_create1, (int a), (a), -1, EMFILE)                           \
    X(int, epoll_ctl, (int a, int b, int c, struct epoll_event *d), (a, b,    \
      c, d), -1, ENOMEM)                                                      \
    X(int, epoll_wait, (int a, struct epoll_event *b, int c, int d), (a, b,   \
      c, d), -1, EINTR)                                                       \
    X(int, fallocate, (int a, int b, off_t c, off_t d), (a, b, c, d), -1,     \
      ENOSPC)                                                                 \
    X(int, fcntl, (int a, int b, long c), (a, b, c), -1, EMFILE)              \
    X(char *, fgets, (char *a, int b, FILE *c), (a, b, c), NULL, EIO)         \
    X(FILE *, fopen, (const char *a, const char *b), (a, b), NULL, EMFILE)    \
    X(int, fstat, (int a, struct stat *b), (a, b), -1, EOVERFLOW)             \
    X(int, ftruncate, (int a, off_t b), (a, b), -1, ENOMEM)                   \
    X(int, getaddrinfo, (const char *a, const char *b, const struct addrinfo  \
      *c, struct addrinfo **d), (a, b, c, d), EAI_MEMORY, ENOMEM)             \
    X(int, gethostname, (char *a, size_t b), (a, b), -1, ENAMETOOLONG)        \
    X(int, getpeername, (int a, struct sockaddr *b, socklen_t *c), (a, b,     \
      c), -1, ENOBUFS)                                                        \
    X(ssize_t, getrandom, (void *a, size_t b, unsigned c), (a, b, c), -1,     \
      EAGAIN)                                                                 \
    X(int, getrlimit, (int a, struct rlimit *b), (a, b), -1, EFAULT)          \
    X(int, getsockname, (int a, struct sockaddr *b, socklen_t *c), (a, b,     \
      c), -1, ENOBUFS)                                                        \
    X(int, getsockopt, (int a, int b, int c, void *d, socklen_t *e), (a, b,   \
      c, d, e), -1, ENOBUFS)                                                  \
    X(const char *, inet_ntop, (int a, const void *b, char *c, socklen_t d),  \
      (a, b, c, d), NULL, ENOSPC)                                             \
    X(int, ioctl, (int a, unsigned long b, void *c), (a, b, c), -1, ENOTTY)   \
    X(int, kill, (pid_t a, int b), (a, b), -1, EPERM)                         \
    X(int, listen, (int a, int b), (a, b), -1, ENOBUFS)                       \
    X(int, madvise, (void *a, size_t b, int c), (a, b, c), -1, ENOMEM)        \
    X(int, memfd_create, (const char *a, unsigned b), (a, b), -1, EMFILE)     \
    X(void *, mmap, (void *a, size_t b, int c, int d, int e, off_t f), (a,    \
      b, c, d, e, f), MAP_FAILED, ENOMEM)                                     \
    X(int, nanosleep, (const struct timespec *a, struct timespec *b), (a,     \
      b), -1, EINTR)                                                          \
    X(int, open, (const char *a, int b, mode_t c), (a, b, c), -1, EMFILE)     \
    X(FILE *, open_memstream, (char **a, size_t *b), (a, b), NULL, ENOMEM)    \
    X(int, poll, (struct pollfd *a, nfds_t b, int c), (a, b, c), -1, ENOMEM)  \
    X(int, ppoll, (struct pollfd *a, nfds_t b, const struct timespec *c,      \
      const sigset_t *d), (a, b, c, d), -1, ENOMEM)                           \
    X(ssize_t, process_vm_readv, (pid_t a, const struct iovec *b, unsigned    \
      long c, const struct iovec *d, unsigned long e, unsigned long f), (a, b, \
      c, d, e, f), -1, ENOMEM)                                                \
    X(ssize_t, process_vm_writev, (pid_t a, const struct iovec *b, unsigned   \
      long c, const struct iovec *d, unsigned long e, unsigned long f), (a, b, \
      c, d, e, f), -1, ENOMEM)                                                \
    X(ssize_t, read, (int a, void *b, size_t c), (a, b, c), -1, EIO)          \
    X(ssize_t, readv, (int a, const struct iovec *b, int c), (a, b, c), -1,   \
      ENOMEM)                                                                 \
    X(ssize_t, recv, (int a, void *b, size_t c, int d), (a, b, c, d), -1,     \
      ENOMEM)                                                                 \
    X(ssize_t, recvmsg, (int a, struct msghdr *b, int c), (a, b, c), -1,      \
      ENOMEM)                                                                 \
    X(int, sched_getaffinity, (pid_t a, size_t b, cpu_set_t *c), (a, b, c),   \
      -1, ESRCH)                                                              \
    X(int, sched_setaffinity, (pid_t a, size_t b, const cpu_set_t *c), (a,    \
      b, c), -1, EINVAL)                                                      \
    X(ssize_t, send, (int a, const void *b, size_t c, int d), (a, b, c, d),   \
      -1, ENOBUFS)                                                            \
    X(ssize_t, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c),    \
      -1, ENOBUFS)                                                            \
    X(int, setsockopt, (int a, int b, int c, const void *d, socklen_t e),     \
      (a, b, c, d, e), -1, ENOBUFS)                                           \
    X(int, shutdown, (int a, int b), (a, b), -1, ENOTCONN)                    \
    X(int, socket, (int a, int b, int c), (a, b, c), -1, EMFILE)              \
    X(int, stat, (const char *a, struct stat *b), (a, b), -1, ENOMEM)         \
    X(long, syscall, (long a, long b, long c, long d), (a, b, c, d), -1,      \
      ENOSYS)                                                                 \
    X(int, sysinfo, (struct sysinfo *a), (a), -1, EFAULT)                     \
    X(ssize_t, write, (int a, const void *b, size_t c), (a, b, c), -1, EIO)

/* These do what they are to do and then say that they failed. */
#define SYSCALLS_LATE(X)                                                      \
    X(int, close, (int a), (a), -1, EIO)                                      \
    X(int, fclose, (FILE *a), (a), EOF, ENOSPC)                               \
    X(int, ferror, (FILE *a), (a), 1, EIO)                                    \
    X(int, fflush, (FILE *a), (a), EOF, ENOSPC)                               \
    X(int, munmap, (void *a, size_t b), (a, b), -1, ENOMEM)

/* Calls of libibverbs, without its types.  Some return errno. */
#ifdef HAVE_VERBS
#define VERBS(X)                                                              \
    X(int, _ibv_query_gid_ex, (void *a, uint32_t b, uint32_t c, void *d,      \
      uint32_t e, size_t f), (a, b, c, d, e, f), EIO, EIO)                    \
    X(void *, ibv_alloc_pd, (void *a), (a), NULL, ENOMEM)                     \
    X(void *, ibv_create_ah, (void *a, void *b), (a, b), NULL, ENOMEM)        \
    X(void *, ibv_create_cq, (void *a, int b, void *c, void *d, int e), (a,   \
      b, c, d, e), NULL, ENOMEM)                                              \
    X(void *, ibv_create_qp, (void *a, void *b), (a, b), NULL, ENOMEM)        \
    X(void *, ibv_get_device_list, (int *a), (a), NULL, ENOMEM)               \
    X(int, ibv_modify_qp, (void *a, void *b, int c), (a, b, c), ENOMEM,       \
      ENOMEM)                                                                 \
    X(void *, ibv_open_device, (void *a), (a), NULL, EACCES)                  \
    X(int, ibv_query_device, (void *a, void *b), (a, b), EIO, EIO)            \
    X(int, ibv_query_gid, (void *a, uint8_t b, int c, void *d), (a, b, c,     \
      d), -1, EIO)                                                            \
    X(int, ibv_query_pkey, (void *a, uint8_t b, int c, void *d), (a, b, c,    \
      d), -1, EIO)                                                            \
    X(int, ibv_query_port, (void *a, uint8_t b, void *c), (a, b, c), EIO,     \
      EIO)                                                                    \
    X(void *, ibv_reg_mr, (void *a, void *b, size_t c, int d), (a, b, c, d),  \
      NULL, ENOMEM)
#define VERBS_LATE(X)                                                         \
    X(int, ibv_close_device, (void *a), (a), -1, EIO)                         \
    X(int, ibv_dealloc_pd, (void *a), (a), EBUSY, EBUSY)                      \
    X(int, ibv_dereg_mr, (void *a), (a), EBUSY, EBUSY)                        \
    X(int, ibv_destroy_ah, (void *a), (a), EIO, EIO)                          \
    X(int, ibv_destroy_cq, (void *a), (a), EBUSY, EBUSY)                      \
    X(int, ibv_destroy_qp, (void *a), (a), EBUSY, EBUSY)
#else
#define VERBS(X)
#define VERBS_LATE(X)
#endif

enum kind {
#define SYSCALL_KIND(type, name, ...) KIND_##name,
    SYSCALLS(SYSCALL_KIND)
    SYSCALLS_LATE(SYSCALL_KIND)
    VERBS(SYSCALL_KIND)
    VERBS_LATE(SYSCALL_KIND)
    KIND_END
};
_Static_assert((int)KIND_END <= KINDS, "KINDS counts all lists");

const char *const kind_name[KINDS] = {
#define SYSCALL_NAME(type, name, ...) #name,
    SYSCALLS(SYSCALL_NAME)
    SYSCALLS_LATE(SYSCALL_NAME)
    VERBS(SYSCALL_NAME)
    VERBS_LATE(SYSCALL_NAME)
};

struct syscalls syscalls = { .kind = -1 };

static bool syscall_fails(int kind)
{
    syscalls.made[kind]++;
    if (kind != syscalls.kind || syscalls.left-- != 0)
        return false;
    syscalls.at_ns = dtn_now_ns();
    return true;
}

#define SYSCALL_WRAP(type, name, params, args, failed, error)                 \
    type __real_##name params;                                                \
    type __wrap_##name params;                                                \
    type __wrap_##name params                                                 \
    {                                                                         \
        if (!syscall_fails(KIND_##name))                                      \
            return __real_##name args;                                        \
        errno = error;                                                        \
        return failed;                                                        \
    }
#define SYSCALL_WRAP_LATE(type, name, params, args, failed, error)            \
    type __real_##name params;                                                \
    type __wrap_##name params;                                                \
    type __wrap_##name params                                                 \
    {                                                                         \
        const type done = __real_##name args;                                 \
                                                                              \
        if (!syscall_fails(KIND_##name))                                      \
            return done;                                                      \
        errno = error;                                                        \
        return failed;                                                        \
    }
SYSCALLS(SYSCALL_WRAP)
SYSCALLS_LATE(SYSCALL_WRAP_LATE)
VERBS(SYSCALL_WRAP)
VERBS_LATE(SYSCALL_WRAP_LATE)
