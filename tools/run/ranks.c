/* ranks.c - starts the ranks, and ensures that all of them end
 *
 * Each rank has its own process group, so one signal also reaches the processes
 * that it started.  A process that leaves that group, or outlives its rank,
 * becomes a child of this process, which is a *subreaper*: when waitpid()
 * reports no children, no process is left.  A rank that fails ends the job: the
 * others have a second to notice, to print their errors and to exit.  Then they
 * get SIGTERM, and those that still run after the grace time (2 s) get SIGKILL.
 * If the supervisor itself is killed, the kernel kills the ranks
 * (PR_SET_PDEATHSIG), and the guard kills the rest.
 */
#include "tools/run/run.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
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
static void job_end(struct run *run, int sig)
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

/* "rank 2 (pid 123) was killed by signal 9 (Killed); ending the other 3 ranks"
 */
static void tell_cause(struct run *run)
{
    const struct run_cause *cause = &run->cause;
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
    dprintf(2, "dtensor-run: rank %d (pid %d) %s%s\n", cause->rank,
            (int)cause->pid, how, rest);
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
    job_end(run, SIGTERM);
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

/* Wait for whoever has ended; false when there is no child left. */
static bool run_reap(struct run *run)
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
    job_end(run, sig);
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

/* ------------------------------------------------------------- starting --- */

static void child_setenv(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* Slurm's variables would say of every rank that it is the same task. */
static void unset_slurm(void)
{
    extern char **environ;
    char name[128];
    char **p = environ;

    while (p && *p) {
        if (strncmp(*p, "SLURM_", 6) != 0 && strncmp(*p, "SLURMD_", 7) != 0) {
            p++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*p, "="), *p);
        if (unsetenv(name) != 0 || strlen(name) == sizeof name - 1)
            p++;
    }
}

/* Set a variable to so many random bytes, in hex digits. */
static bool child_setenv_random(const char *name, size_t size)
{
    unsigned char random[32];
    char text[2 * sizeof random + 1];

    if (getrandom(random, size, 0) != (ssize_t)size)
        return false;
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    return setenv(name, text, 1) == 0;
}

/* The variables that whoami looks for, the same for all ranks; and the key by
 * which they know each other where the cluster file has several hosts.  Who
 * runs a job by hand sees which rank the others wait for, unless DTN_LOG says
 * what else to log.
 */
static bool job_environment(const struct run_options *options)
{
    if (!child_setenv_random("DTN_JOB", 16) ||
        !child_setenv_random("DTN_KEY", 32))
        return false;
    unset_slurm();
    child_setenv("DTN_WORLD_SIZE", options->nranks);
    child_setenv("DTN_LOCAL_SIZE", options->nranks);
    if (options->cluster)
        setenv("DTN_CLUSTER", options->cluster, 1);
    setenv("DTN_LOG", "stall", 0);
    return true;
}

/* Rank 0 reads what the user gives us, the others nothing.  A terminal is
 * nobody's: a process group that is not in front is stopped for reading it.
 */
static void child_stdin(int rank)
{
    int fd;

    if (rank == 0 && !isatty(0))
        return;
    fd = open("/dev/null", O_RDONLY);
    if (fd > 0) {
        dup2(fd, 0);
        close(fd);
    }
}

/* In the child: become the rank.  `failed` takes errno if that cannot be. */
static void child_run(const struct run *run, int rank, const int ends[2],
                      pid_t supervisor, int failed)
{
    int error;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(RUN_FAILED);
    child_stdin(rank);
    for (int i = 0; run->streams && i < 2; i++)
        dup2(ends[i], i + 1);
    child_setenv("DTN_RANK", rank);
    child_setenv("DTN_LOCAL_RANK", rank);
    setrlimit(RLIMIT_NOFILE, &run->before->files);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &run->before->mask, NULL);
    execvp(run->options->argv[0], run->options->argv);
    error = errno;
    if (write(failed, &error, sizeof error) < 0)
        _exit(RUN_FAILED);
    _exit(RUN_NOT_FOUND);
}

