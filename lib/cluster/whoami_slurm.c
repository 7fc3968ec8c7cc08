/* whoami_slurm.c - the Slurm step this process is a task of
 *
 * Slurm's environment has two layers that look alike.  Only what belongs to the
 * *step* counts, that is SLURM_STEP_* and what one task alone has; the *job's*
 * SLURM_NTASKS, SLURM_NODELIST and SLURM_NODEID are also set in the shell of a
 * batch script, where `./prog` of a 6-task job sees SLURM_PROCID=0 and
 * SLURM_NTASKS=6: rank 0 of 6, of which nobody ever starts the other five.
 * There SLURM_STEP_ID is missing, or one of the numbers from 0xfffffffb on that
 * mark steps without tasks, printed with a sign or without.
 *
 * The node's name is SLURMD_NODENAME, never gethostname(), and ranks are where
 * Slurm says, not where division would put them: `srun -N2 -n4` may well run
 * three tasks here and one there, and cyclic order gives the same counts.
 */
#include "cluster/whoami.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEP 0x7fffffff

/* What one task's environment says. */
struct slurm_task {
    const char *node, *job;
    int step;
    int rank, world_size, local_rank;
};

/* -------------------------------------------------------------- reading --- */

/* What a task of a step has, and no shell has all of. */
static const char *const task_variables[] = {
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURMD_NODENAME", "SLURM_LOCALID"
};

/* Say which variables are missing, three at most: "A", "A and B", "A, B and
 * C"; returns how many.
 */
static int task_missing(char *buf, size_t size)
{
    const char *missing[3];
    int n = 0;

    for (size_t i = 0; i < DTN_COUNT(task_variables) && n < 3; i++)
        if (!getenv(task_variables[i]))
            missing[n++] = task_variables[i];
    if (n == 1)
        snprintf(buf, size, "%s is", missing[0]);
    else if (n == 2)
        snprintf(buf, size, "%s and %s are", missing[0], missing[1]);
    else if (n == 3)
        snprintf(buf, size, "%s, %s and %s are", missing[0], missing[1],
                 missing[2]);
    return n;
}

/* In a job, but SLURM_STEP_ID is not that of a step with tasks: the shell of a
 * batch script (with a rank!), of salloc, or of ssh into an allocated node.  A
 * world of one rank needs no launcher and may go on.
 */
static int slurm_not_a_step(struct dtn_search *search, const char *job,
                            const char *step, struct dtensor_error *err)
{
    char missing[120];

    if (search->cluster && search->cluster->world_size == 1) {
        snprintf(search->note, sizeof search->note, "in Slurm job %.20s but "
                 "not in a step", job);
        return DTN_FOUND_NOT;
    }
    if (!getenv("SLURM_PROCID") && task_missing(missing, sizeof missing) > 0)
        return dtn_fail(err, DTENSOR_ECONF, "SLURM_JOB_ID is set but %s not: "
                        "start it with srun, or unset SLURM_JOB_ID", missing);
    return dtn_fail(err, DTENSOR_ECONF, "in Slurm job %.20s but not in a step: "
                    "start it with \"srun %s ...\" (SLURM_STEP_ID is %.20s)",
                    job, program_invocation_short_name,
                    step ? step : "not set");
}

/* Read all of the task's variables; ECONF when one is missing or no number. */
static int task_read(struct slurm_task *task, struct dtensor_error *err)
{
    char missing[120];
    uint64_t job;
    int rc;

    if (task_missing(missing, sizeof missing) > 0)
        return dtn_fail(err, DTENSOR_ECONF, "SLURM_JOB_ID is set but %s not: "
                        "start it with srun, or unset SLURM_JOB_ID", missing);
    task->node = getenv("SLURMD_NODENAME");
    task->job = getenv("SLURM_JOB_ID");
    if (!dtn_parse_u64(task->job, false, UINT32_MAX, &job))
        return dtn_fail(err, DTENSOR_ECONF, "SLURM_JOB_ID is \"%.40s\", "
                        "expected a number", task->job);
    rc = dtn_env_number("SLURM_STEP_ID", 0, MAX_STEP, &task->step, err);
    if (rc == 0)
        rc = dtn_env_number("SLURM_STEP_NUM_TASKS", 1, DTN_MAX_RANKS,
                            &task->world_size, err);
    if (rc == 0)
        rc = dtn_env_number("SLURM_PROCID", 0, task->world_size - 1,
                            &task->rank, err);
    if (rc == 0)
        rc = dtn_env_number("SLURM_LOCALID", 0, task->world_size - 1,
                            &task->local_rank, err);
    return rc;
}

/* ------------------------------------------------------------- checking --- */

/* The options with which srun starts what the cluster describes. */
static char *srun_options(const struct dtensor_cluster *c, char *buf,
                          size_t size)
{
    bool even = true;

    for (int i = 1; i < c->nhosts; i++)
        even = even && c->hosts[i].nranks == c->hosts[0].nranks;
    if (even)
        snprintf(buf, size, "srun -N%d --ntasks-per-node=%d", c->nhosts,
                 c->hosts[0].nranks);
    else
        snprintf(buf, size, "srun -N%d -n%d", c->nhosts, c->world_size);
    return buf;
}

