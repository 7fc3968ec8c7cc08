/* world.h - one rank of a job, and the mesh of all its ranks */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include "dtensor.h"
#include "tests/support/ranks.h"

struct world {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *mesh;
    int rank, n;
    struct dtensor_error err;
};

void world_open(struct world *world);

#endif
