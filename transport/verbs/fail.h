/* fail.h - errors of a device, in words, with the limit that explains
 * them
 */
#ifndef DTN_TRANSPORT_VERBS_FAIL_H
#define DTN_TRANSPORT_VERBS_FAIL_H

#include "dtensor.h"

#include <stddef.h>

struct dtn_verbs;
struct dtn_verbs_device;
struct dtn_verbs_rail;

/* Word that registering `size` bytes failed with `sys_errno`. */
int dtn_verbs_fail_register(const struct dtn_verbs_device *device, size_t size,
                            int sys_errno, struct dtensor_error *err);

/* Word that no queue pair could be made for a rank. */
int dtn_verbs_fail_queue(const struct dtn_verbs *verbs,
                         const struct dtn_verbs_rail *rail, int rank,
                         int sys_errno, struct dtensor_error *err);

#endif
