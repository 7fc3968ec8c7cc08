/* trees.h - private to the emitters: places in a double binary tree */
#ifndef DTN_TREES_H
#define DTN_TREES_H

/* The place of a member of a group in one of two binary trees. */
struct dtn_tree {
    int depth;                    /* 0: the root                              */
    int parent;                   /* a member; -1: this is the root           */
    int child_number;             /* number among the parent's children       */
    int nchildren;                /* 0, 1 or 2                                */
    int child[2];                 /* [nchildren] members                      */
};

/* Of `me` in tree t, 0 or 1, over n members with this root.  Two members have
 * one tree: nobody has a child in the second.
 */
struct dtn_tree dtn_tree_make(int n, int root, int me, int t);

/* Only its parent, which takes a third of the time. */
int dtn_tree_parent(int n, int root, int me, int t);

#endif
