/* mesh_job.c - meshes without processes: a context that only knows its rank */
#include "cluster/cluster.h"
#include "job/slot.h"
#include "mesh/mesh.h"
#include "tests/support/mesh_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dtensor_cluster cluster;
struct dtensor_ctx ctx;

void start(int n, int rank)
{
    dtn_slots_destroy(&ctx);
    memset(&ctx, 0, sizeof ctx);
    cluster.world_size = n;
    ctx.world.cluster = &cluster;
    ctx.world.rank = rank;
    if (dtn_meshes_init(&ctx, NULL) != 0)
        abort();
}

const struct dtensor_mesh *grid(int ndim, const int sizes[],
                                const char *names)
{
    const struct dtensor_mesh *mesh = NULL;

    if (dtensor_mesh_create(&ctx, ndim, sizes, names, NULL, &mesh, NULL) != 0)
        abort();
    return mesh;
}

const char *rows(const struct dtensor_mesh *mesh)
{
    static char text[512];
    int used = 0, last = mesh->ndim ? mesh->size[mesh->ndim - 1] : 1;

    text[0] = '\0';
    for (int i = 0; i < mesh->group.n && used < (int)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d",
                         !i ? "" : i % last ? "," : "|",
                                 dtensor_mesh_rank(mesh, i));
    return text;
}

void is(const char *got, const char *want, const char *claim)
{
    if (!ok(strcmp(got, want) == 0, "%s: %s", claim, want))
        note("got %s", got);
}

struct dtensor_error mesh_err;
const struct dtensor_mesh *made;

const char *outcome(int rc)
{
    return rc == 0 ? rows(made) : mesh_err.text;
}

const char *concatenated(const struct dtensor_mesh *a,
                         const struct dtensor_mesh *b)
{
    const struct dtensor_mesh *const both[] = { a, b };

    return outcome(dtensor_mesh_concatenate(2, both, &made, &mesh_err));
}

const struct dtensor_mesh *part(const struct dtensor_mesh *mesh,
                                const char *names)
{
    const struct dtensor_mesh *sub = NULL;

    if (dtensor_mesh_slice(mesh, names, &sub, NULL) != 0)
        abort();
    return sub;
}
