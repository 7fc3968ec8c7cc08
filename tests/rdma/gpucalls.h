/* gpucalls.h - collectives on memory of a GPU whose results are checked */
#ifndef TESTS_RDMA_GPUCALLS_H
#define TESTS_RDMA_GPUCALLS_H

#include <stdbool.h>
#include <stddef.h>

struct job;

enum { GPU_SMALL = 200, GPU_LARGE = 900 * 1000 };   /* elements of 4 bytes    */

/* The driver; its context of this rank's device is the current one. */
const struct dtn_cuda_driver *gpu_enter(struct job *job);

/* Close the job and leave the context; nothing of the driver's may be left. */
void gpu_close(struct job *job);

/* An allreduce and an allgather of `count` elements.  Is the result right? */
bool gpu_collectives(struct job *job, void *in, void *out, int count);

/* An allreduce alone, which returns its code. */
int gpu_allreduce(struct job *job, void *in, void *out, int count);

/* A redistribute of a tensor from rows to columns. */
bool gpu_redistribute(struct job *job);

/* Was some buffer staged, of calls so far? */
bool gpu_staged(const struct job *job);

#endif
