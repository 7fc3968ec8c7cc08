/* delivery.h - whether packets pass between two hosts; private to this room */
#ifndef DTN_BOOT_DELIVERY_H
#define DTN_BOOT_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_boot_link;

/* Does the kernel of the other host acknowledge what is sent?  The last
 * acknowledgement is younger than `within_ns`, and no packet was sent again.
 */
bool dtn_delivery_answered(const struct dtn_boot_link *link, int64_t within_ns);

/* Note how many segments arrive while ours are not acknowledged.  To be called
 * once a heartbeat.
 */
void dtn_delivery_count(struct dtn_boot_link *link);

/* Do packets of the other host arrive here, while ours do not arrive there? */
bool dtn_delivery_one_way(const struct dtn_boot_link *link);

#endif
