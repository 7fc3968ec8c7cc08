/* gather.h - entries of ranks, sent up and down; private to this room */
#ifndef DTN_BOOT_GATHER_H
#define DTN_BOOT_GATHER_H

#include "boot/frame.h"
#include "boot/state.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_table;

/* Begin a round with this rank's entry; `mine` NULL: round 0. */
int dtn_boot_gather_start(struct dtn_boot *boot, const struct dtn_blob *mine,
                          struct dtensor_error *err);

/* Set which frames this link may receive in this round. */
void dtn_boot_gather_limits(const struct dtn_boot *boot,
                            struct dtn_boot_link *link);
void dtn_boot_gather_forward(struct dtn_boot *boot);

/* Add the entry of a HELLO; `link` NULL: this rank's own. */
bool dtn_boot_gather_who(struct dtn_boot *boot,
                         const struct dtn_boot_link *link, uint32_t pid,
                         uint64_t digest);
void dtn_boot_gather_entries(struct dtn_boot *boot, struct dtn_boot_link *link,
                             const struct dtn_frame *frame);
void dtn_boot_gather_all(struct dtn_boot *boot, struct dtn_boot_link *link,
                         const struct dtn_frame *frame);
void dtn_boot_gather_done(struct dtn_boot *boot);
struct dtn_table *dtn_boot_gather_take(struct dtn_boot *boot);
void dtn_boot_gather_close_fds(struct dtn_boot *boot);

#endif
