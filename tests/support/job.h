/* job.h - one rank of a job that calls what cannot fail
 *
 * good(dtensor_init(path, &job->ctx, &job->err)) ends the rank, with the call
 * and its error in words, if it fails after all.
 */
#ifndef TESTS_JOB_H
#define TESTS_JOB_H

#include "dtensor.h"
#include "tests/support/ranks.h"

struct job {
    struct dtensor_ctx *ctx;
    struct dtensor_error err;
    int rank, n;
};

#define good(call)                                                            \
    do {                                                                      \
        job->err.text[0] = '\0';                                              \
        need((call) == 0, "%s: %s", #call, job->err.text);                    \
    } while (0)

void job_open(struct job *job, int rank, int n, const char *path);

/* A tape that watches `t` and has begun. */
struct dtensor_tape *job_tape(struct job *job, const struct dtensor *t);

#endif
