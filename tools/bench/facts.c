/* facts.c - what the header says about this run
 *
 * A time means little without the machine on which it was measured.  Every rank
 * contributes its host and the CPUs on which it may run.  If four ranks share
 * two CPUs, the times depend on the scheduler as much as on the library, and
 * the header warns about it.
 */
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "dtensor.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* What one rank tells the others. */
struct home {
    char host[64];
    cpu_set_t cpus[8];            /* 8,192 CPUs: all that Linux can have      */
};

static void facts_cpu(char *text, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[300];
    const char *colon;

    snprintf(text, size, "unknown CPU");
    while (file && fgets(line, sizeof line, file)) {
        colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon || !colon[1])
            continue;
        snprintf(text, size, "%.*s", (int)strcspn(colon + 2, "\n"),
                 colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void facts_kernel(char *text, size_t size)
{
    struct utsname u;

    if (uname(&u) == 0)
        snprintf(text, size, "%s %s %s", u.sysname, u.release, u.machine);
    else
        snprintf(text, size, "unknown kernel");
}

static void facts_date(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Ranks of `home[]` on the same host as rank r, and the CPUs they may use. */
static int facts_sharing(const struct home *home, int n, int r, int *cpusp)
{
    cpu_set_t cpus[8];
    int ranks = 0;

    CPU_ZERO_S(sizeof cpus, cpus);
    for (int i = 0; i < n; i++) {
        if (strcmp(home[i].host, home[r].host) != 0)
            continue;
        ranks++;
        CPU_OR_S(sizeof cpus, cpus, cpus, home[i].cpus);
    }
    *cpusp = CPU_COUNT_S(sizeof cpus, cpus);
    return ranks;
}

static bool facts_known(const struct facts *facts, const char *host)
{
    for (int i = 0; i < facts->nhosts; i++)
        if (strcmp(facts->host[i], host) == 0)
            return true;
    return false;
}

static void facts_hosts(struct facts *facts, const struct home *home)
{
    int ranks, cpus;

    for (int r = 0; r < facts->nranks; r++) {
        if (facts_known(facts, home[r].host))
            continue;
        strcpy(facts->host[facts->nhosts++], home[r].host);
        ranks = facts_sharing(home, facts->nranks, r, &cpus);
        if (cpus > 0 && ranks > cpus && !facts->warning[0])
            snprintf(facts->warning, sizeof facts->warning,
                     "%d ranks on %d CPUs of %s: they take turns, and times "
                     "include waiting for a turn", ranks, cpus, home[r].host);
    }
}

static int facts_homes(struct facts *facts, struct bench *b,
                       struct dtensor_error *err)
{
    size_t n = (size_t)b->nranks;
    struct home *home = calloc(n + 1, sizeof *home);
    int rc = 0;

    facts->host = calloc(n, sizeof *facts->host);
    if (!home || !facts->host)
        rc = session_fail(err, DTENSOR_ENOMEM, "no memory for %d host names",
                          b->nranks);
    rc = session_agree(b, rc, err);
    if (rc == 0) {
        snprintf(home[n].host, sizeof home[n].host, "%.63s",
                 dtensor_host(b->ctx));
        sched_getaffinity(0, sizeof home[n].cpus, home[n].cpus);
        rc = dtensor_allgather(b->all, &home[n], home, sizeof *home,
                               DTENSOR_U8, err);
    }
    if (rc == 0)
        facts_hosts(facts, home);
    free(home);
    return rc;
}

int facts_init(struct facts *facts, struct bench *b,
               struct dtensor_error *err)
{
    int rc;

    memset(facts, 0, sizeof *facts);
    facts->version = dtensor_version();
    facts->build = dtensor_build();
    facts->launcher = b->opt->local ? "itself (--local)"
                                    : dtensor_launcher(b->ctx);
    facts->cluster = dtensor_cluster_name(b->ctx);
    facts->memory = b->opt->registered ? "registered (dtensor_alloc)"
                                       : "private (malloc)";
    facts->nranks = b->nranks;
    facts_cpu(facts->cpu, sizeof facts->cpu);
    facts_kernel(facts->kernel, sizeof facts->kernel);
    facts_date(facts->date, sizeof facts->date);
    options_format(b->opt, facts->options, sizeof facts->options);
    rc = facts_homes(facts, b, err);
    if (rc)
        facts_fini(facts);
    return rc;
}

void facts_fini(struct facts *facts)
{
    free(facts->host);
    facts->host = NULL;
}
