/* leave.h - leaving a job; private to this room */
#ifndef DTN_BOOT_LEAVE_H
#define DTN_BOOT_LEAVE_H

struct dtn_boot;

/* Say that this rank leaves, and stay for the ranks that hear through it.
 * Blocks: until they have left or are lost, at most op_timeout
 */
void dtn_boot_leave(struct dtn_boot *boot);

#endif
