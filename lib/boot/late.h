/* late.h - where other hosts connect after the first exchange; private to this
 * room
 *
 * The caller holds the lock of the tree.
 */
#ifndef DTN_BOOT_LATE_H
#define DTN_BOOT_LATE_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_boot;
struct dtn_boot_link;

enum { DTN_LATE_MAX = 3 };        /* the first ranks of a host that have one  */

void dtn_late_close(struct dtn_boot *boot);

/* The i-th rank of the host of that leader; -1: it has none. */
int dtn_late_rank(const struct dtn_boot *boot, int leader, int i);

/* The port of a rank's late listener; 0: it has none. */
uint16_t dtn_late_port(const struct dtn_boot *boot, int rank);

/* This connection belongs to the tree from now on: it gets what the others have
 * heard.
 */
void dtn_late_adopt(struct dtn_boot *boot, struct dtn_boot_link *link,
                    int rank);

/* Is the leader or rank of another host connected here? */
bool dtn_late_linked(const struct dtn_boot *boot, int rank);

/* Accept.  busy: somebody has connected and has not yet proved who he is. */
void dtn_late_progress(struct dtn_boot *boot, int64_t now);
bool dtn_late_busy(const struct dtn_boot *boot);

#endif
