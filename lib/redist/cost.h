/* cost.h - what a redistribution will cost, by the model; private to this room
 */
#ifndef DTN_REDIST_COST_H
#define DTN_REDIST_COST_H

#include "sched/model.h"
#include "dtensor.h"

struct dtn_phase;

/* The constants for one mesh; where each comes from stands in sched/model.c. */
struct dtn_cost {
    const struct dtensor_mesh *mesh;      /* of these constants               */
    struct dtn_model model;       /* its inter-node rate is one rank's share  */
    int per_host[DTENSOR_MAX_DIMS]; /* coordinates of each mesh dimension     */
                                  /* on the host of coordinate 0              */
};

/* Look at the cluster file and at one line of the mesh along each of its
 * dimensions: nothing grows with the number of ranks but these lines.
 */
void dtn_cost_init(const struct dtensor_mesh *mesh, struct dtn_cost *cost);

/* Nanoseconds: of that exchange; of an allreduce of `bytes` along mesh
 * dimensions; of a phase.  Every rank gets the same number.
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
