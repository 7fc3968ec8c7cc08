/* mesh_job.h - meshes without processes: a context that only knows its rank
 *
 * start(n, rank) plays rank `rank` of n; the meshes of the one before are gone.
 */
#ifndef TESTS_MESH_JOB_H
#define TESTS_MESH_JOB_H

#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/tap.h"

extern struct dtensor_ctx ctx;
void start(int n, int rank);
const struct dtensor_mesh *grid(int ndim, const int sizes[],
                                const char *names);

#define GRID(names, ...)                                                      \
    grid((int)(sizeof (int[]){ __VA_ARGS__ } / sizeof(int)),                  \
         (const int[]){ __VA_ARGS__ }, names)

/* A mesh's ranks as rows of its last dimension, "0,1|4,5", in `text`. */
const char *rows(const struct dtensor_mesh *mesh);
void is(const char *got, const char *want, const char *claim);

/* The rows of what `call` makes of `mesh`, or the words of its error. */
extern struct dtensor_error mesh_err;
extern const struct dtensor_mesh *made;
const char *outcome(int rc);

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

const char *concatenated(const struct dtensor_mesh *a,
                         const struct dtensor_mesh *b);
const struct dtensor_mesh *part(const struct dtensor_mesh *mesh,
                                const char *names);

#endif
