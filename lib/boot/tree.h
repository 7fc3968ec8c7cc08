/* tree.h - the tree of ranks; private to this room */
#ifndef DTN_BOOT_TREE_H
#define DTN_BOOT_TREE_H

#include "boot/state.h"
#include "dtensor.h"

#include <stdbool.h>

int dtn_boot_tree_init(struct dtn_boot *boot, struct dtensor_error *err);
int dtn_boot_tree_host(const struct dtn_boot *boot, int rank);
int dtn_boot_tree_leader(const struct dtn_boot *boot, int rank);

/* -1: rank 0 has none. */
int dtn_boot_tree_parent(const struct dtn_boot *boot, int rank);
int dtn_boot_tree_grandparent(const struct dtn_boot *boot, int rank);
bool dtn_boot_tree_same_host(const struct dtn_boot *boot, int a, int b);
int dtn_boot_tree_child_hosts(const struct dtn_boot *boot); /* of this host */

/* The leader of its i-th child host. */
int dtn_boot_tree_child(const struct dtn_boot *boot, int i);

/* The leader of the i-th child host of that leader's; -1: there is none. */
int dtn_boot_tree_below(const struct dtn_boot *boot, int leader, int i);

/* The parent of this rank's host is silent or lost: the rank that connects to
 * the host; for the second child of the root, to which the host connects.  -1:
 * none.  witness: the i-th other leader that is not below this one; -1: none.
 */
int dtn_boot_tree_other(const struct dtn_boot *boot, int rank);
int dtn_boot_tree_witness(const struct dtn_boot *boot, int i);

#endif
