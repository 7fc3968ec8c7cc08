/* session.h - context, meshes and buffers of a run */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "tools/bench/bench.h"
#include "dtensor.h"

#include <stdbool.h>

struct bench_options;

/* One rank's run. */
struct bench {
    const struct bench_options *opt;
                                  /* the command line                         */
    struct dtensor_ctx *ctx;      /* this rank in the job                     */
    const struct dtensor_mesh *all;
                                  /* every rank, in one dimension             */
    const struct dtensor_mesh *mesh;
                                  /* the mesh of the tests                    */
    char dim[2 * DTENSOR_NAME_MAX];
                                  /* name of the mesh in the results          */
    int rank;                     /* in the world                             */
    int nranks;                   /* ranks of the world                       */
    int group;                    /* ranks of `mesh`                          */
    int position;                 /* of this rank in `mesh`, -1: outside      */
    bool told;                    /* another rank prints the error            */
    volatile uint64_t sink;       /* where buffers are read to                */
};

/* Call session_close() whether it succeeds or not. */
int session_open(struct bench *b, const struct bench_options *opt,
                 struct dtensor_error *err);
void session_close(struct bench *b);

/* The same for --dry-run: rank 0 of a job that is only planned, of --local
 * ranks, or of those of the cluster file.
 */
int session_plan(struct bench *b, const struct bench_options *opt,
                 struct dtensor_error *err);

/* Make the largest of all ranks' values everyone's. */
int session_max(struct bench *b, double value[], size_t n,
                struct dtensor_error *err);
int session_sum(struct bench *b, int64_t *value, struct dtensor_error *err);

/* Besides a negative enum dtensor_errcode: the reader of stdout has ended, as
 * head does.  That ends a run and is no error.
 */
#define SESSION_UNREAD (-1000)

/* Did every rank come here with rc 0?  If not, fail here too. */
int session_agree(struct bench *b, int rc, struct dtensor_error *err);

/* A buffer of the kind -R asks for, all of it touched. */
int session_alloc(struct bench *b, size_t size, void **memp,
                  struct dtensor_error *err);
void session_free(struct bench *b, void *mem);

/* Read it all, in words of 8 bytes. */
void session_touch(struct bench *b, const void *mem, size_t size);

int64_t session_now_ns(void);                          /* CLOCK_MONOTONIC    */
enum bench_exit session_exit_code(int errcode);

/* The same of a failed start: a file that cannot be read is a wrong command. */
enum bench_exit session_start_code(const struct bench_options *opt, int rc);

/* Set *err and return `code`. */
int session_fail(struct dtensor_error *err, int code, const char *fmt, ...)
    BENCH_PRINTF(3, 4);

#endif
