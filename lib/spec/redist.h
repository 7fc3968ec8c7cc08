/* redist.h - private to the spec room: how one spec becomes another, made */
#ifndef DTN_REDIST_H
#define DTN_REDIST_H

#include "spec/spec.h"

#define DTN_NO_ROOT (-1)

/* One phase on this rank. */
struct dtn_redist_step {
    struct dtn_phase phase;
    const struct dtn_group *group;
    struct dtn_plan *plan;             /* EXCHANGE                            */
    size_t count;                      /* elements of the own result          */
};

struct dtn_redist {
    struct dtn_redist *next;           /* least recently used last            */
    struct dtensor_spec src;
    struct dtensor_spec dst;
    int root;                          /* of a scatter, else DTN_NO_ROOT      */
    uint32_t hash;                     /* of all three, the same on all ranks */
    int nsteps;
    struct dtn_redist_step step[DTN_MAX_PHASES];
    char text[160];                    /* for dtensor_last_plan()             */
};

/* Make it; in a scatter `src` is all R.
 * Collective: yes, the mesh.   Blocks: until connected to the peers it needs.
 */
int dtn_redist_create(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root, uint32_t hash,
                      struct dtn_redist **rp, struct dtensor_error *err);
void dtn_redist_destroy(struct dtn_redist *r);

#endif
