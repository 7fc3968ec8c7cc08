/* grid.c - sizes and strides: the algebra of meshes
 *
 * Every slice of a mesh, every flattened dimension and every group of ranks is
 * a pattern of positions in the root mesh: a few (size, stride) pairs.  In a
 * mesh of 2 x 2 x 2, (dp:4)(cp:2)(tp:1), the positions with the same cp are
 * (2:4)(2:1), that is 0 1 4 5.  The complement of this in 8 positions is (2:2):
 * the offsets 0 and 2 of the two copies of the pattern.  So slicing selects
 * pairs and flattening joins them; no list of ranks is searched.
 *
 * This is the algebra of CuTe layouts, read row-major.
 */
#include "mesh/grid.h"

#include <stdbool.h>
#include <stdint.h>

void dtn_grid_add(struct dtn_grid *grid, int size, int stride)
{
    int last = grid->n - 1;

    if (size == 1)
        return;
    if (grid->n > 0 && grid->stride[last] == (int64_t)size * stride) {
        grid->size[last] *= size;
        grid->stride[last] = stride;
        return;
    }
    grid->size[grid->n] = size;
    grid->stride[grid->n++] = stride;
}

void dtn_grid_join(struct dtn_grid *grid, const struct dtn_grid *more)
{
    for (int k = 0; k < more->n; k++)
        dtn_grid_add(grid, more->size[k], more->stride[k]);
}

int dtn_grid_size(const struct dtn_grid *grid)
{
    int size = 1;

    for (int k = 0; k < grid->n; k++)
        size *= grid->size[k];
    return size;
}

int dtn_grid_at(const struct dtn_grid *grid, int i)
{
    int at = 0;

    for (int k = grid->n - 1; k >= 0; k--) {
        at += i % grid->size[k] * grid->stride[k];
        i /= grid->size[k];
    }
    return at;
}

int dtn_grid_take(const struct dtn_grid *grid, int *at)
{
    int i = 0, taken = 0;

    for (int k = 0; k < grid->n; k++) {
        int digit = *at / grid->stride[k] % grid->size[k];

        i = i * grid->size[k] + digit;
        taken += digit * grid->stride[k];
    }
    *at -= taken;
    return i;
}

bool dtn_grid_equal(const struct dtn_grid *a, const struct dtn_grid *b)
{
    bool same = a->n == b->n;

    for (int k = 0; same && k < a->n; k++)
        same = a->size[k] == b->size[k] && a->stride[k] == b->stride[k];
    return same;
}

bool dtn_grid_sorted(const struct dtn_grid *grid)
{
    for (int k = 0; k + 1 < grid->n; k++)
        if (grid->stride[k] < grid->stride[k + 1])
            return false;
    return true;
}

/* The indices of the pairs, largest stride first. */
static void grid_order(const struct dtn_grid *grid, int order[])
{
    for (int k = 0; k < grid->n; k++) {
        int at = k;

        for (; at > 0 && grid->stride[order[at - 1]] < grid->stride[k]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
}

bool dtn_grid_orthogonal(const struct dtn_grid *grid)
{
    int order[DTN_GRID_MAX];

    grid_order(grid, order);
    for (int k = 0; k + 1 < grid->n; k++) {
        int slower = order[k], faster = order[k + 1];

        if (grid->stride[slower] % ((int64_t)grid->stride[faster] *
                                    grid->size[faster]) != 0)
            return false;
    }
    return true;
}

/* Between two consecutive strides there is room for a pair: its stride is the
 * extent (size x stride) of the faster pair, and its size is the stride of the
 * slower pair divided by this extent.
 */
bool dtn_grid_complement(const struct dtn_grid *grid, int n,
                         struct dtn_grid *rest)
{
    struct dtn_grid made = { 0 };
    int order[DTN_GRID_MAX];
    int64_t above = n;

    if (!dtn_grid_orthogonal(grid))
        return false;
    grid_order(grid, order);
    for (int k = 0; k < grid->n; k++) {
        int64_t stride = grid->stride[order[k]];
        int64_t reach = stride * grid->size[order[k]];

        if (above % reach != 0)
            return false;
        dtn_grid_add(&made, (int)(above / reach), (int)reach);
        above = stride;
    }
    dtn_grid_add(&made, (int)above, 1);
    *rest = made;
    return true;
}

bool dtn_grid_extend(struct dtn_grid *grid, const struct dtn_grid *more, int n)
{
    struct dtn_grid both = *grid, rest;

    if ((int64_t)dtn_grid_size(grid) * dtn_grid_size(more) > n)
        return false;
    dtn_grid_join(&both, more);
    if (!dtn_grid_complement(&both, n, &rest))
        return false;
    *grid = both;
    return true;
}

/* From the fastest pair on: skip as many positions as the stride says, then
 * take as many as the size says.
 */
bool dtn_grid_pick(const struct dtn_grid *grid, int size, int stride,
                   struct dtn_grid *picked)
{
    struct dtn_grid made = { 0 }, taken = { 0 };

    for (int k = grid->n - 1; k >= 0 && size > 1; k--) {
        int room = grid->size[k];

        if (stride >= room) {
            if (stride % room != 0)
                return false;
            stride /= room;
            continue;
        }
        if (room % stride != 0)
            return false;
        room /= stride;
        if (size > room && size % room != 0)
            return false;
        taken.stride[taken.n] = grid->stride[k] * stride;
        taken.size[taken.n++] = size < room ? size : room;
        size = size > room ? size / room : 1;
        stride = 1;
    }
    if (size > 1)
        return false;
    while (taken.n-- > 0)
        dtn_grid_add(&made, taken.size[taken.n], taken.stride[taken.n]);
    *picked = made;
    return true;
}
