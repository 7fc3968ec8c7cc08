/* verdict.h - the one lost rank that all name; private to this room
 *
 * The caller holds the lock of the tree.
 */
#ifndef DTN_BOOT_VERDICT_H
#define DTN_BOOT_VERDICT_H

#include "boot/boot.h"

#include <stdbool.h>

struct dtn_boot_link;
struct dtn_frame;

/* This rank gives up because `rank` is lost: ask whom all name, unless somebody
 * has asked.
 */
void dtn_verdict_ask(struct dtn_boot *boot, int rank);

/* A neighbour asks, or tells the verdict. */
void dtn_verdict_heard(struct dtn_boot *boot, const struct dtn_boot_link *link,
                       const struct dtn_frame *frame);

/* Tell a new neighbour. */
void dtn_verdict_repeat(const struct dtn_boot *boot,
                        struct dtn_boot_link *link);

/* Read what ranks of the host have asked and heard; decide, if this rank has
 * to.
 */
void dtn_verdict_progress(struct dtn_boot *boot);

/* Has a rank asked, and is no verdict known?  Needs no lock. */
bool dtn_verdict_awaited(const struct dtn_boot *boot);

/* The rank that all name, and how it was lost; -1: it is not known yet. */
int dtn_verdict(const struct dtn_boot *boot, enum dtn_loss *loss);

/* The same by what this rank knows: it waits for `rank`, and no verdict comes.
 */
int dtn_verdict_alone(const struct dtn_boot *boot, int rank,
                      enum dtn_loss *loss);

/* Is this rank cut off from the one that decides? */
bool dtn_verdict_apart(const struct dtn_boot *boot);

#endif
