/* world.c - one rank of a job, and the mesh of all its ranks */
#include "tests/support/world.h"

#include <stddef.h>

void world_open(struct world *world)
{
    need(dtensor_init(NULL, &world->ctx, &world->err) == 0, "init: %s",
         world->err.text);
    need(dtensor_mesh_find(world->ctx, "world", &world->mesh, &world->err)
         == 0, "mesh: %s", world->err.text);
    world->rank = dtensor_rank(world->ctx);
    world->n = dtensor_world_size(world->ctx);
}