/* Fork one rank and wait until it runs its program.  0, or errno. */
static int rank_start(struct run *run, int rank)
{
    pid_t supervisor = getpid(), pid;
    int ends[2] = { -1, -1 }, failed[2], error = 0;

    if (run->streams && !run_output_open(run, rank, ends))
        return errno;
    if (pipe2(failed, O_CLOEXEC) != 0)
        return errno;
    pid = fork();
    if (pid == 0)
        child_run(run, rank, ends, supervisor, failed[1]);
    if (pid < 0)
        error = errno;
    close(failed[1]);
    for (int i = 0; run->streams && i < 2; i++)
        close(ends[i]);
    if (pid > 0 && read(failed[0], &error, sizeof error) == sizeof error)
        waitpid(pid, NULL, 0);
    else if (pid > 0) {
        run->pids[rank] = pid;
        run->running++;
    }
    close(failed[0]);
    return error;
}

/* Start them all.  On failure say why, once, and end what was started. */
static void ranks_start(struct run *run)
{
    const char *program = run->options->argv[0];
    int error = 0, rank;

    for (rank = 0; rank < run->options->nranks && error == 0; rank++)
        error = rank_start(run, rank);
    if (error == 0)
        return;
    run->failed = true;
    run->code = error == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_RUN;
    if (error == EAGAIN || error == ENOMEM || error == EMFILE ||
        error == ENFILE) {
        run->code = RUN_FAILED;
        dprintf(2, "dtensor-run: cannot start rank %d: %s (see ulimit -u and "
                "ulimit -n)\n", rank - 1, strerror(error));
    } else {
        dprintf(2, "dtensor-run: cannot run %s: %s\n", program,
                strerror(error));
    }
    job_end(run, SIGTERM);
}

/* ------------------------------------------------------------------ job --- */

/* One turn: output, signals, who has ended.  False: nobody is left. */
static bool run_turn(struct run *run)
{
    int n = 1, nstreams = run->streams ? 2 * run->options->nranks : 0;

    if (!run_reap(run))
        return false;
    for (int i = 0; i < nstreams; i++)
        run->polls[n++] = (struct pollfd){ .fd = run->streams[i].fd,
                                           .events = POLLIN };
    run_wait(run, run->polls, n);
    for (int i = 0; i < nstreams; i++)
        if (run->streams[i].fd >= 0 && run->polls[1 + i].revents)
            run_output_read(run, &run->streams[i]);
    return true;
}

static bool run_init(struct run *run, const struct run_options *options,
                     const struct run_before *before)
{
    size_t n = (size_t)options->nranks;
    sigset_t set;

    *run = (struct run){ .options = options, .before = before };
    sigprocmask(SIG_BLOCK, NULL, &set);
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    run->pids = calloc(n, sizeof *run->pids);
    run->polls = calloc(1 + 2 * n, sizeof *run->polls);
    if (options->label)
        run->streams = calloc(2 * n, sizeof *run->streams);
    for (size_t i = 0; run->streams && i < 2 * n; i++)
        run->streams[i].fd = -1;
    return run->signals >= 0 && run->pids && run->polls &&
           (run->streams || !options->label) && job_environment(options);
}

static void run_fini(struct run *run)
{
    close(run->signals);
    free(run->pids);
    free(run->polls);
    free(run->streams);
}

int run_job(const struct run_options *options, const struct run_before *before)
{
    struct run run;

    if (!run_init(&run, options, before)) {
        dprintf(2, "dtensor-run: cannot set up: %s\n", strerror(errno));
        run.code = RUN_FAILED;
    } else {
        ranks_start(&run);
        while (run_turn(&run))
            ;
        if (run.streams)
            run_output_finish(&run);
        run_report_end(&run);
    }
    run_fini(&run);
    return run.code;
}
