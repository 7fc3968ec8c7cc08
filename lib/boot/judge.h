/* judge.h - rank 0: have all joined, and do they agree?; private to this room
 */
#ifndef DTN_BOOT_JUDGE_H
#define DTN_BOOT_JUDGE_H

#include "boot/state.h"

#include <stdbool.h>
#include <stdint.h>

/* A rank has joined: through the tree, or on a detour. */
void dtn_boot_judge_member(struct dtn_boot *boot, int rank, bool detour,
                           uint32_t pid, uint64_t digest);

/* True: all ranks have joined and agree.  A failure is proposed. */
bool dtn_boot_judge_progress(struct dtn_boot *boot, int64_t now);

/* When its next call is due, in ns; INT64_MAX: not known. */
int64_t dtn_boot_judge_wake(const struct dtn_boot *boot);

#endif
