/* doing.h - asking a rank what it does; private to this room
 *
 * The caller holds the lock of the tree.
 */
#ifndef DTN_BOOT_DOING_H
#define DTN_BOOT_DOING_H

#include <stdbool.h>

struct dtn_boot;
struct dtn_boot_link;
struct dtn_frame;

/* A question or an answer has come from a neighbour. */
void dtn_doing_asked(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame);
void dtn_doing_heard(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     const struct dtn_frame *frame);

/* Answer if this rank was asked.  `waits`: the program's thread is in a wait,
 * and calls; else the beating thread calls, which leaves the answer to the
 * program's thread if that has just waited.
 */
void dtn_doing_answer(struct dtn_boot *boot, bool waits);

#endif
