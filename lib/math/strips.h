/* strips.h - several arrays at once, row by row, in blocks to compute with */
#ifndef DTN_MATH_STRIPS_H
#define DTN_MATH_STRIPS_H

#include "math/array.h"
#include "math/block.h"
#include "math/loop.h"

#include <stdbool.h>
#include <stdint.h>

/* Arrays of one shape.  Some of their dimensions make a row, which is walked
 * over in blocks; the others say how many rows there are.
 *
 *     dtn_strips_begin(&rows, arrays, n, dims);
 *     for (bool more = dtn_strips_first(&rows); more;
 *          more = dtn_strips_next(&rows))
 *         for (bool on = dtn_strips_block(&rows); on;
 *              on = dtn_strips_next_block(&rows))
 *             ... rows.n elements of array i: dtn_strips_load(&rows, i, buffer)
 */
struct dtn_strips {
    struct dtn_loop outer;        /* over the rows                            */
    struct dtn_loop row;          /* within one                               */
    int64_t at;                   /* the row, within the run of `outer`       */
    int64_t first, n;             /* the block, within the run of `row`       */
    struct dtn_storage how[DTN_LOOP_ARRAYS]; /* elements along that run       */
};

/* `dims` is a bit set of the dimensions of a row. */
void dtn_strips_begin(struct dtn_strips *rows, const struct dtn_array arrays[],
                    int n, unsigned dims);

/* The first row, the next one; false: there is none. */
bool dtn_strips_first(struct dtn_strips *rows);
bool dtn_strips_next(struct dtn_strips *rows);

/* How many adjacent rows begin here, outer.step[i] elements apart; and go to
 * the row after `n` of them.
 */
int64_t dtn_strips_beside(const struct dtn_strips *rows);
bool dtn_strips_skip(struct dtn_strips *rows, int64_t n);

/* The first block of the row, the next one; false: there is none. */
bool dtn_strips_block(struct dtn_strips *rows);
bool dtn_strips_next_block(struct dtn_strips *rows);

/* Where the block begins; dtn_block_load(), dtn_block_place() and
 * dtn_block_store() of it.
 */
char *dtn_strips_at(const struct dtn_strips *rows, int i);
const void *dtn_strips_load(const struct dtn_strips *rows, int i, void *buffer);
void *dtn_strips_place(const struct dtn_strips *rows, int i, void *buffer);
void dtn_strips_store(const struct dtn_strips *rows, int i, void *made,
                    void *buffer);

/* Is a row of array i one run of at most DTN_STRIPS_KEPT elements that are
 * computed as f32?  Then it is put into `kept`, widened and gathered.
 */
enum { DTN_STRIPS_KEPT = 4096 };
bool dtn_strips_short(const struct dtn_strips *rows, int i);
void dtn_strips_keep(struct dtn_strips *rows, int i, float kept[]);

/* Are elements of array i where loops can use them? */
bool dtn_strips_direct(const struct dtn_strips *rows, int i);

/* Array i has one float for each row: that of this row; and set it. */
double dtn_strips_value(const struct dtn_strips *rows, int i);
void dtn_strips_set(const struct dtn_strips *rows, int i, double value);

/* The bit set of the dimensions where `less` has size 1. */
unsigned dtn_strips_reduced(const struct dtn_array *less);

#endif
