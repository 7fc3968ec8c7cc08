/* whoami.c - which rank of which cluster this process is
 *
 * Each launcher is a method in a table.  The methods are tried in order, and
 * the first one that applies uses its own variables only.  Example: dtensor-run
 * starts four ranks in a Slurm batch script, and each of them also has
 * SLURM_PROCID=0.  If methods were mixed, there could be four ranks 0 that wait
 * for each other for ever.  So if only some of a launcher's variables are set,
 * this is an error, and no other method is tried.
 *
 * The result is then compared with the cluster file: the number of ranks, and
 * the host of each rank.
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
#include "cluster/world.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is a host of the file this host?  If DTN_HOST is set, it alone decides. */
static bool
search_is_here(const struct dtn_whoami_search *search, const char *name)
{
    if (dtn_same_host(name, search->here))
        return true;
    return !search->here_given && (strcmp(name, "localhost") == 0 ||
                                   strcmp(name, "127.0.0.1") == 0);
}

static int search_pass(struct dtn_whoami_search *search, const char *fmt, ...)
    DTN_PRINTF(2, 3);

static int search_pass(struct dtn_whoami_search *search, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(search->note, sizeof search->note, fmt, ap);
    va_end(ap);
    return DTN_FOUND_NOT;
}

/* --------------------------------------------------------- dtensor-run --- */

/* The variables of dtensor-run.  It sets all of them. */
static const char *const run_variables[] = {
    "DTN_RANK", "DTN_WORLD_SIZE", "DTN_LOCAL_RANK", "DTN_LOCAL_SIZE", "DTN_JOB"
};

/* Find one of run_variables[] that is set and one that is not. */
static void run_look(const char **setp, const char **unsetp)
{
    *setp = *unsetp = NULL;
    for (size_t i = DTN_COUNT(run_variables); i-- > 0;)
        *(getenv(run_variables[i]) ? setp : unsetp) = run_variables[i];
}

/* Without a file all ranks are on this host; DTN_LOCAL_* must agree. */
static int run_cluster(struct dtn_whoami_search *search,
                       const struct dtn_world *world, int local_size,
                       struct dtensor_error *err)
{
    if (local_size != world->size || world->local_rank != world->rank)
        return dtn_fail(err, DTENSOR_ECONF, "rank %d of %d is local rank %d of "
                        "%d (DTN_LOCAL_RANK, DTN_LOCAL_SIZE): ranks on several "
                        "hosts need a cluster file, named by DTN_CLUSTER",
                        world->rank, world->size, world->local_rank,
                        local_size);
    return dtn_cluster_local(search->here, world->size, &search->cluster,
                             err);
}

/* Compare the variables of dtensor-run, or of a wrapper that sets them on
 * several hosts, with the file.  The file decides which ranks share a host: if
 * one machine runs two hosts of the file, DTN_LOCAL_RANK counts over both.
 */
static int run_check(const struct dtn_whoami_search *search,
                     const struct dtn_world *world, struct dtensor_error *err)
{
    const struct dtn_host *host;

    if (world->size != search->cluster->world_size)
        return dtn_fail(err, DTENSOR_ECONF, "dtensor-run started %d ranks "
                        "(DTN_WORLD_SIZE), %s describes %d: use dtensor-run "
                        "-n %d", world->size, search->path,
                        search->cluster->world_size,
                        search->cluster->world_size);
    host = dtn_host_of(search->cluster, world->rank);
    if (search_is_here(search, host->name))
        return DTN_FOUND;
    return dtn_fail(err, DTENSOR_ECONF, "rank %d runs on %s%s, %s puts it on "
                    "%s: start it there, or set DTN_HOST=%s to play that host",
                    world->rank, search->here,
                    search->here_given ? " (DTN_HOST)" : "", search->path,
                    host->name, host->name);
}

/* Read the variables of dtensor-run, without those of the local rank. */
static int run_read(struct dtn_world *world, struct dtensor_error *err)
{
    const char *job = getenv("DTN_JOB");
    int rc;

    if (!*job || strlen(job) >= sizeof world->job)
        return dtn_fail(err, DTENSOR_ECONF, "DTN_JOB has %zu characters, "
                        "expected 1 to %zu", strlen(job),
                        sizeof world->job - 1);
    strcpy(world->job, job);
    strcpy(world->launcher, "dtensor-run");
    rc = dtn_env_number("DTN_WORLD_SIZE", 1, DTN_MAX_RANKS, &world->size,
                        err);
    if (rc == 0)
        rc = dtn_env_number("DTN_RANK", 0, world->size - 1, &world->rank,
                            err);
    return rc;
}

