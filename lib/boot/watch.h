/* watch.h - watching the other ranks; private to this room */
#ifndef DTN_BOOT_WATCH_H
#define DTN_BOOT_WATCH_H

struct dtn_boot;

/* What the beating thread does for the tree after each beat, unless the
 * program's thread is doing it.
 */
void dtn_boot_tend(struct dtn_boot *boot);

#endif
