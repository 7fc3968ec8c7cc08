/* whoami.c - which rank of which cluster this process is
 *
 * Every way to be started is a method in a table, tried in order; the first
 * that applies decides alone, from its own variables only.  Rank 3 of four
 * started by dtensor-run in a Slurm batch script has SLURM_PROCID=0 too: half
 * of one answer and half of another would make four ranks 0 that wait for each
 * other for ever.  So a launcher whose variables are there but incomplete is an
 * error, not a reason to try the next.
 *
 * What the launcher says is then held against the cluster file: as many ranks,
 * and each on the host where the file puts it.
 */
#include "cluster/whoami.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "cluster/builtin.h"
#include "cluster/cluster.h"
#include "cluster/env.h"
#include "cluster/host.h"
#include "cluster/self.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is a host of the file this one?  DTN_HOST says so alone when it is set. */
static bool search_is_here(const struct dtn_search *search, const char *name)
{
    if (dtn_same_host(name, search->here))
        return true;
    return !search->here_given && (strcmp(name, "localhost") == 0 ||
                                   strcmp(name, "127.0.0.1") == 0);
}

static int search_pass(struct dtn_search *search, const char *fmt, ...)
    DTN_PRINTF(2, 3);

static int search_pass(struct dtn_search *search, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(search->note, sizeof search->note, fmt, ap);
    va_end(ap);
    return DTN_FOUND_NOT;
}

/* --------------------------------------------------------- dtensor-run --- */

/* What dtensor-run sets, complete or not at all. */
static const char *const run_variables[] = {
    "DTN_RANK", "DTN_WORLD_SIZE", "DTN_LOCAL_RANK", "DTN_LOCAL_SIZE", "DTN_JOB"
};

/* One that is set and one that is not, of run_variables[]. */
static void run_look(const char **setp, const char **unsetp)
{
    *setp = *unsetp = NULL;
    for (size_t i = DTN_COUNT(run_variables); i-- > 0;)
        *(getenv(run_variables[i]) ? setp : unsetp) = run_variables[i];
}

/* Without a file all ranks are here; DTN_LOCAL_* must say the same. */
static int run_cluster(struct dtn_search *search, const struct dtn_self *self,
                       int local_size, struct dtensor_error *err)
{
    if (local_size != self->world_size || self->local_rank != self->rank)
        return dtn_fail(err, DTENSOR_ECONF, "rank %d of %d is local rank %d of "
                        "%d (DTN_LOCAL_RANK, DTN_LOCAL_SIZE): ranks on several "
                        "hosts need a cluster file, named by DTN_CLUSTER",
                        self->rank, self->world_size, self->local_rank,
                        local_size);
    return dtn_cluster_local(search->here, self->world_size, &search->cluster,
                             err);
}

/* dtensor-run, or a wrapper that does as it does on several hosts, against the
 * file.  Which ranks are on one host is the file's to say: with two hosts of
 * the file played by one machine, DTN_LOCAL_RANK counts through both.
 */
static int run_check(const struct dtn_search *search,
                     const struct dtn_self *self, struct dtensor_error *err)
{
    const struct dtn_host *host;

    if (self->world_size != search->cluster->world_size)
        return dtn_fail(err, DTENSOR_ECONF, "dtensor-run started %d ranks "
                        "(DTN_WORLD_SIZE), %s describes %d: use dtensor-run "
                        "-n %d", self->world_size, search->path,
                        search->cluster->world_size,
                        search->cluster->world_size);
    host = dtn_host_of(search->cluster, self->rank);
    if (search_is_here(search, host->name))
        return DTN_FOUND;
    return dtn_fail(err, DTENSOR_ECONF, "rank %d runs on %s%s, %s puts it on "
                    "%s: start it there, or set DTN_HOST=%s to play that host",
                    self->rank, search->here,
                    search->here_given ? " (DTN_HOST)" : "", search->path,
                    host->name, host->name);
}

/* What dtensor-run says of this process, but for its place on the host. */
static int run_read(struct dtn_self *self, struct dtensor_error *err)
{
    const char *job = getenv("DTN_JOB");
    int rc;

    if (!*job || strlen(job) >= sizeof self->job)
        return dtn_fail(err, DTENSOR_ECONF, "DTN_JOB has %zu characters, "
                        "expected 1 to %zu", strlen(job),
                        sizeof self->job - 1);
    strcpy(self->job, job);
    strcpy(self->launcher, "dtensor-run");
    rc = dtn_env_number("DTN_WORLD_SIZE", 1, DTN_MAX_RANKS, &self->world_size,
                        err);
    if (rc == 0)
        rc = dtn_env_number("DTN_RANK", 0, self->world_size - 1, &self->rank,
                            err);
    return rc;
}

bool dtn_claim_run(struct dtn_search *search, struct dtn_self *self)
{
    const char *is_set, *unset;
    struct dtensor_error ignored;

    run_look(&is_set, &unset);
    return is_set && !unset && search->cluster && run_read(self, &ignored) == 0;
}

static int whoami_run(struct dtn_search *search, struct dtn_self *self,
                      struct dtensor_error *err)
{
    const char *is_set, *unset;
    int local_size, rc;

