/* looks.h - how often the library looks at a rank while it plans
 *
 * The test program is linked with --wrap for the three functions.  The looks
 * are the `work` of counted.h.
 */
#ifndef TESTS_LOOKS_H
#define TESTS_LOOKS_H

#include "cluster/world.h"
#include "layout/layout.h"
#include "sched/call.h"
#include "tests/redist/counted.h"
#include "dtensor.h"

#include <stdint.h>

COUNTED(int64_t, dtn_local_numel, (const struct dtensor_spec *spec, int index),
        (spec, index))
COUNTED(int, dtn_world_host, (const struct dtn_world *world, int rank),
        (world, rank))
COUNTED(struct dtn_range, dtn_call_block, (const struct dtn_call *call, int r),
        (call, r))

#endif
