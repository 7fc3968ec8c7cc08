/* status.h - the status of another rank; private to this room
 *
 * The caller holds the lock of the tree.
 */
#ifndef DTN_BOOT_STATUS_H
#define DTN_BOOT_STATUS_H

#include <stdbool.h>

struct dtn_boot;
struct dtn_boot_link;
struct dtn_frame;

/* A query or an answer has come from a neighbour. */
void dtn_status_queried(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame);
void dtn_status_heard(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame);

/* Answer a query for this rank, if there is one.  `waits`: the program's thread
 * is in a wait, and calls; else the beating thread calls, which leaves the
 * answer to the program's thread if that has just waited.
 */
void dtn_status_answer(struct dtn_boot *boot, bool waits);

#endif
