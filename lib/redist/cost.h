/* cost.h - the predicted cost of a redistribute */
#ifndef DTN_REDIST_COST_H
#define DTN_REDIST_COST_H

#include "redist/graph.h"
#include "sched/model.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_phase;

/* Costs that were computed.  Searches for routes ask for the same ones many
 * times: those of allreduces, and of changes of one placement.
 */
enum { DTN_COST_LEVELS = 64, DTN_COST_STEPS = 512 };
struct dtn_cost_kept {
    int n;                        /* entries of level                         */
    bool steps;                   /* `step` is in use, else it has no value   */
    struct {
        double bytes, ns;         /* of the local part; the cost              */
        int ranks, per_host;      /* of the allreduce, and those of a host    */
    } level[DTN_COST_LEVELS];     /* allreduces, in no order                  */
    struct dtn_cost_step {
        double bytes;             /* of the tensor; 0: an empty entry         */
        double ns;                /* the cost                                 */
        uint64_t from;            /* placements before, a byte for each       */
        unsigned to;              /* the placement after, which it is, and    */
                                  /* the type of an element                   */
    } step[DTN_COST_STEPS];       /* by a hash                                */
    struct dtn_route_graph graph; /* for dtn_route_min_cost()                 */
};

/* The constants for one mesh; sched/model.c says where each comes from. */
struct dtn_cost {
    const struct dtensor_mesh *mesh;      /* of these constants               */
    struct dtn_model model;       /* its inter-node rate is one rank's share  */
    double hop, message, byte;    /* ns, the smaller of those in a host and   */
                                  /* between hosts                            */
    double sharing;               /* ranks of the mesh that share a device    */
    int per_host[DTENSOR_MAX_DIMS]; /* coordinates of each mesh dimension     */
                                  /* on the host of coordinate 0              */
    struct dtn_cost_kept *kept;   /* the caller's; NULL: nothing is kept      */
};

/* Compute them from the cluster file and from the ranks along each dimension of
 * the mesh with all other coordinates 0.  Nothing else grows with the number of
 * ranks.  `kept` is NULL after that.
 */
void dtn_cost_init(const struct dtensor_mesh *mesh, struct dtn_cost *cost);

/* Time in nanoseconds: of an allreduce of `bytes` along mesh dimensions; of an
 * exchange; of a phase.  The result is the same on every rank.
 */
double dtn_cost_allreduce(const struct dtn_cost *cost,
                          const struct dtensor_mesh *mesh, unsigned dims,
                          double bytes);
double dtn_cost_exchange(const struct dtn_cost *cost,
                         const struct dtensor_spec *spec,
                         const struct dtensor_placement src[],
                         const struct dtensor_placement dst[]);
double dtn_cost_phase(const struct dtn_cost *cost,
                      const struct dtn_phase *phase);

/* Time of a tensor of a batch, in nanoseconds. */
struct dtn_cost_packing {
    double messages;              /* hops and messages of an exchange of its  */
                                  /* own                                      */
    double copies;                /* to pack and unpack it instead            */
};
struct dtn_cost_packing dtn_cost_packing(const struct dtn_cost *cost,
                                         const struct dtn_phase *exchange);

/* dtn_pack_bound() of an allreduce of `bytes` along mesh dimensions. */
size_t dtn_cost_sum_bound(const struct dtn_cost *cost, unsigned dims,
                          double bytes);

/* step.c: time of a change of placement m alone, from those of `from`; it is
 * that of the one phase that does it.
 */
struct dtn_step_from {
    const struct dtensor_placement *placement;   /* of the tensor             */
    double bytes;                 /* of the tensor                            */
    uint64_t code;                /* placements, a byte for each; 0: no costs */
                                  /* are kept                                 */
};
struct dtn_step_from dtn_step_from(const struct dtn_cost *cost,
                                   const struct dtensor_spec *spec,
                                   const struct dtensor_placement placement[]);
double dtn_cost_step(const struct dtn_cost *cost,
                     const struct dtensor_spec *spec,
                     const struct dtn_step_from *from, int m,
                     const struct dtensor_placement *to);

/* Elements of a local part, divided evenly. */
double dtn_volume_local(const struct dtensor_spec *spec,
                        const struct dtensor_placement placement[]);

#endif
