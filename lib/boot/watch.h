/* watch.h - watching the other ranks; private to this room */
#ifndef DTN_BOOT_WATCH_H
#define DTN_BOOT_WATCH_H

#include <stdint.h>

struct dtn_boot;
struct dtn_boot_link;
struct dtn_frame;

/* From now on neighbours that have joined, or name a lost rank, may send news.
 */
void dtn_watch_accept(struct dtn_boot *boot);

/* Such a frame has come. */
void dtn_watch_frame(struct dtn_boot *boot, struct dtn_boot_link *link,
                     const struct dtn_frame *frame);

/* In an exchange after the first: beat for the neighbours on other hosts; look
 * for ranks that are lost, and take connections of ranks that have lost their
 * way to the others.  joining: a neighbour that is silent for dead_after; -1:
 * none.
 */
void dtn_watch_beat(struct dtn_boot *boot, int64_t now);
int dtn_watch_joining(struct dtn_boot *boot, int64_t now);

/* What the beating thread does for the tree after each beat, unless the
 * program's thread is doing it.
 */
void dtn_boot_tend(struct dtn_boot *boot);

#endif
