/* doubt.h - ranks that may soon be found silent; private to this room
 *
 * The caller holds the lock of the tree, or is the thread that joins.
 */
#ifndef DTN_BOOT_DOUBT_H
#define DTN_BOOT_DOUBT_H

#include <stdbool.h>

struct dtn_boot;
struct dtn_boot_link;
struct dtn_frame;

/* Look for ranks of this host and leaders next to it that make no beats, and
 * tell all others.
 */
void dtn_doubt_look(struct dtn_boot *boot);
void dtn_doubt_heard(struct dtn_boot *boot, const struct dtn_boot_link *link,
                     const struct dtn_frame *frame);

/* May this rank be found silent, or has it been, and all know since before? */
bool dtn_doubted(const struct dtn_boot *boot, int rank);

#endif
