/* program.h - the collectives that simulated ranks call, by seed */
#ifndef TESTS_SIM_PROGRAM_H
#define TESTS_SIM_PROGRAM_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { SIM_QUEUE_CALLS = 40 };

extern struct sim_program {
    uint64_t seed;                /* of the job                               */
    int calls;                    /* collectives; SIM_QUEUE_CALLS: broadcasts */
                                  /* of one root                              */
    bool each;                    /* four different ones, not drawn by seed   */
} sim_program;

/* A number below n, the same on all ranks. */
uint64_t sim_drawn(int call, int what, uint64_t n);

/* This call; *wrong grows by the elements that are wrong. */
int sim_program_call(const struct dtensor_mesh *mesh, int call, int *wrong,
                     struct dtensor_error *err);

#endif
