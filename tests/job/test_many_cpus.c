/* test_many_cpus.c - a machine with more CPUs than a cpu_set_t has
 *
 * The kernel of such a machine refuses a smaller set than it needs.  This one
 * has 2,048 CPUs, and this process may use 1500 to 1503.
 *
 * Without this test, ranks there would seem to share one CPU and yield in each
 * wait, and could not be bound.
 */
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CPUS = 2048, FIRST = 1500, ALLOWED = 4 };

static cpu_set_t bound[CPUS / CPU_SETSIZE];

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    if (size < CPUS / 8) {
        errno = EINVAL;
        return -1;
    }
    memset(set, 0, size);
    for (size_t cpu = FIRST; cpu < FIRST + ALLOWED; cpu++)
        CPU_SET_S(cpu, size, set);
    return 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    (void)pid;
    memset(bound, 0, sizeof bound);
    memcpy(bound, set, size < sizeof bound ? size : sizeof bound);
    return 0;
}

/* Join as the one rank of a file with these CPUs. */
static int join(const char *cpus, struct dtensor_ctx **ctxp,
                struct dtensor_error *err)
{
    char path[64];
    FILE *file;
    int rc;

    snprintf(path, sizeof path, "many_cpus.%d.ini", (int)getpid());
    file = fopen(path, "w");
    if (!file)
        return DTENSOR_ESYS;
    fprintf(file, "[cluster]\nversion = 1\n[nodes \"n\"]\nhosts = localhost\n"
            "ranks = 1\ncpus = %s\n", cpus);
    fclose(file);
    chmod(path, 0600);
    rc = dtensor_init(path, ctxp, err);
    unlink(path);
    return rc;
}

static void check_count(void)
{
    const cpu_set_t folded = dtn_cpus_folded();

    ok(CPU_COUNT(&folded) == ALLOWED, "4 CPUs of 2,048 are counted");
}

static void check_binding(void)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };

    ok(join("1501", &ctx, &err) == 0, "a rank on CPU 1501 joins");
    note("%s", err.text);
    ok(CPU_COUNT_S(sizeof bound, bound) == 1 &&
       CPU_ISSET_S(1501, sizeof bound, bound), "and is bound to it");
    dtensor_fini(ctx);
    ok(CPU_COUNT_S(sizeof bound, bound) == ALLOWED,
       "dtensor_fini() gives it all of its CPUs again");
    ctx = NULL;
    ok(join("8191", &ctx, &err) == DTENSOR_ECONF &&
       strstr(err.text, "run on 8191, but may only on 1500-1503"),
       "a CPU that it may not use is named");
    note("%s", err.text);
    dtensor_fini(ctx);
}

int main(void)
{
    unsetenv("DTN_CLUSTER");
    unsetenv("DTN_HOST");
    check_count();
    check_binding();
    return done();
}
