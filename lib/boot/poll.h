/* poll.h - waiting for the sockets of the tree; private to this room */
#ifndef DTN_BOOT_POLL_H
#define DTN_BOOT_POLL_H

#include <stdbool.h>

struct dtn_boot;

/* Wait until a socket is ready or an action is due. */
void dtn_boot_poll(struct dtn_boot *boot);

/* Does it read now?  After a successful round nothing is read: new data is for
 * the next round.
 */
bool dtn_boot_poll_reads(const struct dtn_boot *boot);

#endif
