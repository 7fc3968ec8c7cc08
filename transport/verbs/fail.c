/* fail.c - errors of a device, with the limit that explains them
 *
 * "Cannot allocate memory" of ibv_reg_mr() usually means `ulimit -l`; of
 * ibv_create_qp() it means that the device has no more queue pairs.
 */
#include "base/error.h"
#include "base/units.h"
#include "transport/memlock.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/fail.h"
#include "transport/verbs/rail.h"
#include "dtensor.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int dtn_verbs_fail_register(const struct dtn_verbs_device *device, size_t size,
                            int sys_errno, struct dtensor_error *err)
{
    uint64_t have = dtn_memlock_bytes();
    char bytes[32], limit[32];

    dtn_format_size(size, bytes, sizeof bytes);
    dtn_memlock_text(have, limit, sizeof limit);
    if ((sys_errno == ENOMEM || sys_errno == EAGAIN)
        && have != DTN_MEMLOCK_UNLIMITED)
        return dtn_fail_sys(err, sys_errno, "verbs: cannot register %s on %s: "
                            "%m; this process may lock %s in all (%s)", bytes,
                            device->name, limit, dtn_memlock_remedy());
    return dtn_fail_sys(err, sys_errno, "verbs: cannot register %s on %s: %m "
                        "(is there so much free memory? the kernel log may "
                        "say more)", bytes, device->name);
}

int dtn_verbs_fail_queue(const struct dtn_verbs *verbs,
                         const struct dtn_verbs_rail *rail, int rank,
                         int sys_errno, struct dtensor_error *err)
{
    const struct dtn_verbs_device *device = &rail->device;
    char limit[32];
    int made = 0;

    for (int i = 0; i < verbs->nmet; i++)
        for (int q = 0; q < verbs->met[i]->nqueues; q++)
            made += verbs->met[i]->queue[q].rail == rail;
    return dtn_fail_sys(err, sys_errno, "verbs: no queue pair for rank %d on "
                        "%s: %m; this rank has %d, the device %d for all its "
                        "users, and %s may be locked (fewer ranks a host, ring "
                        "or tree in [tuning], or a higher ulimit -l)", rank,
                        device->name, made, device->max_qp,
                        dtn_memlock_text(dtn_memlock_bytes(), limit,
                                         sizeof limit));
}
