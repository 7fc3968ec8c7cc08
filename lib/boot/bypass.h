/* bypass.h - a way around a silent host or link; private to this room
 *
 * The caller holds the lock of the tree.
 */
#ifndef DTN_BOOT_BYPASS_H
#define DTN_BOOT_BYPASS_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_boot;
struct dtn_boot_link;

/* Look up the addresses that may be needed, while names can be looked up.  No
 * memory, or no such name: there will be no way around.
 */
void dtn_bypass_open(struct dtn_boot *boot);
void dtn_bypass_close(struct dtn_boot *boot);

/* Connect to the late listener of this rank, if this rank may need it: those of
 * the hosts above, the leaders around, for a rank that is no leader
 * those below.
 */
void dtn_bypass_call(struct dtn_boot *boot, int rank);

/* Is a connection being made? */
bool dtn_bypass_busy(const struct dtn_boot *boot);

/* Nothing has come from the leader of another host for dead_after. */
void dtn_bypass_silent(struct dtn_boot *boot, struct dtn_boot_link *link);

/* Is it still open who is lost, of those that are silent? */
bool dtn_bypass_undecided(const struct dtn_boot *boot);

/* Connect, accept, and decide. */
void dtn_bypass_progress(struct dtn_boot *boot, int64_t now);

#endif
