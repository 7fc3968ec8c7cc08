/* job.c - one rank of a job that calls what cannot fail */
#include "tests/support/job.h"

void job_open(struct job *job, int rank, int n, const char *path)
{
    *job = (struct job){ .rank = rank, .n = n };
    good(dtensor_init(path, &job->ctx, &job->err));
}

struct dtensor_tape *job_tape(struct job *job, const struct dtensor *t)
{
    struct dtensor_tape *tape = NULL;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    good(dtensor_tape_watch(tape, t, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    return tape;
}
