/* env.c - every environment variable that the library and the tools read
 *
 *     DTN_LOG      info
 *     DTN_CLUSTER  -        no file: the ranks that were started
 *
 * A row for each; tests/tools/env.sh compares the rows with the sources.
 */
#include "tools/conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct variable {
    const char *name;
    const char *unset;             /* what holds without it                   */
} variables[] = {
    { "DTN_CLUSTER", "no file: the cluster is the ranks that were started" },
    { "DTN_RANK", "the rank is that of the Slurm task, or of this host" },
    { "DTN_WORLD_SIZE", "as DTN_RANK" },
    { "DTN_LOCAL_RANK", "as DTN_RANK" },
    { "DTN_LOCAL_SIZE", "as DTN_RANK" },
    { "DTN_JOB", "the job is that of Slurm, or named after the file" },
    { "DTN_KEY", "ranks of different hosts prove by munge who they are" },
    { "DTN_MUNGE_SOCKET", "the socket that libmunge was built with" },
    { "DTN_HOST", "this host has the name that the system or Slurm gives" },
    { "DTN_LOG", "off" },
    { "DTN_BLAS", "that of the build, or own loops where they are faster" },
    { "DTN_CUBLAS", "libcublas.so.13, else libcublas.so.12" },
    { "DTN_REPORT", "no file says which hosts are suspect" },
    { "DTN_FAULT", "no faults are injected" },
    { "DTN_LAUNCH_NS", "set by dtensor-bench for the ranks that it starts" },
    { "SLURM_JOB_ID", "not in a Slurm job" },
    { "SLURM_STEP_ID", "not in a Slurm step" },
    { "SLURM_PROCID", "not in a Slurm step" },
    { "SLURM_LOCALID", "not in a Slurm step" },
    { "SLURM_STEP_NUM_TASKS", "not in a Slurm step" },
    { "SLURM_STEP_NODELIST", "not in a Slurm step" },
    { "SLURM_STEP_TASKS_PER_NODE", "not in a Slurm step" },
    { "SLURMD_NODENAME", "not in a Slurm step" },
    { "SLURM_DISTRIBUTION", "block" },
    { "SLURM_DIST_PLANESIZE", "no plane" },
    { "SLURM_GTIDS", "the order follows from SLURM_DISTRIBUTION" },
    { "CUDA_VISIBLE_DEVICES", "all GPUs of the driver" },
    { "OPENBLAS_NUM_THREADS", "products use one thread of a rank" },
    { "GOTO_NUM_THREADS", "as OPENBLAS_NUM_THREADS" },
    { "OMP_NUM_THREADS", "as OPENBLAS_NUM_THREADS" },
    { "BLIS_NUM_THREADS", "as OPENBLAS_NUM_THREADS" },
    { "LC_ALL", "LC_CTYPE says whether pictures are drawn in UTF-8" },
    { "LC_CTYPE", "LANG says it" },
    { "LANG", "pictures are drawn in ASCII" },
    { "COLUMNS", "pictures are as wide as the terminal, or 80 columns" },
    { "NO_COLOR", "pictures on a terminal have colours" },
    { "TERM", "pictures have no colours" }
};

/* A key is a secret, unless it is a file that has it. */
static void print_value(const char *name, const char *value)
{
    if (strcmp(name, "DTN_KEY") == 0 && value[0] != '/')
        printf("%zu characters, not shown", strlen(value));
    else
        fputs(value, stdout);
}

void conf_env(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);

        printf("%-25s  ", variables[i].name);
        if (value)
            print_value(variables[i].name, value);
        else
            printf("-  (%s)", variables[i].unset);
        putchar('\n');
    }
}
