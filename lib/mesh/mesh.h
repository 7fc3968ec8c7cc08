/* mesh.h - meshes: patterns of ranks */
#ifndef DTN_MESH_MESH_H
#define DTN_MESH_MESH_H

#include "job/group.h"
#include "mesh/grid.h"
#include "dtensor.h"

#include <stddef.h>


/* A mesh is a pattern of positions of its root: from `origin` on, axis[d] says
 * how far apart the coordinates of dimension d are.  The root is its own, with
 * origin 0; it was made from a list of ranks, and that list is what positions
 * mean.  Two meshes with the same root, pattern and names are one object.
 */
struct dtensor_mesh {
    struct dtensor_mesh *next;    /* all meshes of the context                 */
    struct dtensor_mesh *chain;   /* those of one hash                         */
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *root;
    char name[DTENSOR_NAME_MAX + 1];      /* "" unless from the file           */
    int ndim;
    int size[DTENSOR_MAX_DIMS];
    char dim_name[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1];
    int origin;                   /* position in the root of coordinate 0      */
    struct dtn_grid axis[DTENSOR_MAX_DIMS];
    struct dtn_group group;       /* all its ranks, row-major; same ranks,     */
                                  /* same group.ranks                          */
    const int *where;             /* of a root: [world] positions, -1: none    */
    unsigned distinct;            /* bit set of dimensions along which [seed]  */
                                  /* gives ranks different seeds               */
};

/* Make the meshes of the cluster file, and "world". */
int dtn_meshes_init(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* The coordinate of position `index` (0..size-1) of the mesh. */
void dtn_mesh_coord_of(const struct dtensor_mesh *mesh, int index, int coord[]);

/* The sub-mesh of the dimensions in the bit set `dims` that contains this
 * rank, or outside the mesh its first rank.  None of them: one rank without
 * dimensions.   Errors: ENOMEM
 */
int dtn_mesh_sub(const struct dtensor_mesh *mesh, unsigned dims,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* "world(dp=2,tp=4)": for people.  Returns `buf`. */
char *dtn_mesh_format(const struct dtensor_mesh *mesh, char *buf, size_t size);

#endif
