/* flat.h - a case of a collective */
#ifndef BENCH_FLAT_H
#define BENCH_FLAT_H

#include "tools/bench/job.h"
#include "tools/bench/pattern.h"
#include "dtensor.h"

struct bench;

struct flat {
    struct bench_job job;         /* must be first                            */
    void *in;                     /* input                                    */
    void *out;                    /* output                                   */
    size_t in_elems;              /* elements of the input                    */
    size_t out_elems;             /* elements of the output                   */
    size_t elem_bytes;            /* bytes of an element                      */
    struct patterns patterns;     /* values of the input and of the result    */
    struct dtensor_call call;     /* the call                                 */
    size_t *counts;               /* [group] blocks of this position          */
    struct dtensor_persistent *persistent;
                                  /* --persistent, or NULL                    */
};

int flat_open(struct bench *b, const struct bench_case *c,
              struct bench_job **jobp, struct dtensor_error *err);

#endif
