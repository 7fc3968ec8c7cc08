/* dtensor-run.c - start the ranks of a job on this host
 *
 * dtensor-run -n 4 ./prog is three generations: this process, the *guard*,
 * which the user starts and signals; its child, the *supervisor* (run/ranks.c),
 * which starts the ranks; and the four ranks.  Two are needed because no
 * process can clean up after its own SIGKILL.  If the guard is killed, the
 * kernel signals the supervisor, which kills all ranks.  If the supervisor is
 * killed, its ranks die with it; processes that they have started become
 * children of the guard, which kills them.
 */
#include "config.h"

#include "tools/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "Usage: dtensor-run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "Start PROGRAM as the ranks of a job on this host, and see all of them end.\n"
    "\n"
    "  -n, --ranks=N        number of ranks, 1 to 1024 (default: usable CPUs)\n"
    "  -b, --bind           each rank has CPUs of its own, by hwloc\n"
    "  -l, --label          put \"[RANK] \" before each line of output\n"
    "  -C, --cluster=FILE   the cluster file (sets DTN_CLUSTER); give -n, too\n"
    "      --json=FILE      which hosts are suspect, if the job fails\n"
    "      --grace=TIME     from SIGTERM to SIGKILL, such as 500ms (default: 2s)\n"
    "  -h, --help           print this, and exit\n"
    "  -V, --version        print version, build and licence, and exit\n"
    "\n"
    "A rank that fails ends the others, a second later; its exit code is\n"
    "dtensor-run's, 128 + N if signal N killed it.  See dtensor-run(1).\n";

/* -------------------------------------------------------------- options --- */

static void __attribute__((noreturn, format(printf, 1, 2)))
usage_error(const char *fmt, ...)
{
    va_list ap;

    fputs("dtensor-run: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\nTry 'dtensor-run --help' for more information.\n", stderr);
    exit(RUN_USAGE);
}

/* Say what was asked for, and end: a full disk must not pass for success; head
 * and the like are no error.
 */
static void __attribute__((noreturn)) tell(const char *text)
{
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
        exit(0);
    if (errno == EPIPE)
        exit(128 + SIGPIPE);
    fprintf(stderr, "dtensor-run: cannot write: %s\n", strerror(errno));
    exit(RUN_FAILED);
}

/* The CPUs this process may use, which a batch system or taskset may have made
 * fewer than the machine has.
 */
static int usable_cpus(void)
{
    struct run_cpus cpus;
    long n;

    if (sched_getaffinity(0, sizeof cpus.set, cpus.set) == 0)
        n = CPU_COUNT_S(sizeof cpus.set, cpus.set);
    else
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > RUN_MAX_RANKS ? RUN_MAX_RANKS : (int)n;
}

static int parse_ranks(const char *text)
{
    char *end;
    long n;

    if (strcmp(text, "p") == 0)
        usage_error("-np: the number of ranks is -n, such as -n 4");
    errno = 0;
    n = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < 1 ||
        n > RUN_MAX_RANKS)
        usage_error("-n \"%s\": expected a number of ranks from 1 to %d", text,
                    RUN_MAX_RANKS);
    return (int)n;
}

static int64_t parse_time_ms(const char *text)
{
    static const struct { const char *unit; double ms; } units[] = {
        { "us", 1e-3 }, { "ms", 1 }, { "s", 1e3 }, { "min", 60e3 }
    };
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (*text >= '0' && *text <= '9' && errno == 0 && n <= 1000000000 &&
            strcmp(end, units[i].unit) == 0)
            return (int64_t)((double)n * units[i].ms);
    usage_error("--grace \"%s\": expected a time with its unit us, ms, s or "
                "min, such as 2s", text);
}