    run_look(&is_set, &unset);
    if (!is_set)
        return search_pass(search, "DTN_RANK is not set");
    if (unset)
        return dtn_fail(err, DTENSOR_ECONF, "%s is set but %s is not: start "
                        "the program with dtensor-run, or unset %s", is_set,
                        unset, is_set);
    rc = run_read(self, err);
    if (rc == 0)
        rc = dtn_env_number("DTN_LOCAL_SIZE", 1, DTN_MAX_LOCAL, &local_size,
                            err);
    if (rc == 0)
        rc = dtn_env_number("DTN_LOCAL_RANK", 0, local_size - 1,
                            &self->local_rank, err);
    if (rc == 0 && !search->cluster)
        rc = run_cluster(search, self, local_size, err);
    if (rc)
        return rc;
    return search->path ? run_check(search, self, err) : DTN_FOUND;
}

/* --------------------------------------------------- hosts in the file --- */

/* A file with one rank on this host says by itself which this is: started by
 * pdsh, ssh or hand.  The job's name must then come from the file as well.
 */
static int whoami_hosts(struct dtn_search *search, struct dtn_self *self,
                        struct dtensor_error *err)
{
    const struct dtensor_cluster *c = search->cluster;
    const struct dtn_host *host = NULL;
    int matches = 0;

    if (!c)
        return search_pass(search, "no cluster file");
    for (int i = 0; i < c->nhosts; i++) {
        if (!search_is_here(search, c->hosts[i].name))
            continue;
        host = &c->hosts[i];
        matches++;
    }
    if (matches == 0)
        return search_pass(search, "this host, %.64s, is not in the file",
                           search->here);
    if (matches > 1 || host->nranks > 1)
        return search_pass(search, "this host, %.64s, has more than one rank",
                           search->here);
    self->rank = host->first_rank;
    self->world_size = c->world_size;
    snprintf(self->job, sizeof self->job, "file-%s-%d", c->name,
             c->transport.port);
    snprintf(self->launcher, sizeof self->launcher, "the host's name");
    return DTN_FOUND;
}

/* --------------------------------------------------------------- single --- */

static int whoami_single(struct dtn_search *search, struct dtn_self *self,
                         struct dtensor_error *err)
{
    int rc;

    if (search->cluster)
        return search_pass(search, "there is a cluster file");
    rc = dtn_cluster_local(search->here, 1, &search->cluster, err);
    if (rc)
        return rc;
    self->rank = 0;
    self->world_size = 1;
    snprintf(self->job, sizeof self->job, "single-%d", (int)getpid());
    snprintf(self->launcher, sizeof self->launcher, "single process");
    return DTN_FOUND;
}

/* ---------------------------------------------------------------- table --- */

static const struct method {
    const char *name;
    dtn_method_f *find;
} methods[] = {
    { "dtensor-run",       whoami_run },
    { "Slurm step",        dtn_whoami_slurm },
    { "hosts in the file", whoami_hosts },
    { "single process",    whoami_single },
};

int dtn_search_init(struct dtn_search *search, const char *path,
                    struct dtensor_error *err)
{
    const char *host = getenv("DTN_HOST");

    if (!path)
        path = getenv("DTN_CLUSTER");
    search->path = path && *path ? path : NULL;
    search->cluster = NULL;
    search->here_given = host && *host;
    if (search->here_given && strlen(host) >= sizeof search->here)
        return dtn_fail(err, DTENSOR_ECONF, "DTN_HOST has %zu characters, "
                        "expected at most %zu", strlen(host),
                        sizeof search->here - 1);
    if (search->here_given)
        strcpy(search->here, host);
    else if (gethostname(search->here, sizeof search->here) != 0)
        strcpy(search->here, "localhost");
    search->here[sizeof search->here - 1] = '\0';
    if (!search->path)
        return 0;
    return dtensor_cluster_read(search->path, NULL, NULL, &search->cluster,
                                err);
}

/* Try the methods in order; ECONF with everyone's note when none applies. */
static int search_run(struct dtn_search *search, struct dtn_log *log,
                      struct dtn_self *self, struct dtensor_error *err)
{
    char notes[400] = "";
    size_t used = 0;
    int rc;

    for (size_t i = 0; i < DTN_COUNT(methods); i++) {
        rc = methods[i].find(search, self, err);
        if (rc != DTN_FOUND_NOT)
            return rc;
        dtn_log(log, DTN_LOG_DEBUG, "whoami: not by %s: %s", methods[i].name,
                search->note);
        if (used < sizeof notes)
            used += (size_t)snprintf(notes + used, sizeof notes - used,
                                     "%s%s: %s", i ? "; " : "",
                                     methods[i].name, search->note);
    }
    return dtn_fail(err, DTENSOR_ECONF, "nothing says which rank of %s this "
                    "process is (start it with srun or dtensor-run -n %d): %s",
                    search->path, search->cluster->world_size, notes);
}

int dtn_whoami(const char *path, struct dtn_log *log,
               struct dtensor_cluster **clusterp, struct dtn_self *selfp,
               struct dtensor_error *err)
{
    struct dtn_search search;
    struct dtn_self self = { 0 };
    const struct dtn_host *host;
    int rc;

    rc = dtn_search_init(&search, path, err);
    if (rc == 0)
        rc = search_run(&search, log, &self, err);
    if (rc != DTN_FOUND) {
        dtensor_cluster_destroy(search.cluster);
        return rc;
    }
    host = dtn_host_of(search.cluster, self.rank);
    self.local_rank = self.rank - host->first_rank;
    snprintf(self.host, sizeof self.host, "%s", host->name);
    dtn_log(log, DTN_LOG_INFO, "whoami: rank %d of %d, local rank %d on %s, by "
            "%s; job %s", self.rank, self.world_size, self.local_rank,
            self.host, self.launcher, self.job);
    *clusterp = search.cluster;
    *selfp = self;
    return 0;
}
