/* child.h - connections that this rank accepts; private to this room */
#ifndef DTN_BOOT_CHILD_H
#define DTN_BOOT_CHILD_H

#include "boot/state.h"

#include <stdbool.h>
#include <stdint.h>

/* Take new connections; `reads`: and what they have said. */
void dtn_boot_child_accept(struct dtn_boot *boot, bool reads);
void dtn_boot_child_progress(struct dtn_boot *boot, struct dtn_boot_link *link);
void dtn_boot_child_sweep(struct dtn_boot *boot, int64_t now);

/* A child in the tree has connected, or knows that it need not connect. */
void dtn_boot_child_arrived(struct dtn_boot *boot, int rank);
void dtn_boot_child_keep_tree(struct dtn_boot *boot); /* drop all others    */

#endif
