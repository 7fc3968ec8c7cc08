/* meshes.h - the meshes of a context; private to this room */
#ifndef DTN_MESH_MESHES_H
#define DTN_MESH_MESHES_H

#include "base/ranks.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/grid.h"
#include "dtensor.h"

#include <stdint.h>

/* A list of ranks.  Meshes with the same ranks in the same order share it, so
 * its address identifies the group, also in the caches.
 */
struct dtn_mesh_ranks {
    struct dtn_mesh_ranks *next;  /* in its bucket                            */
    uint64_t hash;                /* of n and the ranks                       */
    int me;                       /* position of this rank, or -1             */
    uint32_t calls;               /* see struct dtn_group                     */
    struct dtn_ranks ranks;       /* of the world; its list is that of a mesh */
                                  /* of the file, or `own`                    */
    int own[];                    /* [ranks.n], or none                       */
};

/* The name of a flattened dimension of a root. */
struct dtn_mesh_flat {
    struct dtn_mesh_flat *next;   /* of the context                           */
    const struct dtensor_mesh *root;      /* whose dimensions                 */
    char name[DTENSOR_NAME_MAX + 1];      /* of the flattened dimension       */
    struct dtn_grid axis;         /* positions along it                       */
};

enum { DTN_MESH_BUCKETS = 8192 }; /* 65,536 slices make chains of 8          */

/* Every mesh of a context. */
struct dtn_meshes {
    struct dtensor_mesh *first;  /* in the order they were made, those of the */
                                  /* file first                               */
    struct dtensor_mesh **end;    /* the last `next`                          */
    struct dtensor_mesh *mesh[DTN_MESH_BUCKETS];     /* by hash               */
    struct dtn_mesh_ranks *ranks[DTN_MESH_BUCKETS];  /* by hash               */
    struct dtn_mesh_flat *flat;   /* all that were made                       */
    uint64_t *seeds;              /* [world] of [seed]; NULL: all the same    */
    int nentered;                 /* by dtensor_mesh_enter(), not yet left    */
    int entered_capacity;         /* room in `entered`                        */
    const struct dtensor_mesh **entered;  /* [nentered], the current one last */
};

static inline struct dtn_meshes *dtn_meshes_of(const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_MESH].state;
}

#endif
