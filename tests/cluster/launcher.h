/* launcher.h - environments of launchers, and the cluster files they go with */
#ifndef TESTS_CLUSTER_LAUNCHER_H
#define TESTS_CLUSTER_LAUNCHER_H

#include <stdbool.h>

#define RUN(rank, size) "DTN_RANK=" rank " DTN_WORLD_SIZE=" size              \
    " DTN_LOCAL_RANK=" rank " DTN_LOCAL_SIZE=" size " DTN_JOB=j "

/* What srun sets for a task; the job is larger than the step. */
#define JOB "SLURM_JOB_ID=14 SLURM_NTASKS=6 SLURM_NPROCS=6 "                  \
    "SLURM_NODELIST=n[0-7] SLURM_JOB_NODELIST=n[0-7] "                        \
    "SLURM_TASKS_PER_NODE=1(x6) SLURM_NTASKS_PER_NODE=2 "
#define STEP(rank, size, local, node, list, tasks) JOB "SLURM_STEP_ID=2 "     \
    "SLURM_PROCID=" rank " SLURM_STEP_NUM_TASKS=" size " SLURM_LOCALID="      \
    local " SLURMD_NODENAME=" node " SLURM_STEP_NODELIST=" list               \
    " SLURM_STEP_TASKS_PER_NODE=" tasks " "

/* Set only "A=1 B=2" of all variables DTN_*, SLURM_* and SLURMD_*. */
void environment_set(const char *text);

/* Go to a folder of its own in /tmp and write the files there: pair.ini has two
 * hosts of two ranks, and so on.  Returns false if /tmp is not writable.
 */
bool files_write(void);
void files_remove(void);

#endif
