/* launch.c - the tool starts its own ranks
 *
 * `dtensor-bench --local 4` forks four children before anything else happens
 * and gives each the variables dtensor-run would: rank, world size, job.  The
 * children die with their parent (PR_SET_PDEATHSIG).  When one fails,
 * its peers detect it and print their errors; ranks that still run after 5 s
 * are killed.
 */
#include "tools/bench/bench.h"
#include "tools/bench/launch.h"
#include "tools/bench/session.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAUNCH_GRACE_NS INT64_C(5000000000)

static void launch_setenv(const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)value);
    setenv(name, text, 1);
}

static void launch_become(int rank, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(BENCH_LOST);        /* the parent was gone before that */
    launch_setenv("DTN_RANK", rank);
    launch_setenv("DTN_LOCAL_RANK", rank);
}

/* Set what all ranks share. */
static void launch_job(int n, pid_t parent)
{
    char job[40];

    snprintf(job, sizeof job, "bench-%d", (int)parent);
    setenv("DTN_JOB", job, 1);
    launch_setenv("DTN_WORLD_SIZE", n);
    launch_setenv("DTN_LOCAL_SIZE", n);
    launch_setenv("DTN_LAUNCH_NS", session_now_ns());
}

static void launch_kill(const pid_t pid[], int n)
{
    for (int r = 0; r < n; r++)
        if (pid[r] > 0)
            kill(pid[r], SIGKILL);
}

/* Exit code for a wait status; prints the signal of a rank that was killed,
 * unless this process killed it.
 */
static int launch_code(int rank, int status, bool ended_by_us)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    if (!ended_by_us)
        fprintf(stderr, "dtensor-bench: rank %d was killed by signal %d "
                "(%s)\n", rank, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    return BENCH_LOST;
}

/* The next child to end: blocks, or with a deadline returns 0 once past it. */
static pid_t launch_wait_one(int *status, int64_t deadline_ns)
{
    const struct timespec tick = { 0, 10000000 };
    pid_t pid;

    for (;;) {
        pid = waitpid(-1, status, deadline_ns ? WNOHANG : 0);
        if (pid > 0 || (pid < 0 && errno != EINTR))
            return pid;
        if (deadline_ns && session_now_ns() > deadline_ns)
            return 0;
        if (deadline_ns)
            nanosleep(&tick, NULL);
    }
}

static int launch_wait(pid_t pid[], int n)
{
    int64_t deadline_ns = 0;
    int first = 0, code, status, rank;
    bool killed = false;
    pid_t ended;

    for (int left = n; left > 0;) {
        ended = launch_wait_one(&status, deadline_ns);
        if (ended < 0)
            break;
        if (ended == 0) {
            launch_kill(pid, n);
            killed = true;
            deadline_ns = 0;
            continue;
        }
        for (rank = 0; rank < n && pid[rank] != ended;)
            rank++;
        if (rank == n)
            continue;
        pid[rank] = 0;
        left--;
        code = launch_code(rank, status, killed);
        if (code && !first) {
            first = code;
            deadline_ns = session_now_ns() + LAUNCH_GRACE_NS;
        }
    }
    return first;
}

int launch_local(int n, int *codep)
{
    pid_t parent = getpid();
    pid_t *pid = calloc((size_t)n, sizeof *pid);

    *codep = BENCH_LOST;
    if (!pid)
        return -1;
    launch_job(n, parent);
    fflush(NULL);
    for (int r = 0; r < n; r++) {
        pid[r] = fork();
        if (pid[r] == 0) {
            free(pid);
            launch_become(r, parent);
            return r;
        }
        if (pid[r] < 0) {
            fprintf(stderr, "dtensor-bench: cannot start rank %d of %d: %s "
                    "(see ulimit -u)\n", r, n, strerror(errno));
            launch_kill(pid, r);
            free(pid);
            return -1;
        }
    }
    *codep = launch_wait(pid, n);
    free(pid);
    return -1;
}

bool launch_time_ns(int64_t *nsp)
{
    const char *text = getenv("DTN_LAUNCH_NS");
    long long ns = text ? strtoll(text, NULL, 10) : 0;

    if (ns <= 0 || ns > session_now_ns())
        return false;
    *nsp = ns;
    return true;
}
