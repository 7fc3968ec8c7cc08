/* owner.h - the process that has our port; private to this room */
#ifndef DTN_BOOT_OWNER_H
#define DTN_BOOT_OWNER_H

#include "boot/state.h"

#include <stddef.h>

/* Find the process that listens on our port at this address.  `buf` gets its
 * name, "" if it is unknown.  Blocks: DTN_BOOT_OWNER_NS
 */
enum dtn_boot_owner {
    DTN_OWNER_STRANGER, DTN_OWNER_OTHER_JOB, DTN_OWNER_THIS_JOB
};
enum dtn_boot_owner dtn_boot_owner_find(struct dtn_boot *boot,
                                        const struct dtn_boot_addr *at,
                                        char *buf, size_t size);

#endif
