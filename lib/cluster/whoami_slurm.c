/* whoami_slurm.c - the Slurm step this process is a task of
 *
 * Slurm sets similar variables for a job and for a step.  Only those of the
 * *step* count: SLURM_STEP_*, and those that only a task has.  The *job's*
 * SLURM_NTASKS, SLURM_NODELIST and SLURM_NODEID are also set in the shell of a
 * batch script.  There, `./prog` in a job of 6 tasks sees SLURM_PROCID=0 and
 * SLURM_NTASKS=6: it would be rank 0 of 6, and nobody starts the other five.
 * In that shell SLURM_STEP_ID is missing, or is one of the numbers from
 * 0xfffffffb on that mark steps without tasks, printed with or without a sign.
 *
 * The node's name is SLURMD_NODENAME, never gethostname().  The place of each
 * rank comes from Slurm and is not computed by a division: `srun -N2 -n4` may
 * run three tasks on one node and one on the other.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/units.h"
#include "cluster/builtin.h"
#include "cluster/cluster.h"
#include "cluster/env.h"
#include "cluster/host.h"
#include "cluster/world.h"
#include "cluster/whoami.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
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

/* The variables of a task of a step.  No shell has all of them. */
static const char *const task_variables[] = {
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURMD_NODENAME", "SLURM_LOCALID"
};

/* Write the names of missing variables, at most three: "A", "A and B", "A, B
 * and C".  Returns how many are missing.
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

/* The process is in a job, but SLURM_STEP_ID is not that of a step with tasks:
 * it runs in the shell of a batch script (which has a rank!), of salloc, or of
 * ssh into an allocated node.  A world of one rank needs no launcher, so this
 * is no error there.
 */
static int slurm_not_a_step(struct dtn_whoami_search *search, const char *job,
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

/* Read the task's variables.  ECONF: one is missing or is not a number. */
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

/* A rank runs on this node, but the cluster file places it on another. */
static int fail_wrong_host(const struct dtensor_cluster *c, const char *what,
                           const char *node, int rank, const char *says,
                           struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_ECONF, "rank %d runs on %.64s (%s), %s puts "
                    "it on %s: use srun --distribution=block", rank, node, says,
                    what, dtn_host_of(c, rank)->name);
}

/* Check that the cluster places all ranks of this node, "0,1,4", on it.  If
 * not, each of them returns the error.
 */
static int node_check(const struct slurm_task *task,
                      const struct dtensor_cluster *c,
                      const struct dtn_host *host, const char *what,
                      struct dtensor_error *err)
{
    const char *p = getenv("SLURM_GTIDS");
    char *end;
    long rank;

    for (; p && *p >= '0' && *p <= '9'; p = *end ? end + 1 : end) {
        rank = strtol(p, &end, 10);
        if (rank < c->world_size && host != dtn_host_of(c, (int)rank))
            return fail_wrong_host(c, what, task->node, (int)rank,
                                   "SLURM_GTIDS", err);
    }
    return 0;
}

/* Compare this task with the cluster, which `what` names in messages. */
static int task_check(const struct slurm_task *task,
                      const struct dtensor_cluster *c, const char *what,
                      struct dtensor_error *err)
{
    const struct dtn_host *host = dtn_slurm_host(c, task->node);
    char options[200];

    dtn_srun_options(c, false, options, sizeof options);
    if (task->world_size != c->world_size)
        return dtn_fail(err, DTENSOR_ECONF, "Slurm started %d tasks "
                        "(SLURM_STEP_NUM_TASKS), %s describes %d ranks: use %s",
                        task->world_size, what, c->world_size, options);
    if (!host)
        return dtn_fail(err, DTENSOR_ECONF, "rank %d runs on %.64s "
                        "(SLURMD_NODENAME), which is not in %s: use srun -w "
                        "with its hosts", task->rank, task->node, what);
    if (host != dtn_host_of(c, task->rank))
        return fail_wrong_host(c, what, task->node, task->rank,
                               "SLURMD_NODENAME", err);
    if (task->local_rank != task->rank - host->first_rank)
        return dtn_fail(err, DTENSOR_ECONF, "rank %d is local rank %d "
                        "(SLURM_LOCALID) on %s, %s makes it local rank %d: use "
                        "%s --distribution=block", task->rank,
                        task->local_rank, host->name, what,
                        task->rank - host->first_rank, options);
    return node_check(task, c, host, what, err);
}

/* --------------------------------------------------------------- method --- */

static void task_name(const struct slurm_task *task, struct dtn_world *world)
{
    world->rank = task->rank;
    world->size = task->world_size;
    snprintf(world->job, sizeof world->job, "slurm-%s.%d", task->job,
             task->step);
    snprintf(world->launcher, sizeof world->launcher, "Slurm step %s.%d",
             task->job, task->step);
}

int dtn_whoami_slurm(struct dtn_whoami_search *search, struct dtn_world *world,
                     struct dtensor_error *err)
{
    const char *what = search->path ? search->path : "SLURM_STEP_NODELIST";
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
        rc = dtn_slurm_step_check(search->cluster, what, err);
    if (rc == 0)
        rc = task_check(&task, search->cluster, what, err);
    if (rc)
        return rc;
    task_name(&task, world);
    return DTN_FOUND;
}

bool dtn_claim_slurm(struct dtn_whoami_search *search, struct dtn_world *world)
{
    struct dtensor_error ignored;
    struct slurm_task task;

    if (task_read(&task, &ignored) != 0 ||
        (!search->cluster &&
         dtn_cluster_slurm_step(&search->cluster, &ignored) != 0) ||
        dtn_slurm_step_check(search->cluster, "", &ignored) != 0)
        return false;                /* every task finds the error            */
    task_name(&task, world);
    return true;
}
