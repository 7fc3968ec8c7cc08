/* mesh_job.h - meshes without processes: a context that only knows its rank
 *
 * start(n, rank) plays rank `rank` of n; the meshes of the one before are gone.
 */
#ifndef MESH_JOB_H
#define MESH_JOB_H

#include "cluster/cluster.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

static struct dtensor_cluster cluster;
static struct dtensor_ctx ctx;

static inline void start(int n, int rank)
{
    dtn_slots_destroy(&ctx);
    memset(&ctx, 0, sizeof ctx);
    cluster.world_size = n;
    ctx.cluster = &cluster;
    ctx.self.rank = rank;
    if (dtn_meshes_init(&ctx, NULL) != 0)
        abort();
}

static inline const struct dtensor_mesh *grid(int ndim, const int sizes[],
                                              const char *names)
{
    const struct dtensor_mesh *mesh = NULL;

    if (dtensor_mesh_create(&ctx, ndim, sizes, names, NULL, &mesh, NULL) != 0)
        abort();
    return mesh;
}

#define GRID(names, ...)                                                      \
    grid((int)(sizeof (int[]){ __VA_ARGS__ } / sizeof(int)),                  \
         (const int[]){ __VA_ARGS__ }, names)

/* A mesh's ranks as rows of its last dimension, "0,1|4,5", in `text`. */
static inline const char *rows(const struct dtensor_mesh *mesh)
{
    static char text[512];
    int used = 0, last = mesh->ndim ? mesh->size[mesh->ndim - 1] : 1;

    text[0] = '\0';
    for (int i = 0; i < mesh->group.n && used < (int)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d",
                         !i ? "" : i % last ? "," : "|", mesh->group.ranks[i]);
    return text;
}

static inline void is(const char *got, const char *want, const char *claim)
{
    if (!ok(strcmp(got, want) == 0, "%s: %s", claim, want))
        note("got %s", got);
}

/* The rows of what `call` makes of `mesh`, or the words of its error. */
static struct dtensor_error mesh_err;
static const struct dtensor_mesh *made;

static inline const char *outcome(int rc)
{
    return rc == 0 ? rows(made) : mesh_err.text;
}
#define SLICE(mesh, names)                                                    \
    outcome(dtensor_mesh_slice(mesh, names, &made, &mesh_err))
#define ALONG(mesh, dim)                                                      \
    outcome(dtensor_mesh_along(mesh, dim, &made, &mesh_err))
#define FLATTEN(mesh, name)                                                   \
    outcome(dtensor_mesh_flatten(mesh, name, &made, &mesh_err))
#define COPY(mesh, i)                                                         \
    outcome(dtensor_mesh_copy(mesh, i, &made, &mesh_err))
#define UNFLATTEN(mesh, dim, names, ...)                                      \
    outcome(dtensor_mesh_unflatten(mesh, dim,                                 \
        (int)(sizeof (int[]){ __VA_ARGS__ } / sizeof(int)),                   \
        (const int[]){ __VA_ARGS__ }, names, &made, &mesh_err))

static inline const char *concatenated(const struct dtensor_mesh *a,
                                       const struct dtensor_mesh *b)
{
    const struct dtensor_mesh *const both[] = { a, b };

    return outcome(dtensor_mesh_concatenate(2, both, &made, &mesh_err));
}

static inline const struct dtensor_mesh *part(const struct dtensor_mesh *mesh,
                                              const char *names)
{
    const struct dtensor_mesh *sub = NULL;

    if (dtensor_mesh_slice(mesh, names, &sub, NULL) != 0)
        abort();
    return sub;
}

#endif
