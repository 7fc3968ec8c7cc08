/* limits.h - what the machine allows: locked memory, queue pairs, MTU */
#ifndef DTN_TRANSPORT_VERBS_LIMITS_H
#define DTN_TRANSPORT_VERBS_LIMITS_H

#include "dtensor.h"

#include <stddef.h>

struct dtn_verbs;

/* Do the limits of this machine suffice for `verbs`, whose devices are open?
 * Logs those that may be met later.   Errors: ENOMEM
 */
int dtn_verbs_limits_check(const struct dtn_verbs *verbs,
                           struct dtensor_error *err);

/* May `size` bytes more be locked?   Errors: ENOMEM, with both numbers */
int dtn_verbs_limits_more(const struct dtn_verbs *verbs, size_t size,
                          struct dtensor_error *err);

#endif
