/* delivery.h - whether packets pass, by the kernel's counters; private to this
 * room
 */
#ifndef DTN_BOOT_DELIVERY_H
#define DTN_BOOT_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_boot_link;

/* Does the kernel of the other host still acknowledge what is sent?  The last
 * acknowledgement is not older than this.
 */
bool dtn_delivery_answered(const struct dtn_boot_link *link, int64_t within_ns);

/* Count what comes while nothing is acknowledged; call it once a heartbeat. */
void dtn_delivery_count(struct dtn_boot_link *link);

/* Packets of the other host arrive here, and ours do not arrive there. */
bool dtn_delivery_one_way(const struct dtn_boot_link *link);

#endif
