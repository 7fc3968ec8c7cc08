/* ranks.c - starts the ranks, and ensures that all of them end
 *
 * Each rank has its own process group, so one signal also reaches the processes
 * that it started.  A process that leaves that group, or outlives its rank,
 * becomes a child of this process, which is a *subreaper*: when waitpid()
 * reports no children, no process is left.  If the supervisor itself is killed,
 * the kernel kills the ranks (PR_SET_PDEATHSIG), and the guard kills the rest.
 */
#include "tools/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (run->cpus)
        sched_setaffinity(0, sizeof run->cpus[rank].set, run->cpus[rank].set);
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
    bool here;

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
        here = error == ENOENT && !strchr(program, '/')
            && access(program, X_OK) == 0;
        dprintf(2, "dtensor-run: cannot run %s: %s%s\n", program,
                here ? "it is not in PATH; here it is ./" : strerror(error),
                here ? program : "");
    }
    run_end(run, SIGTERM);
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

    *run = (struct run){ .options = options, .before = before,
                         .memory_kills = run_memory_kills() };
    sigprocmask(SIG_BLOCK, NULL, &set);
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    run->pids = calloc(n, sizeof *run->pids);
    run->polls = calloc(1 + 2 * n, sizeof *run->polls);
    if (options->label)
        run->streams = calloc(2 * n, sizeof *run->streams);
    for (size_t i = 0; run->streams && i < 2 * n; i++)
        run->streams[i].fd = -1;
    if (options->bind)
        run->cpus = calloc(n, sizeof *run->cpus);
    return run->signals >= 0 && run->pids && run->polls &&
           (run->streams || !options->label) &&
           (!options->bind || (run->cpus && run_bind_divide(options->nranks,
                                                            run->cpus))) &&
           job_environment(options);
}

static void run_fini(struct run *run)
{
    close(run->signals);
    free(run->pids);
    free(run->polls);
    free(run->cpus);
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
        if (run.lost && run.code == 0)
            run.code = RUN_FAILED;
        run_report_end(&run);
    }
    run_fini(&run);
    return run.code;
}
