/* select.h - elements that are found by index
 *
 * An index is i64 or i32.  Where a rank has rows `first` and up of a table that
 * is cut, an index outside of them finds a 0 there: the sum over the ranks is
 * then the element.
 */
#ifndef DTN_MATH_SELECT_H
#define DTN_MATH_SELECT_H

#include "math/array.h"

#include <stdbool.h>
#include <stdint.h>

/* The first index, in row-major order, that is not in [0, size), and its value
 * in *value; -1: all are.
 */
int64_t dtn_index_wrong(const struct dtn_array *index, int64_t size,
                        int64_t *value);

/* out[..., :] = table[index[...] - first, :].  `out` has the dimensions of
 * `index` and one more, `table` two.
 */
void dtn_embedding(const struct dtn_array *out, const struct dtn_array *table,
                   const struct dtn_array *index, int64_t first);

/* table[index[...] - first, :] += grad[..., :], in the order of the index;
 * others are left out.  `table` is 0 at first.
 */
void dtn_embedding_backward(const struct dtn_array *table,
                            const struct dtn_array *grad,
                            const struct dtn_array *index, int64_t first);

/* out = in with index[i] - first in place of i along dimension `dim`; `index`
 * has one dimension.
 */
void dtn_index_select(const struct dtn_array *out, const struct dtn_array *in,
                      int dim, const struct dtn_array *index, int64_t first);

/* out[..., i, ...] = in[..., index[..., i, ...] - first, ...] along dimension
 * `dim`.  `index` has the shape of `out`; along the other dimensions `in` has
 * at least as many elements.
 */
void dtn_array_gather(const struct dtn_array *out, const struct dtn_array *in,
                      int dim, const struct dtn_array *index, int64_t first);

/* The reverse: out[..., index[..., i, ...], ...] = from[..., i, ...], or
 * += it, in row-major order.  `from` may be larger than `index`.
 */
void dtn_array_scatter(const struct dtn_array *out, int dim,
                       const struct dtn_array *index,
                       const struct dtn_array *from, bool adds);

/* Add to each place, in elements of a table, that of an index along one of its
 * dimensions, of `size` elements from `first` on: (index[i] - first) * stride.
 * It is -1 from then on if the index is outside of them.  `index` is packed.
 */
void dtn_places_add(int64_t place[], const struct dtn_array *index,
                    int64_t first, int64_t size, int64_t stride);

/* The element of `table` that is `place` elements after the one of the walk:
 * out = it, or 0 where place is -1.  All have the shape of `out`; along
 * dimensions that were looked up the stride of `table` is 0.
 */
void dtn_array_pick(const struct dtn_array *out, const struct dtn_array *table,
                    const struct dtn_array *place);

/* The reverse: it = from, or += it, in row-major order; none where place is -1.
 */
void dtn_array_put(const struct dtn_array *table, const struct dtn_array *place,
                   const struct dtn_array *from, bool adds);

/* out = in where column - row <= diagonal (`lower`) or >= diagonal, else 0, of
 * the last two dimensions.
 */
void dtn_triangle(bool lower, int64_t diagonal, const struct dtn_array *out,
                  const struct dtn_array *in);

/* out[i] = the sum, or the product, of in[0] .. in[i] along dimension `dim`.
 * Floats are computed as f64, integers wrap around.  `out` may be `in`.
 * `room`: see room.h.
 */
void dtn_cumulate(bool product, const struct dtn_array *out,
                  const struct dtn_array *in, int dim, void *room);

#endif
