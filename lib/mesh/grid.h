/* grid.h - sizes and strides: the algebra of meshes; private to this room */
#ifndef DTN_MESH_GRID_H
#define DTN_MESH_GRID_H

#include <stdbool.h>

/* A list of (size, stride) pairs, the last one fastest: (2:4)(3:1) are the
 * positions 0 1 2 4 5 6.  It is always in the canonical form that
 * dtn_grid_add() makes: no size is 1, and no two consecutive pairs could be one
 * pair.  So every size is at least 2, and positions that fit into an int need
 * fewer than 32 pairs.
 */
#define DTN_GRID_MAX 32
struct dtn_grid {
    int n;                        /* pairs                                    */
    int size[DTN_GRID_MAX];       /* of each pair, 2 or more                  */
    int stride[DTN_GRID_MAX];     /* places from one index to the next        */
};

/* Append one pair, which is faster than all others. */
void dtn_grid_add(struct dtn_grid *grid, int size, int stride);

/* Append all pairs of another. */
void dtn_grid_join(struct dtn_grid *grid, const struct dtn_grid *more);

/* The number of positions; the i-th position. */
int dtn_grid_size(const struct dtn_grid *grid);
int dtn_grid_at(const struct dtn_grid *grid, int i);

/* The index in the grid of position `at`, computed from the digits of `at` that
 * belong to the grid; *at becomes the position without these digits.  The grid
 * must be orthogonal.
 */
int dtn_grid_take(const struct dtn_grid *grid, int *at);

bool dtn_grid_equal(const struct dtn_grid *a, const struct dtn_grid *b);

/* Is no stride larger than the one before it? */
bool dtn_grid_sorted(const struct dtn_grid *grid);

/* Is each pair a digit of its own?  Then no two positions are the same. */
bool dtn_grid_orthogonal(const struct dtn_grid *grid);

/* The grid `rest` so that grid x rest is 0..n-1.  False if there is none. */
bool dtn_grid_complement(const struct dtn_grid *grid, int n,
                         struct dtn_grid *rest);

/* Append all pairs of another grid.  False, with nothing changed, if a position
 * in 0..n-1 would then occur twice, or if the result does not fit into a mesh
 * of n positions.
 */
bool dtn_grid_extend(struct dtn_grid *grid, const struct dtn_grid *more, int n);

/* The positions of `grid` whose indices are the positions of (size:stride).
 * False if these are not a grid, or if there are not enough of them.
 */
bool dtn_grid_pick(const struct dtn_grid *grid, int size, int stride,
                   struct dtn_grid *picked);

#endif
