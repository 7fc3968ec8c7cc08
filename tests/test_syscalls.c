/* test_syscalls.c - a life of two ranks when a system call fails, one after another
 *
 * The linker sends every system call of the library that can fail here (--wrap).
 * Of each kind the first, second, ... MOST-th call of rank 1 fails once, with an
 * error it can have.  Either nobody minds, or both ranks fail and say why; nobody
 * crashes or hangs, and no memory or descriptor is left behind.
 */
#include "tests/life.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

/* -------------------------------------------------------------- the calls --- */

static int failing = -1;            /* the kind of call                      */
static long countdown = -1;         /* of them that go well                  */

static bool fails(int kind)
{
    return kind == failing && countdown >= 0 && countdown-- == 0;
}

enum kind {
    KIND_accept4,
    KIND_bind,
    KIND_connect,
    KIND_epoll_create1,
    KIND_epoll_ctl,
    KIND_epoll_wait,
    KIND_fallocate,
    KIND_fopen,
    KIND_fstat,
    KIND_ftruncate,
    KIND_getaddrinfo,
    KIND_gethostname,
    KIND_getpeername,
    KIND_getrandom,
    KIND_getsockname,
    KIND_getsockopt,
    KIND_listen,
    KIND_madvise,
    KIND_mmap,
    KIND_nanosleep,
    KIND_poll,
    KIND_ppoll,
    KIND_process_vm_readv,
    KIND_process_vm_writev,
    KIND_read,
    KIND_readv,
    KIND_recv,
    KIND_recvmsg,
    KIND_sched_getaffinity,
    KIND_send,
    KIND_sendmsg,
    KIND_setsockopt,
    KIND_shutdown,
    KIND_socket,
    KIND_stat,
    KIND_sysinfo,
    KIND_open_memstream,
    KINDS
};

static const char *const kind_name[KINDS] = {
    [KIND_accept4] = "accept4",
    [KIND_bind] = "bind",
    [KIND_connect] = "connect",
    [KIND_epoll_create1] = "epoll_create1",
    [KIND_epoll_ctl] = "epoll_ctl",
    [KIND_epoll_wait] = "epoll_wait",
    [KIND_fallocate] = "fallocate",
    [KIND_fopen] = "fopen",
    [KIND_fstat] = "fstat",
    [KIND_ftruncate] = "ftruncate",
    [KIND_getaddrinfo] = "getaddrinfo",
    [KIND_gethostname] = "gethostname",
    [KIND_getpeername] = "getpeername",
    [KIND_getrandom] = "getrandom",
    [KIND_getsockname] = "getsockname",
    [KIND_getsockopt] = "getsockopt",
    [KIND_listen] = "listen",
    [KIND_madvise] = "madvise",
    [KIND_mmap] = "mmap",
    [KIND_nanosleep] = "nanosleep",
    [KIND_poll] = "poll",
    [KIND_ppoll] = "ppoll",
    [KIND_process_vm_readv] = "process_vm_readv",
    [KIND_process_vm_writev] = "process_vm_writev",
    [KIND_read] = "read",
    [KIND_readv] = "readv",
    [KIND_recv] = "recv",
    [KIND_recvmsg] = "recvmsg",
    [KIND_sched_getaffinity] = "sched_getaffinity",
    [KIND_send] = "send",
    [KIND_sendmsg] = "sendmsg",
    [KIND_setsockopt] = "setsockopt",
    [KIND_shutdown] = "shutdown",
    [KIND_socket] = "socket",
    [KIND_stat] = "stat",
    [KIND_sysinfo] = "sysinfo",
    [KIND_open_memstream] = "open_memstream",
};

