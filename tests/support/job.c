/* job.c - one rank of a job that calls what cannot fail */
#include "tests/support/job.h"

void job_open(struct job *job, int rank, int n, const char *path)
{
    *job = (struct job){ .rank = rank, .n = n };
    good(dtensor_init(path, &job->ctx, &job->err));
}
