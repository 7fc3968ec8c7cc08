/* levels.h - levels of trees and butterflies where hosts were counted */
#ifndef DTN_SCHED_LEVELS_H
#define DTN_SCHED_LEVELS_H

#include <stdbool.h>

struct dtn_levels_part;
struct dtn_model;
struct dtn_units;
struct dtn_weight;

/* Those of a weight that lead to other hosts, and those inside hosts.  false:
 * they follow from the number of ranks on each host.
 */
bool dtn_levels_count(const struct dtn_model *model,
                      const struct dtn_weight *weight,
                      const struct dtn_units *units, double stretch,
                      struct dtn_levels_part *beyond,
                      struct dtn_levels_part *inside);

#endif
