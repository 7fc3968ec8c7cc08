/* judge.h - rank 0: is everyone there, and alike?; private to this room */
#ifndef DTN_BOOT_JUDGE_H
#define DTN_BOOT_JUDGE_H

#include "boot/state.h"

#include <stdbool.h>
#include <stdint.h>

/* The member of that rank is here: from the ranks' own tree, or a detour. */
void dtn_boot_judge_member(struct dtn_boot *boot, int rank, bool detour,
                           uint32_t pid, uint64_t digest);

/* Judge what is known: true when all ranks are there and alike; a failure is
 * proposed.
 */
bool dtn_boot_judge_turn(struct dtn_boot *boot, int64_t now);

/* When the next turn is due, in ns; INT64_MAX: not known. */
int64_t dtn_boot_judge_wake(const struct dtn_boot *boot);

#endif