static const struct option longs[] = {
    { "ranks", required_argument, NULL, 'n' },
    { "bind", no_argument, NULL, 'b' },
    { "label", no_argument, NULL, 'l' },
    { "cluster", required_argument, NULL, 'C' },
    { "grace", required_argument, NULL, 'g' },
    { "json", required_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { 0 }
};

/* The other tools look for the nearest name.  Here there are few, and this one
 * is not linked with the library.  getopt_long() has set optopt to an unknown
 * letter, or to an option that takes no value; 0: it does not know the word.
 */
static void __attribute__((noreturn)) unknown_option(const char *word)
{
    char names[200];
    size_t used = 0;

    for (const struct option *known = longs; known->name; known++)
        if (known->val == optopt && known->has_arg == no_argument)
            usage_error("%s: this option takes no value", word);
    if (optopt)
        usage_error("-%c: no such option", optopt);
    for (const struct option *known = longs; known->name; known++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s",
                                 used > 0 ? ", " : "", known->name);
    usage_error("%s: no such option; expected one of %s", word, names);
}

static void options_read(int argc, char **argv, struct run_options *options)
{
    static const char letters[] = "+:n:blC:hV";
    int option;

    while ((option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        switch (option) {
        case 'n':
            options->nranks = parse_ranks(optarg);
            break;
        case 'b':
#ifndef HAVE_HWLOC
            usage_error("--bind: not in this build, which is without hwloc");
#endif
            options->bind = true;
            break;
        case 'l':
            options->label = true;
            break;
        case 'C':
            options->cluster = optarg;
            break;
        case 'j':
            options->json = optarg;
            break;
        case 'g':
            options->grace_ms = parse_time_ms(optarg);
            break;
        case 'h':
            tell(usage);
        case 'V':
            tell("dtensor-run " PACKAGE_VERSION " (" DTN_BUILD ")\n"
                 "Licence: BSD-3-Clause\n");
        case ':':
            usage_error("option %s needs a value", argv[optind - 1]);
        default:
            unknown_option(argv[optind - 1]);
        }
    }
    if (options->cluster && access(options->cluster, R_OK) != 0)
        usage_error("%s: cannot read it: %s", options->cluster,
                    strerror(errno));
    options->argv = argv + optind;
    if (!*options->argv)
        usage_error("no program to run");
}

/* ---------------------------------------------------------------- guard --- */

/* Block what is passed on and SIGCHLD, to be read one at a time.  A signal that
 * was ignored when we came (nohup, a job in a script's background) stays so.
 */
static void guard_signals(sigset_t *set, sigset_t *before)
{
    struct sigaction old;

    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (int i = 0; i < run_nsignals; i++) {
        sigaction(run_signals[i].number, NULL, &old);
        if (old.sa_handler != SIG_IGN)
            sigaddset(set, run_signals[i].number);
    }
    sigprocmask(SIG_BLOCK, set, before);
}

/* Descriptors 0 to 2 are open, so that no pipe gets one of those numbers; and
 * there may be as many as allowed, for the pipes of many ranks.
 */
static void guard_files(struct rlimit *before)
{
    struct rlimit all;
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    close(fd);
    getrlimit(RLIMIT_NOFILE, before);
    all = *before;
    all.rlim_cur = all.rlim_max;
    setrlimit(RLIMIT_NOFILE, &all);
}

static int __attribute__((noreturn))
supervise(const struct run_options *options, const struct run_before *before)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (getppid() != before->guard)
        _exit(RUN_FAILED);
    exit(run_job(options, before));
}

/* The supervisor was killed: what is left is ours, and is to go. */
static int guard_clean(pid_t supervisor, int status)
{
    const struct timespec tick = { 0, 10000000 };

    dprintf(2, "dtensor-run: supervisor (pid %d) killed by signal %d (%s): "
            "killing what is left\n", (int)supervisor, WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    do {
        run_kill_children(SIGKILL);
        nanosleep(&tick, NULL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    } while (waitpid(-1, NULL, WNOHANG) == 0);
    return 128 + WTERMSIG(status);
}

/* Pass signals on until the supervisor has ended; its exit code. */
static int guard_wait(pid_t supervisor, const sigset_t *set)
{
    int status, sig;

    for (;;) {
        if (waitpid(supervisor, &status, WNOHANG) == supervisor)
            return WIFEXITED(status) ? WEXITSTATUS(status)
                                     : guard_clean(supervisor, status);
        sig = sigwaitinfo(set, NULL);
        if (sig > 0 && sig != SIGCHLD)
            kill(supervisor, sig);
        if (sig == SIGTSTP)
            raise(SIGSTOP);
    }
}

int main(int argc, char **argv)
{
    struct run_options options = { .nranks = usable_cpus(), .grace_ms = 2000 };
    struct run_before before = { .guard = getpid() };
    const char *why;
    sigset_t set;
    pid_t pid;

    options_read(argc, argv, &options);
    why = run_report_begin(&options);
    if (why)
        usage_error("--json %s: cannot make it: %s", options.json, why);
    guard_files(&before.files);
    guard_signals(&set, &before.mask);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = fork();
    if (pid == 0)
        supervise(&options, &before);
    if (pid < 0) {
        dprintf(2, "dtensor-run: cannot fork: %s (see ulimit -u)\n",
                strerror(errno));
        return RUN_FAILED;
    }
    return guard_wait(pid, &set);
}