#define CALL(type, name, params, args, failed, error)                         \
    type __real_##name params;                                                \
    type __wrap_##name params;                                                \
    type __wrap_##name params                                                 \
    {                                                                         \
        if (!fails(KIND_##name))                                              \
            return __real_##name args;                                        \
        errno = error;                                                        \
        return failed;                                                        \
    }

CALL(int, accept4, (int a, struct sockaddr *b, socklen_t *c, int d), (a, b, c,
     d), -1, EMFILE)
CALL(int, bind, (int a, const struct sockaddr *b, socklen_t c), (a, b, c), -1,
     EACCES)
CALL(int, connect, (int a, const struct sockaddr *b, socklen_t c), (a, b, c),
     -1, ENOBUFS)
CALL(int, epoll_create1, (int a), (a), -1, EMFILE)
CALL(int, epoll_ctl, (int a, int b, int c, struct epoll_event *d), (a, b, c,
     d), -1, ENOMEM)
CALL(int, epoll_wait, (int a, struct epoll_event *b, int c, int d), (a, b, c,
     d), -1, EINTR)
CALL(int, fallocate, (int a, int b, off_t c, off_t d), (a, b, c, d), -1,
     ENOSPC)
CALL(FILE *, fopen, (const char *a, const char *b), (a, b), NULL, EMFILE)
CALL(int, fstat, (int a, struct stat *b), (a, b), -1, EOVERFLOW)
CALL(int, ftruncate, (int a, off_t b), (a, b), -1, ENOMEM)
CALL(int, getaddrinfo, (const char *a, const char *b, const struct addrinfo
     *c, struct addrinfo **d), (a, b, c, d), EAI_MEMORY, ENOMEM)
CALL(int, gethostname, (char *a, size_t b), (a, b), -1, ENAMETOOLONG)
CALL(int, getpeername, (int a, struct sockaddr *b, socklen_t *c), (a, b, c),
     -1, ENOBUFS)
CALL(ssize_t, getrandom, (void *a, size_t b, unsigned c), (a, b, c), -1,
     EAGAIN)
CALL(int, getsockname, (int a, struct sockaddr *b, socklen_t *c), (a, b, c),
     -1, ENOBUFS)
CALL(int, getsockopt, (int a, int b, int c, void *d, socklen_t *e), (a, b, c,
     d, e), -1, ENOBUFS)
CALL(int, listen, (int a, int b), (a, b), -1, EADDRINUSE)
CALL(int, madvise, (void *a, size_t b, int c), (a, b, c), -1, ENOMEM)
CALL(void *, mmap, (void *a, size_t b, int c, int d, int e, off_t f), (a, b,
     c, d, e, f), MAP_FAILED, ENOMEM)
CALL(int, nanosleep, (const struct timespec *a, struct timespec *b), (a, b),
     -1, EINTR)
CALL(int, poll, (struct pollfd *a, nfds_t b, int c), (a, b, c), -1, ENOMEM)
CALL(int, ppoll, (struct pollfd *a, nfds_t b, const struct timespec *c, const
     sigset_t *d), (a, b, c, d), -1, ENOMEM)
CALL(ssize_t, process_vm_readv, (pid_t a, const struct iovec *b, unsigned long
     c, const struct iovec *d, unsigned long e, unsigned long f), (a, b, c, d,
     e, f), -1, ENOMEM)
CALL(ssize_t, process_vm_writev, (pid_t a, const struct iovec *b, unsigned
     long c, const struct iovec *d, unsigned long e, unsigned long f), (a, b,
     c, d, e, f), -1, ENOMEM)
CALL(ssize_t, read, (int a, void *b, size_t c), (a, b, c), -1, EIO)
CALL(ssize_t, readv, (int a, const struct iovec *b, int c), (a, b, c), -1,
     ENOMEM)
CALL(ssize_t, recv, (int a, void *b, size_t c, int d), (a, b, c, d), -1,
     ENOMEM)
CALL(ssize_t, recvmsg, (int a, struct msghdr *b, int c), (a, b, c), -1,
     ENOMEM)
CALL(int, sched_getaffinity, (pid_t a, size_t b, cpu_set_t *c), (a, b, c), -1,
     ESRCH)
CALL(ssize_t, send, (int a, const void *b, size_t c, int d), (a, b, c, d), -1,
     ENOBUFS)
CALL(ssize_t, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c), -1,
     ENOBUFS)
CALL(int, setsockopt, (int a, int b, int c, const void *d, socklen_t e), (a,
     b, c, d, e), -1, ENOBUFS)
CALL(int, shutdown, (int a, int b), (a, b), -1, ENOTCONN)
CALL(int, socket, (int a, int b, int c), (a, b, c), -1, EMFILE)
CALL(int, stat, (const char *a, struct stat *b), (a, b), -1, ENOMEM)
CALL(int, sysinfo, (struct sysinfo *a), (a), -1, EFAULT)
CALL(FILE *, open_memstream, (char **a, size_t *b), (a, b), NULL, ENOMEM)

/* ------------------------------------------------------------- two ranks --- */

enum { MOST = 12, POINTS = KINDS * MOST, PARALLEL = 16 };

/* What two ranks find, in memory they share with the test. */
struct trial {
    struct report {
        int rc, step;
        struct dtensor_error err;
        char wrong[64];
    } report[2];
    bool hit;                       /* there was such a call                 */
    int bad;                        /* ranks that crashed or hung            */
};

struct attempt {
    struct trial *trial;
    const char *path;
    int point;
};

static void rank_life(int rank, int nranks, void *arg)
{
    static struct life life;
    const struct attempt *attempt = arg;
    struct report *report = &attempt->trial->report[rank];
    const char *wrong = NULL;
    const int fds = open_fds();
    int s = 0;

    life_begin(&life, attempt->path);
    if (rank == 1) {
        failing = attempt->point / MOST;
        countdown = attempt->point % MOST;
    }
    while (s < NSTEPS && report->rc == 0)
        report->rc = life_step(&life, &steps[s++], &report->err, &wrong);
    report->step = s - 1;
    if (rank == 1)
        attempt->trial->hit = countdown < 0;
    failing = -1;
    life_end(&life);
    if (!wrong && open_fds() != fds)
        wrong = "a descriptor is left behind";
    snprintf(report->wrong, sizeof report->wrong, "%s", wrong ? wrong : "");
}

static bool trial_good(const struct trial *t)
{
    const struct report *a = &t->report[0], *b = &t->report[1];

    return !t->bad && !*a->wrong && !*b->wrong && (a->rc == 0) == (b->rc == 0);
}

static void trial_show(const struct trial *t, int point)
{
    note("%s, call %d: %d ranks crashed or hung", kind_name[point / MOST],
         point % MOST + 1, t->bad);
    for (int r = 0; r < 2; r++)
        note("rank %d, %s: %s %s %s", r, steps[t->report[r].step].name,
             dtensor_errname(t->report[r].rc), t->report[r].err.text,
             t->report[r].wrong);
}

/* Of a kind no more than there are. */
static void try_some(struct trial *trials, const char *path, int first)
{
    for (int kind = first; kind < KINDS; kind += PARALLEL)
        for (int p = kind * MOST; p < (kind + 1) * MOST; p++) {
            struct attempt attempt = { &trials[p], path, p };

            trials[p].bad = ranks_run(2, 30, rank_life, &attempt, NULL);
            if (!trials[p].hit)
                break;
        }
}

static void test_two(const char *wire)
{
    struct trial *trials = mmap(NULL, sizeof *trials * POINTS,
                                PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *path = ranks_file(wire, 2, "connect_timeout = 1s\n"
                                  "[redistribute]\npipeline = 4K\n");
    int hit = 0, failed = 0, bad = 0;

    if (trials == MAP_FAILED)
        exit(99);
    for (int i = 0; i < PARALLEL; i++) {
        fflush(stdout);
        if (fork() == 0) {
            try_some(trials, path, i);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    remove(path);
    for (int p = 0; p < POINTS; p++) {
        hit += trials[p].hit;
        failed += trials[p].report[0].rc != 0;
        if (!trial_good(&trials[p]) && bad++ < 5)
            trial_show(&trials[p], p);
    }
    ok(hit > 30 && bad == 0, "two ranks over %s: each of %d system calls of rank "
       "1 may fail; %d times both failed in words, else nobody minded", wire,
       hit, failed);
    munmap(trials, sizeof *trials * POINTS);
}

int main(void)
{
    test_two("shm");
    test_two("tcp");
    return done();
}
