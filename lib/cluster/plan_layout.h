/* plan_layout.h - the layouts of styles in a cluster file */
#ifndef DTN_CLUSTER_PLAN_LAYOUT_H
#define DTN_CLUSTER_PLAN_LAYOUT_H

#include "cluster/file.h"

#include <stdbool.h>

/* Is it a placement that some tensor can have on some mesh: R, S(-1), S(0:3,5),
 * SS(0,2), C(0,64), HT(1), P, P(max)?  False: the reason is in `why`.
 */
bool dtn_plan_layout_ok(const char *text, char why[DTN_WHY_SIZE]);

#endif
