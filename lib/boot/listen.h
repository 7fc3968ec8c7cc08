/* listen.h - the sockets at which a leader listens; private to this room */
#ifndef DTN_BOOT_LISTEN_H
#define DTN_BOOT_LISTEN_H

#include "boot/state.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* Open the listeners that this rank needs.  A leader without child hosts also
 * opens one, if it can: there it receives the failure of its parent.  *taken:
 * another process has the AF_UNIX name of this one.
 */
int dtn_boot_listen(struct dtn_boot *boot, bool *taken,
                    struct dtensor_error *err);
void dtn_boot_unlisten(struct dtn_boot *boot);

/* Try again to get a port that was in use, or a socket for which there was no
 * memory.  Then children that connect receive the failure of this rank.
 */
void dtn_boot_relisten(struct dtn_boot *boot);

/* Listen at a port that the system chooses; -1: it gives none. */
int dtn_boot_listen_free(const struct dtn_boot *boot, uint16_t *port);

#endif
