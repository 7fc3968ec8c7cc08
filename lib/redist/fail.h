/* fail.h - a redistribute that fails on one rank */
#ifndef DTN_REDIST_FAIL_H
#define DTN_REDIST_FAIL_H

#include "dtensor.h"

/* If a rank fails alone, it reports this to the others, which wait for it.  Not
 * for EINVAL, which all ranks find.  Returns rc.
 */
int dtn_redist_give_up(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int rc,
                       const struct dtensor_error *why,
                       struct dtensor_error *err);

/* Was the plan made for these specs?   Errors: EINVAL  no */
int dtn_redist_fits(const struct dtensor_plan *plan,
                    const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, struct dtensor_error *err);

#endif
