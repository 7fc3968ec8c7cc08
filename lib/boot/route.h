/* route.h - connections up, and down for a failure; private to this room */
#ifndef DTN_BOOT_ROUTE_H
#define DTN_BOOT_ROUTE_H

#include "boot/state.h"

#include <stdint.h>

void dtn_boot_route_progress(struct dtn_boot *boot,
                             struct dtn_boot_route *route);

/* The same for a route down, which ends when the leader there has the failure.
 */
void dtn_boot_route_down(struct dtn_boot *boot, struct dtn_boot_route *route);

int64_t dtn_boot_route_wake(const struct dtn_boot *boot,
                            const struct dtn_boot_route *route);

#endif
