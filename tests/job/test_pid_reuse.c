/* test_pid_reuse.c - a dead rank's process number is given to another process
 *
 * Private memory is copied from and to the process that has a number, and the
 * kernel gives the number of a dead process away again.  Rank 1 enters a call,
 * says where its buffer is and is killed; another process with the same
 * number, and other bytes in the same place, replaces it.  Rank 0, which comes
 * only now, must say that rank 1 is gone: it must neither read from the other
 * process nor write to it.  Once with pidfd_open(), once as on a kernel that
 * lacks it.
 *
 * Without this test, the library could write into the memory of a process that
 * is not in the job.
 */
#include "coll/request.h"
#include "dtensor.h"
#include "tests/support/world.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { COUNT = 8 << 20, STRANGE = 0xee };      /* bytes: never staged         */

struct tale {
    const char *what;
    bool old;                                  /* there is no pidfd_open()    */
    struct dtensor_call call;                  /* its root is rank 1          */
};

static const struct tale tales[] = {
    { "a stranger with a dead rank's number is not read", false,
      { .coll = DTENSOR_SCATTER, .root = 1, .dtype = DTENSOR_U8,
        .count = COUNT } },
    { "it is not written to", false,
      { .coll = DTENSOR_GATHER, .root = 1, .dtype = DTENSOR_U8,
        .count = COUNT } },
    { "it is not read where there is no pidfd_open()", true,
      { .coll = DTENSOR_SCATTER, .root = 1, .dtype = DTENSOR_U8,
        .count = COUNT } },
};

static unsigned char *mem;                     /* where it is in all of them  */
static int entered[2], enter[2], look[2];      /* pipes                       */

static void tell(const int pipe[2], char what)
{
    need(write(pipe[1], &what, 1) == 1, "pipe: %m");
}

static char hear(const int pipe[2])
{
    struct pollfd poll_fd = { .fd = pipe[0], .events = POLLIN };
    char what = 0;

    if (poll(&poll_fd, 1, 30000) != 1 || read(pipe[0], &what, 1) != 1)
        what = 'x';
    return what;
}

/* From now on pidfd_open() says ENOSYS. */
static void grow_old(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof steps / sizeof steps[0], steps };

    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
         && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
         "seccomp: %m");
}

/* The first call meets; into the second rank 1 goes first, and stays there. */
static void rank_main(int rank, int n, void *arg)
{
    const struct tale *tale = arg;
    struct dtensor_request *request;
    struct world world;
    uint64_t copied;
    int rc;

    (void)n;
    if (tale->old)
        grow_old();
    world_open(&world);
    memset(mem, rank, 2 * COUNT);
    need(dtensor_call_run(world.mesh, &tale->call, mem, mem + 2 * COUNT,
                          &world.err) == 0, "%s", world.err.text);
    copied = dtensor_copied_bytes(world.ctx);
    if (rank == 1) {
        need(dtensor_call_start(world.mesh, &tale->call, mem, mem + 2 * COUNT,
                                &request, &world.err) == 0, "%s",
             world.err.text);
        tell(entered, dtensor_copied_bytes(world.ctx) == copied ? 'e' : 's');
        pause();
    }
    need(hear(enter) == 'e', "nobody says when");
    rc = dtensor_call_run(world.mesh, &tale->call, mem, mem + 2 * COUNT,
                          &world.err);
    need(rc == DTENSOR_EPEER && world.err.rank == 1, "%s, %s",
         dtensor_errname(rc), rc ? world.err.text : "from a stranger");
    dtensor_fini(world.ctx);
}

/* It has the dead one's number and addresses, and succeeds if nobody wrote
 * there.
 */
static void stranger_main(void)
{
    bool same = true;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(mem, STRANGE, 4 * COUNT);
    tell(entered, 'e');
    need(hear(look) == 'l', "nobody says when");
    for (size_t i = 0; i < 4 * COUNT; i++)
        same &= mem[i] == STRANGE;
    _exit(same ? 0 : 1);
}

/* A child whose number is `pid`, which must be free; -1 where that is not to be
 * had.
 */
static pid_t fork_as(pid_t pid)
{
#ifdef SYS_clone3
    const uint64_t args[11] = { [4] = SIGCHLD, [8] = (uintptr_t)&pid, [9] = 1 };

    return (pid_t)syscall(SYS_clone3, args, sizeof args);
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int exit_of(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status)
         ? WEXITSTATUS(status) : -1;
}

/* NULL, or why it could not be tried.  Old kernels tell processes apart by when
 * they began, in ticks of 10 ms.
 */
static const char *try_tale(const struct tale *tale)
{
    const struct timespec ticks = { 0, 30000000 };
    pid_t pid[2], stranger;
    char job[32], lent;
    int wrong;

    snprintf(job, sizeof job, "stranger-%d", (int)getpid());
    for (int r = 0; r < 2; r++)
        pid[r] = rank_fork(r, 2, job, rank_main, (void *)tale);
    lent = hear(entered);
    need(lent != 'x', "rank 1 did not enter");
    kill(pid[1], SIGKILL);
    waitpid(pid[1], NULL, 0);
    nanosleep(&ticks, NULL);
    stranger = lent == 'e' ? fork_as(pid[1]) : -1;
    if (stranger == 0)
        stranger_main();
    if (stranger < 0) {
        kill(pid[0], SIGKILL);
        waitpid(pid[0], NULL, 0);
        return lent == 'e' ? "a process may not choose its number here"
                           : "processes may not read each other's memory here";
    }
    need(hear(entered) == 'e', "no stranger");
    tell(enter, 'e');
    wrong = exit_of(pid[0]) != 0;
    tell(look, 'l');
    wrong += exit_of(stranger) != 0;
    ok(wrong == 0, "%s", tale->what);
    return NULL;
}

int main(void)
{
    const char *path = ranks_file("shm", 2, "op_timeout = 20s\n"), *why;

    setenv("DTN_CLUSTER", path, 1);
    mem = malloc(4 * COUNT);
    if (!mem || pipe(entered) < 0 || pipe(enter) < 0 || pipe(look) < 0)
        return 99;
    for (size_t t = 0; t < sizeof tales / sizeof tales[0]; t++) {
        why = try_tale(&tales[t]);
        if (why)
            skip(tales[t].what, why);
    }
    unlink(path);
    return done();
}
