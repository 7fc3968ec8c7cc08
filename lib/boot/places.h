/* places.h - room for connections that are accepted; private to this room */
#ifndef DTN_BOOT_PLACES_H
#define DTN_BOOT_PLACES_H

#include "boot/state.h"

#include <stdbool.h>

/* Room for all that may come before they prove that they belong to the job:
 * this many more strangers are kept than there are expected children.
 */
#define DTN_BOOT_STRANGERS 64
#define DTN_BOOT_ACCEPTS 16       /* connections of other hosts at a time     */

/* Make that room, so that none is made for strangers.  False: no memory. */
bool dtn_boot_places_make(struct dtn_boot *boot);

/* The next place, with zeros; if none is left, more room is made.  NULL: no
 * memory.
 */
struct dtn_boot_link *dtn_boot_places_take(struct dtn_boot *boot);

#endif
