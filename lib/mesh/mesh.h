/* mesh.h - a mesh: ranks on a grid, as other rooms use it */
#ifndef DTN_MESH_MESH_H
#define DTN_MESH_MESH_H

#include "base/ranks.h"
#include "job/group.h"
#include "mesh/grid.h"
#include "dtensor.h"

#include <stddef.h>

/* A mesh is a pattern of positions in its root that begins at `origin`; axis[d]
 * gives the distances of the coordinates of dimension d.  A root is its own
 * root, with origin 0.  It is made from a list of ranks, and position i is rank
 * i of the list.  Two meshes with the same root, pattern and names are one
 * object.
 */
struct dtensor_mesh {
    struct dtensor_mesh *next;    /* all meshes of the context                */
    struct dtensor_mesh *chain;   /* those in one bucket                      */
    struct dtensor_ctx *ctx;      /* that owns it                             */
    const struct dtensor_mesh *root;    /* whose positions it is a pattern of */
    char name[DTENSOR_NAME_MAX + 1];      /* "" unless from the file          */
    int ndim;                     /* 1 to 8; 0: one rank (dtn_mesh_sub())     */
    int size[DTENSOR_MAX_DIMS];   /* coordinates of each dimension            */
    char dim_name[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1];   /* "": none      */
    int origin;                   /* position in the root of coordinate 0     */
    struct dtn_grid axis[DTENSOR_MAX_DIMS]; /* positions along each dimension */
    struct dtn_group group;       /* all its ranks, row-major; same ranks,    */
                                  /* same group.ranks                         */
    const int *where;             /* of a root whose ranks are a list:        */
                                  /* [world] positions, -1: none; else NULL   */
    enum dtensor_memory memory;   /* of its root: where tensors are           */
    unsigned distinct;            /* bit set of dimensions along which [seed] */
                                  /* gives ranks different seeds              */
};

/* Make the meshes of the cluster file, and "world". */
int dtn_meshes_init(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* The position of a rank of the world in a root, or -1. */
static inline int dtn_mesh_where(const struct dtensor_mesh *root, int rank)
{
    return root->where ? root->where[rank]
                       : dtn_ranks_find(root->group.ranks, rank);
}

/* The coordinate of position `index` (0..size-1) of the mesh. */
void dtn_mesh_coord_of(const struct dtensor_mesh *mesh, int index, int coord[]);

/* The positions, ascending, that differ from position `index` in the dimensions
 * of the bit set `dims` only.  Returns how many.
 */
int dtn_mesh_along(const struct dtensor_mesh *mesh, unsigned dims, int index,
                   int position[]);

/* The sub-mesh of the dimensions in the bit set `dims` that contains this rank;
 * for a rank outside the mesh, the one that contains the first rank of the
 * mesh.  If `dims` is 0 it is one rank without dimensions.   Errors: ENOMEM
 */
int dtn_mesh_sub(const struct dtensor_mesh *mesh, unsigned dims,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* The mesh as text, "world(dp=2,tp=4)".  Returns `buf`. */
char *dtn_mesh_format(const struct dtensor_mesh *mesh, char *buf, size_t size);

#endif
