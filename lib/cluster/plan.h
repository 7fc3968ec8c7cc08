/* plan.h - [plan "NAME"]: which styles the modules of a model get */
#ifndef DTN_CLUSTER_PLAN_H
#define DTN_CLUSTER_PLAN_H

#include "dtensor.h"

#include <stdio.h>

struct dtn_file_check;

/* The plan of that name; NULL: the cluster has none. */
const struct dtn_plan_def *dtn_plan_find(const struct dtensor_cluster *cluster,
                                         const char *name);

/* Check all [plan] sections.   Errors: ENOMEM */
int dtn_file_check_plans(struct dtn_file_check *check);

/* Free what the plan owns. */
void dtn_plan_def_free(struct dtn_plan_def *plan);

/* Write the canonical text of all plans, sorted by name, and of their entries,
 * sorted by pattern.
 */
void dtn_plan_canonical(const struct dtensor_cluster *cluster, FILE *out);

/* Write the plans for people. */
void dtn_plan_show(const struct dtensor_cluster *cluster, FILE *out);

#endif
