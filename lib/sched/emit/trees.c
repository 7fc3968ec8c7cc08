/* trees.c - where a member of a group stands in two binary trees
 *
 * The members are numbered v = 0, 1, .. from the root, which feeds both trees.
 * In the first tree the level of v is the number of zero bits at its end.  The
 * second tree is the mirror of the first, or for an odd number of members below
 * the root the first one shifted by one.  Over 8 members, v is 1..7, and 7 is
 * odd:
 *
 *           4                    3
 *        2     6              1     5
 *       1 3   5 7            7 2   4 6
 *
 * A member that has children in one tree mostly has none in the other, so each
 * of two halves of a message loads every member once.
 */
#include "sched/emit/trees.h"

/* The parent of v in the tree over 1..m; 0 for the top. */
static int shape_parent(int v, int m)
{
    int low = v & -v, up = (v ^ low) | low << 1;

    return up <= m ? up : v ^ low;
}

static int shape_depth(int v, int m)
{
    int depth = 0;

    for (; v > 0; v = shape_parent(v, m))
        depth++;
    return depth;
}

/* The left child is half a step to the left, the right child half a step to the
 * right.  If that is beyond the end, the right child is the top of what is
 * left.
 */
static int shape_children(int v, int m, int child[2])
{
    int n = 0, low = v & -v, step = low / 2;

    if (v == 0) {
        while (2 << n <= m)
            n++;
        child[0] = 1 << n;
        return m > 0;
    }
    if (step > 0)
        child[n++] = v - step;
    while (step > 0 && v + step > m)
        step /= 2;
    if (step > 0)
        child[n++] = v + step;
    return n;
}

/* Convert between members v and nodes of tree t.  A mirror is its own inverse;
 * the shift has two directions.
 */
static int shape_of(int v, int m, int t)
{
    return v == 0 || t == 0 ? v : m % 2 == 0 ? m + 1 - v : v % m + 1;
}

static int shape_from(int v, int m, int t)
{
    return v == 0 || t == 0 ? v : m % 2 == 0 ? m + 1 - v : (v + m - 2) % m + 1;
}

/* The member at node v of tree t. */
static int shape_member(int n, int root, int v, int t)
{
    return (shape_from(v, n - 1, t) + root) % n;
}

int dtn_tree_parent(int n, int root, int me, int t)
{
    const int m = n - 1, v = shape_of((me - root + n) % n, m, t);

    return v == 0 || (t > 0 && m < 2) ? -1
         : shape_member(n, root, shape_parent(v, m), t);
}

struct dtn_tree dtn_tree_make(int n, int root, int me, int t)
{
    const int m = n - 1, v = shape_of((me - root + n) % n, m, t);
    struct dtn_tree tree = { .parent = -1, .depth = shape_depth(v, m) };
    int siblings[2];

    if (t > 0 && m < 2)
        return (struct dtn_tree){ .parent = -1 };
    tree.nchildren = shape_children(v, m, tree.child);
    for (int i = 0; i < tree.nchildren; i++)
        tree.child[i] = shape_member(n, root, tree.child[i], t);
    tree.parent = dtn_tree_parent(n, root, me, t);
    if (v > 0) {
        shape_children(shape_parent(v, m), m, siblings);
        tree.child_number = siblings[0] != v;
    }
    return tree;
}
