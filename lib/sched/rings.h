/* rings.h - what a ring costs over several hosts */
#ifndef DTN_SCHED_RINGS_H
#define DTN_SCHED_RINGS_H

#include "dtensor.h"

struct dtn_model;
struct dtn_units;
struct dtn_weight;

/* Add the hops, messages, bytes and reductions of a ring or a chain over all
 * ranks of several hosts.  A byte inside a host costs `stretch` times what it
 * costs in the caches.
 */
void dtn_load_ring(const struct dtn_model *model,
                   const struct dtn_weight *weight,
                   const struct dtn_units *units, double stretch,
                   double load[DTENSOR_NCOSTS]);

#endif
