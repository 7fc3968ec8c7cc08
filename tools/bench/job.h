/* job.h - a case, and the functions that run it */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "dtensor.h"

#include <stdbool.h>

struct bench;
struct bench_test;

struct bench_job;

/* One row of the table. */
struct bench_case {
    const struct bench_test *test;
                                  /* what is measured                         */
    enum dtensor_dtype dtype;     /* type of an element                       */
    enum dtensor_redop redop;     /* PATTERN_NO_OP: the test reduces nothing  */
    bool repro;                   /* the case before, under repro             */
    uint64_t bytes;               /* as nccl-tests counts them: see tests.c   */
    uint64_t count;               /* elements of the call; of unequal blocks  */
                                  /* the mean                                 */
    int ndim;                     /* redistribute: tensor dimensions          */
    int64_t shape[DTENSOR_MAX_DIMS];
                                  /* redistribute: global shape               */
};

/* The functions of a job.  `verify` counts in *wrongp the elements of the
 * result of iteration `iter` that are wrong, and prints the first if `say`.
 */
struct job_ops {
    /* write the whole input of iteration `iter` */
    void (*fill)(struct bench_job *job, int64_t iter);
    /* the timed call */
    int (*call)(struct bench_job *job, struct dtensor_error *err);
    /* read the whole output */
    void (*read)(struct bench_job *job);
    /* compare the output with what is expected */
    int (*verify)(struct bench_job *job, int64_t iter, bool say,
                  uint64_t *wrongp, struct dtensor_error *err);
    /* a call of --loop, with all that a program would make for it */
    int (*soak)(struct bench_job *job, struct dtensor_error *err);
    /* free the job */
    void (*close)(struct bench_job *job);
};

/* A case that is prepared to run on this rank. */
struct bench_job {
    const struct job_ops *ops;    /* functions of its kind                    */
    struct bench *b;              /* the run it belongs to                    */
    const struct bench_case *c;   /* its row of the table                     */
    double incoming_bytes;        /* bytes that one rank must receive         */
};

/* Print "rank 3 [i]: got 1.5, expected 2" on stderr. */
void job_say_wrong(const struct bench_job *job, const char *index, double got,
                   double expected);

#endif
