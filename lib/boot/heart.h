/* heart.h - the thread that makes a rank's heartbeats; private to this room
 *
 * It is started by dtn_boot_beat_start().
 */
#ifndef DTN_BOOT_HEART_H
#define DTN_BOOT_HEART_H

struct dtn_boot;

/* End it.  Does nothing if there is none, or after fork().
 * Blocks: until its current beat is made
 */
void dtn_heart_stop(struct dtn_boot *boot);

#endif
