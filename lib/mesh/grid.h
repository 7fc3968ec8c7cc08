/* grid.h - sizes and strides: the algebra of meshes; private to this room */
#ifndef DTN_MESH_GRID_H
#define DTN_MESH_GRID_H

#include <stdbool.h>

/* A list of (size, stride) pairs, the last fastest: (2:4)(3:1) are the places
 * 0 1 2 4 5 6.  Always in canonical form, as dtn_grid_add() makes it: no size
 * of 1, and no two neighbours that one pair could replace.  So every size is at
 * least 2, and places that fit an int need fewer than 32 pairs.
 */
#define DTN_GRID_MAX 32
struct dtn_grid {
    int n;                        /* pairs                                    */
    int size[DTN_GRID_MAX];       /* of each pair, 2 or more                  */
    int stride[DTN_GRID_MAX];     /* places from one index to the next        */
};

/* Append one pair, faster than all there are. */
void dtn_grid_add(struct dtn_grid *grid, int size, int stride);

/* Append all pairs of another. */
void dtn_grid_join(struct dtn_grid *grid, const struct dtn_grid *more);

/* How many places, and the i-th of them. */
int dtn_grid_size(const struct dtn_grid *grid);
int dtn_grid_at(const struct dtn_grid *grid, int i);

/* Which place of the grid `at` is, looking only at the digits that the grid
 * is made of; `*at` loses them.  For an orthogonal grid.
 */
int dtn_grid_take(const struct dtn_grid *grid, int *at);

bool dtn_grid_equal(const struct dtn_grid *a, const struct dtn_grid *b);

/* Do strides never grow from a pair to the next? */
bool dtn_grid_sorted(const struct dtn_grid *grid);

/* Can each pair be a digit of its own?  Then no two places are the same. */
bool dtn_grid_orthogonal(const struct dtn_grid *grid);

/* What is missing for grid x rest to be 0..n-1.  False when nothing fits. */
bool dtn_grid_complement(const struct dtn_grid *grid, int n,
                         struct dtn_grid *rest);

/* Append all pairs of another, unless a place in 0..n-1 would then be named
 * twice, or the result fits no mesh of n: then false, and nothing is changed.
 */
bool dtn_grid_extend(struct dtn_grid *grid, const struct dtn_grid *more, int n);

/* The places of `grid` whose numbers are the places of (size:stride).  False
 * when these are no grid, or there are not as many.
 */
bool dtn_grid_pick(const struct dtn_grid *grid, int size, int stride,
                   struct dtn_grid *picked);

#endif
