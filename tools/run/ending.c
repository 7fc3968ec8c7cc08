/* ending.c - how a job ends: signals, ranks that have failed, deadlines
 *
 * A rank that fails ends the job: the others have a second to notice, to print
 * their errors and to exit.  Then they get SIGTERM, and those that still run
 * after the grace time (2 s) get SIGKILL.  A signal to dtensor-run does the
 * same without that second.
 */
#include "tools/run/run.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 10                /* between two looks for who is left        */
#define SETTLE_MS 1000            /* for ranks to print their errors          */

const struct run_signal run_signals[] = {
    { SIGINT, true }, { SIGTERM, true }, { SIGHUP, true }, { SIGQUIT, true },
    { SIGUSR1, false }, { SIGUSR2, false }, { SIGTSTP, false },
    { SIGCONT, false },
};
const int run_nsignals = sizeof run_signals / sizeof run_signals[0];

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* -------------------------------------------------------------- killing --- */

/* The parent of a process, from "PID (any text) S PPID ..."; 0: it is gone. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512] = "";
    const char *end;
    FILE *file;
    int parent = 0;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
        return 0;
    return parent;
}

void run_kill_children(int sig)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]) &&
            parent_of(entry->d_name) == getpid())
            kill(atoi(entry->d_name), sig);
    if (dir)
        closedir(dir);
}

/* To every rank and what it has started.  A rank's number stays its own until
 * it has been waited for, so no stranger can be hit.
 */
static void ranks_kill(const struct run *run, int sig)
{
    for (int r = 0; r < run->options->nranks; r++)
        if (run->pids[r])
            kill(-run->pids[r], sig);
}

/* The job is to end: by `sig` now, or by SIGKILL when the grace is over.  A
 * stopped process is woken, or it would not hear.
 */
void run_end(struct run *run, int sig)
{
    ranks_kill(run, sig);
    run_kill_children(sig);
    ranks_kill(run, SIGCONT);
    if (run->deadline_ms == 0)
        run->deadline_ms = now_ms() + run->options->grace_ms;
}

static void job_kill(struct run *run)
{
    run->killing = true;
    ranks_kill(run, SIGKILL);
    run_kill_children(SIGKILL);
}

/* --------------------------------------------------------------- events --- */

long run_memory_kills(void)
{
    FILE *file = fopen("/proc/vmstat", "re");
    char line[200];
    long kills = 0;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "oom_kill %ld", &kills) == 1)
            break;
    if (file)
        fclose(file);
    return kills;
}

/* "rank 2 (pid 123) was killed by signal 9 (Killed); ending the other 3 ranks"
 */
static void tell_cause(struct run *run)
{
    const struct run_cause *cause = &run->cause;
    const bool memory = WIFSIGNALED(cause->status)
        && WTERMSIG(cause->status) == SIGKILL
        && run_memory_kills() > run->memory_kills;
    char how[80], rest[40] = "";

    if (run->cause.told || run->told)
        return;
    run->cause.told = true;
    if (WIFSIGNALED(cause->status))
        snprintf(how, sizeof how, "was killed by signal %d (%s)",
                 WTERMSIG(cause->status), strsignal(WTERMSIG(cause->status)));
    else
        snprintf(how, sizeof how, "exited with code %d",
                 WEXITSTATUS(cause->status));
    if (run->running == 1)
        snprintf(rest, sizeof rest, "; ending the other rank");
    else if (run->running > 1)
        snprintf(rest, sizeof rest, "; ending the other %d ranks",
                 run->running);
    dprintf(2, "dtensor-run: rank %d (pid %d) %s%s%s\n", cause->rank,
            (int)cause->pid, how, memory ? ", and this machine was out of "
            "memory (see dmesg)" : "", rest);
}

/* The time for the other ranks is over, or all have ended: the cause is final,
 * and the ranks that still run are ended.
 */
static void job_settle(struct run *run)
{
    const int status = run->cause.status;

    run->settle_ms = 0;
    run->failed = true;
    run->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                    : WEXITSTATUS(status);
    tell_cause(run);
    run_end(run, SIGTERM);
}

/* A rank has failed.  The end of a killed rank is reported late, with much
 * memory later than another rank needs to notice and to exit.  So a signal
 * counts more than an exit code, and of two signals the first.
 */
static void rank_failed(struct run *run, int rank, pid_t pid, int status)
{
    struct run_cause *cause = &run->cause;

    if (!cause->known ||
        (WIFSIGNALED(status) && !WIFSIGNALED(cause->status)))
        *cause = (struct run_cause){ .known = true, .rank = rank, .pid = pid,
                                     .status = status };
    if (run->told) {
        job_settle(run);
        return;
    }
    if (run->settle_ms == 0)
        run->settle_ms = now_ms() + SETTLE_MS;
    if (WIFSIGNALED(status))
        tell_cause(run);
}

static void rank_ended(struct run *run, int rank, int status)
{
    pid_t pid = run->pids[rank];

    run->pids[rank] = 0;
    run->running--;
    if (status != 0 && !run->failed)
        rank_failed(run, rank, pid, status);
    if (run->running == 0 && run->cause.known && !run->failed)
        job_settle(run);
    if (run->running == 0 && run->deadline_ms == 0)
        run->deadline_ms = now_ms() + run->options->grace_ms;
}

bool run_reap(struct run *run)
{
    int status, r;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (r = 0; r < run->options->nranks && run->pids[r] != pid;)
            r++;
        if (r < run->options->nranks)
            rank_ended(run, r, status);
    }
    return pid == 0;
}

/* A signal from outside.  When the guard is gone nobody waits for this job any
 * more, and its SIGTERM, sent by the kernel, means at once.
 */
static void run_signalled(struct run *run, int sig)
{
    bool ends = false;

    if (getppid() != run->before->guard) {
        run->told = true;
        job_kill(run);
        return;
    }
    for (int i = 0; i < run_nsignals; i++)
        ends = ends || (run_signals[i].number == sig && run_signals[i].ends);
    if (!ends) {
        ranks_kill(run, sig == SIGTSTP ? SIGSTOP : sig);
        return;
    }
    if (!run->told && !run->failed && !run->cause.known)
        dprintf(2, "dtensor-run: signal %d (%s): ending %d rank%s\n", sig,
                strsignal(sig), run->running, run->running == 1 ? "" : "s");
    run->told = true;
    if (run->settle_ms != 0)
        job_settle(run);
    run_end(run, sig);
}

/* How long poll() may sleep. */
static int patience_ms(const struct run *run)
{
    int64_t left;

    if (run->killing)
        return TICK_MS;
    if (run->deadline_ms == 0 && run->settle_ms == 0)
        return -1;
    left = run->settle_ms == 0 || (run->deadline_ms != 0 &&
                                   run->deadline_ms < run->settle_ms)
         ? run->deadline_ms : run->settle_ms;
    left -= now_ms();
    return left < 0 ? 0 : left > 1000 ? 1000 : (int)left;
}

void run_wait(struct run *run, struct pollfd polls[], int n)
{
    struct signalfd_siginfo info;

    polls[0] = (struct pollfd){ .fd = run->signals, .events = POLLIN };
    if (poll(polls, (nfds_t)n, patience_ms(run)) <= 0)
        for (int i = 0; i < n; i++)
            polls[i].revents = 0;
    while (polls[0].revents &&
           read(run->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            run_signalled(run, (int)info.ssi_signo);
    if (run->settle_ms != 0 && now_ms() >= run->settle_ms)
        job_settle(run);
    if (run->killing || (run->deadline_ms && now_ms() >= run->deadline_ms))
        job_kill(run);
}
