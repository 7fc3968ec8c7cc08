/* plans.h - private to the coll room: plans found by call */
#ifndef DTN_PLANS_H
#define DTN_PLANS_H

#include "coll/coll.h"

struct dtn_cached_plan {
    struct dtn_plan *plan;
    uint32_t fingerprint;
    char text[96];                /* for dtensor_last_plan()                   */
};

/* The plan of this call, made now if it is new.  Borrowed until the next call
 * of this function.
 */
int dtn_plans_get(const struct dtn_group *group, const struct dtn_call *call,
                  const struct dtn_cached_plan **cachedp,
                  struct dtensor_error *err);

#endif
