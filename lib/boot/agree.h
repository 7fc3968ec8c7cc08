/* agree.h - one name for a loss; private to this room
 *
 * The rest of it is in boot.h.
 */
#ifndef DTN_BOOT_AGREE_H
#define DTN_BOOT_AGREE_H

#include <stdbool.h>

struct dtn_boot;

/* A round has failed.  If it did because the leader of this host died, ask the
 * other hosts, which may have completed it, whom they name, and fail for that
 * one.  False: it failed for another reason.
 * Blocks: as dtn_boot_agree()
 */
bool dtn_agree_behind(struct dtn_boot *boot);

#endif