bool dtn_claim_run(struct dtn_whoami_search *search, struct dtn_world *world)
{
    const char *is_set, *unset;
    struct dtensor_error ignored;

    run_look(&is_set, &unset);
    return is_set && !unset && search->cluster &&
           run_read(world, &ignored) == 0;
}

static int whoami_run(struct dtn_whoami_search *search, struct dtn_world *world,
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
    rc = run_read(world, err);
    if (rc == 0)
        rc = dtn_env_number("DTN_LOCAL_SIZE", 1, DTN_MAX_LOCAL, &local_size,
                            err);
    if (rc == 0)
        rc = dtn_env_number("DTN_LOCAL_RANK", 0, local_size - 1,
                            &world->local_rank, err);
    if (rc == 0 && !search->cluster)
        rc = run_cluster(search, world, local_size, err);
    if (rc)
        return rc;
    return search->path ? run_check(search, world, err) : DTN_FOUND;
}

/* --------------------------------------------------- hosts in the file --- */

/* The process was started by pdsh, by ssh or by hand.  If the file has one rank
 * on this host, it is this rank.  The job's name then also comes from the file.
 */
static int whoami_hosts(struct dtn_whoami_search *search,
                        struct dtn_world *world, struct dtensor_error *err)
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
    world->rank = host->first_rank;
    world->size = c->world_size;
    snprintf(world->job, sizeof world->job, "file-%s-%d", c->name,
             c->transport.port > 0 ? c->transport.port : 0);
    snprintf(world->launcher, sizeof world->launcher, "the host's name");
    return DTN_FOUND;
}

/* --------------------------------------------------------------- single --- */

static int whoami_single(struct dtn_whoami_search *search,
                         struct dtn_world *world, struct dtensor_error *err)
{
    int rc;

    if (search->cluster)
        return search_pass(search, "there is a cluster file");
    rc = dtn_cluster_local(search->here, 1, &search->cluster, err);
    if (rc)
        return rc;
    world->rank = 0;
    world->size = 1;
    snprintf(world->job, sizeof world->job, "single-%d", (int)getpid());
    snprintf(world->launcher, sizeof world->launcher, "single process");
    return DTN_FOUND;
}

/* ---------------------------------------------------------------- table --- */

static const struct method {
    const char *name;
    dtn_whoami_method_f *find;
} methods[] = {
    { "dtensor-run",       whoami_run },
    { "Slurm step",        dtn_whoami_slurm },
    { "hosts in the file", whoami_hosts },
    { "single process",    whoami_single },
};

int dtn_whoami_search_init(struct dtn_whoami_search *search, const char *path,
                           struct dtensor_error *err)
{
    const char *host = getenv("DTN_HOST");

    if (!path) {
        path = getenv("DTN_CLUSTER");
        path = path && *path ? path : NULL;
    }
    search->path = path;
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

/* Try the methods in order.  If none applies: ECONF with the notes of all. */
static int search_run(struct dtn_whoami_search *search, struct dtn_log *log,
                      struct dtn_world *world, struct dtensor_error *err)
{
    char notes[400] = "";
    size_t used = 0;
    int rc;

    for (size_t i = 0; i < DTN_COUNT(methods); i++) {
        rc = methods[i].find(search, world, err);
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

int dtn_whoami(const char *path, struct dtn_log *log, struct dtn_world *worldp,
               struct dtensor_error *err)
{
    struct dtn_whoami_search search;
    struct dtn_world world = { 0 };
    const struct dtn_host *host;
    int rc;

    rc = dtn_whoami_search_init(&search, path, err);
    if (rc == 0)
        rc = search_run(&search, log, &world, err);
    if (rc != DTN_FOUND) {
        dtensor_cluster_destroy(search.cluster);
        return rc;
    }
    host = dtn_host_of(search.cluster, world.rank);
    world.local_rank = world.rank - host->first_rank;
    snprintf(world.host_name, sizeof world.host_name, "%s", host->name);
    dtn_log(log, DTN_LOG_INFO, "whoami: rank %d of %d, local rank %d on %s, by "
            "%s; job %s", world.rank, world.size, world.local_rank,
            world.host_name, world.launcher, world.job);
    world.cluster = search.cluster;
    *worldp = world;
    return 0;
}
