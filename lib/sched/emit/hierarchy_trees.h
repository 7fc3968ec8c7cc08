/* hierarchy_trees.h - private to the emitters: trees of hosts, in chunks */
#ifndef DTN_HIERARCHY_TREES_H
#define DTN_HIERARCHY_TREES_H

#include "sched/emit/hierarchy.h"
#include "sched/emit/trees.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_call;

/* The hosts of a group, and the place of this one in both trees. */
struct dtn_trees {
    struct dtn_hierarchy h;       /* the hosts, and this rank                 */
    struct dtn_sched *sched;      /* the schedule being written               */
    struct dtn_tree tree[2];      /* its members are hosts                    */
    int root_host;                /* host of the root                         */
    int height;                   /* levels of the trees                      */
    int chunks;                   /* chunks of each half                      */
    size_t chunk_bytes;           /* the longest                              */
};

/* Begin the schedule; dtn_hierarchy_end() finishes it.   Errors: ENOMEM */
int dtn_trees_begin(struct dtn_trees *tr, const char *name,
                    const struct dtn_call *call, struct dtn_sched *sched,
                    struct dtensor_error *err);

/* Chunk c of half t of the block of a rail.  Two hosts have one tree.  There is
 * no chunk below 0, and none of 0 bytes is sent.
 */
struct dtn_range dtn_trees_chunk(const struct dtn_trees *tr, int rail, int t,
                                 int c);

/* The rank of this rail on a host. */
int dtn_trees_peer(const struct dtn_trees *tr, int host);

/* This owner's part in tree t: none without bytes.  Its children and its parent
 * there; -1: there is none.
 */
bool dtn_trees_active(const struct dtn_trees *tr, int t);
int dtn_trees_children(const struct dtn_trees *tr, int t);
int dtn_trees_child(const struct dtn_trees *tr, int t, int i);
int dtn_trees_parent(const struct dtn_trees *tr, int t);

/* Is the root on this host? */
bool dtn_trees_near(const struct dtn_trees *tr);

#endif
