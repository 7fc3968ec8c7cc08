/* meshes.h - all meshes of a context; private to this room */
#ifndef DTN_MESH_MESHES_H
#define DTN_MESH_MESHES_H

#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/grid.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* A list of ranks that some mesh has.  Meshes with the same ranks in the same
 * order share it, so its address stands for the group: in the plan cache too.
 */
struct mesh_ranks {
    struct mesh_ranks *next;      /* in its bucket                             */
    uint64_t hash;
    int n;
    int me;                       /* position of this rank, or -1              */
    uint32_t calls;               /* see struct dtn_group                      */
    int rank[];
};

/* A name that flattening gave to dimensions of a root. */
struct mesh_flat {
    struct mesh_flat *next;
    const struct dtensor_mesh *root;
    char name[DTENSOR_NAME_MAX + 1];
    struct dtn_grid axis;
};

enum { MESH_BUCKETS = 8192 };         /* 8 ranks deep where 65,536 have slices  */

/* Every mesh of a context. */
struct dtn_meshes {
    struct dtensor_mesh *first;   /* in the order they were made: those of the */
    struct dtensor_mesh **end;    /* file are in front                         */
    struct dtensor_mesh *mesh[MESH_BUCKETS];
    struct mesh_ranks *ranks[MESH_BUCKETS];
    struct mesh_flat *flat;
    uint64_t *seeds;              /* [world] of [seed]; NULL: all the same     */
    int nentered, entered_capacity;       /* dtensor_mesh_enter()              */
    const struct dtensor_mesh **entered;
};

static inline struct dtn_meshes *dtn_meshes_of(const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_MESH].state;
}

/* ---------------------------------------------------------------- mesh.c --- */

/* Describe a mesh, then have it made, or found.  begin() starts one without
 * dimensions among the positions of `of`'s root, add() appends dimensions,
 * end() gives the one that contains position `at` of the root.
 */
void dtn_mesh_begin(struct dtensor_mesh *proto, const struct dtensor_mesh *of);
void dtn_mesh_add(struct dtensor_mesh *proto, const char *name, int size,
                  const struct dtn_grid *axis);
int dtn_mesh_end(struct dtensor_mesh *proto, int at,
                 const struct dtensor_mesh **meshp, struct dtensor_error *err);

/* Where this rank is in the root of the mesh; outside, the mesh's origin. */
int dtn_mesh_here(const struct dtensor_mesh *mesh);

/* All axes of a mesh as one grid: its ranks, row-major. */
struct dtn_grid dtn_mesh_grid(const struct dtensor_mesh *mesh);

/* ---------------------------------------------------------- mesh_names.c --- */

/* Take the next word of "dp, tp" off *textp into `word`; false at the end.
 * A word too long is cut, which no valid name survives.
 */
#define MESH_WORD_MAX (DTENSOR_NAME_MAX + 2)
bool dtn_mesh_word(const char **textp, char word[MESH_WORD_MAX]);

/* Read `n` distinct names. */
int dtn_mesh_names(const char *text, int n,
                   char names[][DTENSOR_NAME_MAX + 1],
                   struct dtensor_error *err);

/* Is it the name of a dimension: some characters, not too many, no comma? */
int dtn_mesh_check_name(const char *name, struct dtensor_error *err);

/* The index of a dimension, or -1; "" is nobody's name. */
int dtn_mesh_find_dim(const struct dtensor_mesh *mesh, const char *name);

/* Is `dim` one of the mesh's?  -1 is the only one, if it has one only. */
int dtn_mesh_check_dim(const struct dtensor_mesh *mesh, int *dim,
                       struct dtensor_error *err);

#endif
