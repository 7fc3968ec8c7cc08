/* agree.h - one name for a loss; private to this room
 *
 * The rest of it is in boot.h.
 */
#ifndef DTN_BOOT_AGREE_H
#define DTN_BOOT_AGREE_H

#include <stdbool.h>

struct dtn_boot;

/* This rank still joins.  If a rank is lost, or has given up for one that is,
 * or the neighbour `silent` is silent (-1: none is), agree with all others,
 * which may have joined, whom to name, and fail for it.  False: no loss is
 * known.
 * Blocks: as dtn_boot_agree(); of a silence, until it is known who is lost
 */
bool dtn_agree_joining(struct dtn_boot *boot, int silent);

#endif
