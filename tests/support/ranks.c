/* ranks.c - run a function as n real processes, one rank each */
#include "tests/support/ranks.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { BUSY = 5 };                /* times slower, beside other work          */

bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#endif
#endif
    return false;
}

bool timeless(void)
{
    return sanitized() || getenv("DTN_TEST_ROUNDS");
}

bool rounds_pick(void)
{
    static int cases;

    return cases++ % (100 / rounds_of(100)) == 0;
}

void ranks_setenv(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

pid_t rank_fork(int rank, int n, const char *job, rank_main_f *fn, void *arg)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("DTN_JOB", job, 1);
    setenv("DTN_KEY", RANKS_KEY, 0);
    ranks_setenv("DTN_RANK", rank);
    ranks_setenv("DTN_WORLD_SIZE", n);
    ranks_setenv("DTN_LOCAL_RANK", rank);
    ranks_setenv("DTN_LOCAL_SIZE", n);
    fn(rank, n, arg);
    fflush(stdout);
    _exit(0);
}

const char *ranks_file(const char *wire, int n, const char *more)
{
    static char path[64];
    static int files;
    const char *hca = getenv("DTN_TEST_HCA");
    const char *over = getenv("DTN_TEST_WIRE");
    FILE *file;

    snprintf(path, sizeof path, "ranks-%d-%d.ini", (int)getpid(), ++files);
    file = fopen(path, "w");
    if (!file)
        exit(99);
    fprintf(file, "[cluster]\nversion = 1\n[nodes \"here\"]\n"
            "hosts = localhost\nranks = %d\nhca = %s\n[transport]\n"
            "intra_node = %s\n%s", n, hca ? hca : "none",
            over ? over : wire,
            more ? more : "connect_timeout = 20s\n");
    fclose(file);
    return path;
}

int ranks_run(int n, int enough_s, rank_main_f *fn, void *arg, int status[])
{
    const int timeout_s = BUSY * enough_s;
    static int runs;
    char job[64];
    pid_t pids[1024];
    int left = n, bad = 0, st;
    time_t end = time(NULL) + timeout_s;
    const struct timespec tick = { 0, 1000000 };

    snprintf(job, sizeof job, "test-%d-%d", (int)getpid(), ++runs);
    for (int r = 0; r < n; r++)
        pids[r] = rank_fork(r, n, job, fn, arg);
    while (left > 0) {
        for (int r = 0; r < n; r++) {
            if (pids[r] <= 0 || waitpid(pids[r], &st, WNOHANG) != pids[r])
                continue;
            pids[r] = 0;
            left--;
            bad += st != 0;
            if (status)
                status[r] = st;
        }
        if (left > 0 && time(NULL) > end) {
            for (int r = 0; r < n; r++)
                if (pids[r] > 0)
                    kill(pids[r], SIGKILL);
            note("%d of %d ranks were still running after %d s: killed",
                 left, n, timeout_s);
            end = time(NULL) + 3600;
        }
        nanosleep(&tick, NULL);
    }
    return bad;
}

void one_cpu(int n)
{
    cpu_set_t mask, one;
    int left, cpu = 0;

    if (sched_getaffinity(0, sizeof mask, &mask) != 0)
        return;
    left = n % CPU_COUNT(&mask);
    while (!CPU_ISSET(cpu, &mask) || left-- > 0)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}
