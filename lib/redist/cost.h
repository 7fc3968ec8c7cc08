/* cost.h - the predicted cost of a redistribute */
#ifndef DTN_REDIST_COST_H
#define DTN_REDIST_COST_H

#include "sched/model.h"
#include "dtensor.h"

struct dtn_phase;

/* The constants for one mesh; sched/model.c says where each comes from. */
struct dtn_cost {
    const struct dtensor_mesh *mesh;      /* of these constants               */
    struct dtn_model model;       /* its inter-node rate is one rank's share  */
    int per_host[DTENSOR_MAX_DIMS]; /* coordinates of each mesh dimension     */
                                  /* on the host of coordinate 0              */
};

/* Compute them from the cluster file and from the ranks along each dimension of
 * the mesh with all other coordinates 0.  Nothing else grows with the number of
 * ranks.
 */
void dtn_cost_init(const struct dtensor_mesh *mesh, struct dtn_cost *cost);

/* Time in nanoseconds: of an exchange; of an allreduce of `bytes` along mesh
 * dimensions; of a phase.  The result is the same on every rank.
 */
double dtn_cost_exchange(const struct dtn_cost *cost,
                         const struct dtensor_spec *spec,
                         const struct dtensor_placement src[],
                         const struct dtensor_placement dst[]);
double dtn_cost_allreduce(const struct dtn_cost *cost,
                          const struct dtensor_mesh *mesh, unsigned dims,
                          double bytes);
double dtn_cost_phase(const struct dtn_cost *cost,
                      const struct dtn_phase *phase);

/* Elements of a local part, divided evenly. */
double dtn_volume_local(const struct dtensor_spec *spec,
                        const struct dtensor_placement placement[]);

#endif
