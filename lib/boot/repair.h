/* repair.h - new connections for a lost rank's; private to this room */
#ifndef DTN_BOOT_REPAIR_H
#define DTN_BOOT_REPAIR_H

struct dtn_boot;

/* Connect to other hosts if a rank is lost over which news came.  The caller
 * holds the lock of the tree.
 */
void dtn_repair_progress(struct dtn_boot *boot);

#endif
