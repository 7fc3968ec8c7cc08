/* gpu_rank.h - a rank of a job on GPUs, with three arrays there
 *
 * The driver is that of tests/standin.  The numbers in an array depend on rank,
 * round and place, and their sum on the order in which they are added.
 */
#ifndef TESTS_DEVICE_GPU_RANK_H
#define TESTS_DEVICE_GPU_RANK_H

#include "device/cuda/cuda.h"
#include "dtensor.h"
#include "tests/support/job.h"

enum { GPU_COUNT = 1500,          /* elements of a call                       */
       GPU_ROOM = 8 * GPU_COUNT };    /* of an array                          */

struct gpu_rank {
    struct job job;
    const struct dtensor_mesh *mesh;
    struct dtn_cuda *cuda;
    float *in, *out, *in2;        /* [GPU_ROOM] on the GPU                    */
    int rank, n;
};

extern char gpu_file[64];         /* the cluster file of the job              */
extern float plain[GPU_ROOM], graph[GPU_ROOM];  /* to compare, on the host    */

/* Run n ranks on a mesh of these dimensions in memory of GPUs.  Returns how
 * many did not end well.
 */
int gpu_ranks(int n, const char *dims, const char *timeout, rank_main_f *run,
              const char *arg);

void gpu_rank_open(struct gpu_rank *use, int rank, int n);
void gpu_rank_close(struct gpu_rank *use);
void gpu_fill(struct gpu_rank *use, float *to, int round);
void gpu_take(struct gpu_rank *use, float host[GPU_ROOM]);   /* OUT           */

#endif
