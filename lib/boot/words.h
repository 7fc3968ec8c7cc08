/* words.h - parts of messages; private to this room */
#ifndef DTN_BOOT_WORDS_H
#define DTN_BOOT_WORDS_H

#include "boot/state.h"
#include "dtensor.h"

#include <stddef.h>

/* "rank 3 on n1" */
char *dtn_boot_rank_name(const struct dtn_boot *boot, int rank, char *buf,
                              size_t size);

/* "ranks 2-3 on n1, 6 on n3 and 40 more"; `ranks` ascend. */
char *dtn_boot_ranks_text(const struct dtn_boot *boot, const int ranks[],
                               int n, char *buf, size_t size);

/* No file descriptor is left: an error that shows the limit.  The library does
 * not change the limits of its process.
 */
int dtn_boot_fd_limit(const struct dtn_boot *boot,
                           struct dtensor_error *err);

#endif
