/* speed.h - how fast the GPU of this machine is; see test_cuda_speed.c */
#ifndef TESTS_DEVICE_SPEED_H
#define TESTS_DEVICE_SPEED_H

#include <stddef.h>

/* What all processes of the program share. */
struct speed {
    char file[64];                /* the cluster file of the job              */
    size_t bytes;                 /* of an allreduce                          */
    int rounds;                   /* of which the best counts                 */
    double copy;                  /* bytes per second, read and written       */
};

/* Nothing of the stand-in's is a figure of a GPU: behind each of them. */
const char *speed_mark(void);

/* "expected 0.85: reached", or that nothing was measured. */
const char *speed_verdict(double got, double expected);

/* An allreduce of bf16 between two ranks of one GPU, of two kinds: processes,
 * which use a GPU by turns, and threads of one process, which do not.
 */
void speed_pair_processes(int rank, int n, void *speed);
void speed_pair_threads(int rank, int n, void *speed);

#endif