/* The host of that name; the only one when it is "localhost", which is any. */
static const struct dtn_host *host_find(const struct dtensor_cluster *c,
                                        const char *name)
{
    if (c->nhosts == 1 && strcmp(c->hosts[0].name, "localhost") == 0)
        return &c->hosts[0];
    for (int i = 0; i < c->nhosts; i++)
        if (dtn_same_host(c->hosts[i].name, name))
            return &c->hosts[i];
    return NULL;
}

static int fail_unknown_node(const struct dtensor_cluster *c, const char *what,
                             const char *node, struct dtensor_error *err)
{
    char **names = malloc((size_t)c->nhosts * sizeof *names);
    char list[200];

    if (!names)
        return dtn_fail_nomem(err, "whoami", (size_t)c->nhosts * sizeof *names);
    for (int i = 0; i < c->nhosts; i++)
        names[i] = c->hosts[i].name;
    dtn_hostlist_format(names, c->nhosts, list, sizeof list);
    free(names);
    return dtn_fail(err, DTENSOR_ECONF, "node %.64s is not in %s (hosts %s)",
                    node, what, list);
}

/* Does the step have the file's hosts in another order?  Slurm sorts nodes by
 * name, so no option of srun can cure that; the file can.
 */
static bool step_is_reordered(const struct dtensor_cluster *c)
{
    const char *list = getenv("SLURM_STEP_NODELIST");
    bool known = true, same = true;
    char **names, why[8];
    int n;

    if (!list || dtn_hostlist_expand(list, &names, &n, why, sizeof why) != 0)
        return false;
    for (int i = 0; i < n && n == c->nhosts && known; i++) {
        known = host_find(c, names[i]) != NULL;
        same = same && dtn_same_host(c->hosts[i].name, names[i]);
    }
    known = known && n == c->nhosts;
    dtn_hostlist_free(names, n);
    return known && !same;
}

/* The rank is on another host than the file (or block order) has it on. */
static int fail_wrong_host(const struct dtensor_cluster *c, const char *what,
                           const struct slurm_task *task,
                           struct dtensor_error *err)
{
    const char *wanted = dtn_host_of(c, task->rank)->name;

    if (step_is_reordered(c))
        return dtn_fail(err, DTENSOR_ECONF, "rank %d runs on %.64s, %s puts it "
                        "on %s: Slurm orders nodes by name; write \"hosts = "
                        "%.100s\"", task->rank, task->node, what, wanted,
                        getenv("SLURM_STEP_NODELIST"));
    return dtn_fail(err, DTENSOR_ECONF, "rank %d runs on %.64s "
                    "(SLURMD_NODENAME), %s puts it on %s: use srun "
                    "--distribution=block", task->rank, task->node, what,
                    wanted);
}

/* Hold the task against the cluster, which `what` names in messages. */
static int task_check(const struct slurm_task *task,
                      const struct dtensor_cluster *c, const char *what,
                      struct dtensor_error *err)
{
    const struct dtn_host *host = host_find(c, task->node);
    char options[64];

    srun_options(c, options, sizeof options);
    if (task->world_size != c->world_size)
        return dtn_fail(err, DTENSOR_ECONF, "Slurm started %d tasks "
                        "(SLURM_STEP_NUM_TASKS), %s describes %d ranks: use %s",
                        task->world_size, what, c->world_size, options);
    if (!host)
        return fail_unknown_node(c, what, task->node, err);
    if (task->local_rank >= host->nranks)
        return dtn_fail(err, DTENSOR_ECONF, "local rank %d (SLURM_LOCALID), %s "
                        "has %d ranks on %s: use %s", task->local_rank, what,
                        host->nranks, host->name, options);
    if (host != dtn_host_of(c, task->rank))
        return fail_wrong_host(c, what, task, err);
    if (task->local_rank != task->rank - host->first_rank)
        return dtn_fail(err, DTENSOR_ECONF, "rank %d is local rank %d "
                        "(SLURM_LOCALID) on %s, %s makes it local rank %d: use "
                        "%s --distribution=block", task->rank,
                        task->local_rank, host->name, what,
                        task->rank - host->first_rank, options);
    return 0;
}

/* --------------------------------------------------------------- method --- */

int dtn_whoami_slurm(struct dtn_search *search, struct dtn_self *self,
                     struct dtensor_error *err)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    struct slurm_task task;
    uint64_t number;
    int rc;

    if (!job) {
        snprintf(search->note, sizeof search->note, "SLURM_JOB_ID is not set");
        return DTN_FOUND_NOT;
    }
    if (!step || !dtn_parse_u64(step, false, MAX_STEP, &number))
        return slurm_not_a_step(search, job, step, err);
    rc = task_read(&task, err);
    if (rc == 0 && !search->cluster)
        rc = dtn_cluster_slurm_step(&search->cluster, err);
    if (rc == 0)
        rc = task_check(&task, search->cluster, search->path ? search->path
                        : "SLURM_STEP_NODELIST", err);
    if (rc)
        return rc;
    self->rank = task.rank;
    self->world_size = task.world_size;
    snprintf(self->job, sizeof self->job, "slurm-%s.%d", task.job, task.step);
    snprintf(self->launcher, sizeof self->launcher, "Slurm step %s.%d",
             task.job, task.step);
    return DTN_FOUND;
}
