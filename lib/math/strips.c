/* strips.c - several arrays at once, row by row, in blocks to compute with
 *
 * softmax along dimension 1 of 4 x 1000 x 8 has 32 rows of 1,000, which are
 * two blocks each.  A layer norm of the last two dimensions has 4 rows, and if
 * there are no gaps a row is one run of 8,000.
 */
#include "math/strips.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <string.h>

void dtn_strips_begin(struct dtn_strips *rows, const struct dtn_array arrays[],
                    int n, unsigned dims)
{
    struct dtn_array outer[DTN_LOOP_ARRAYS] = { { 0 } };
    struct dtn_array row[DTN_LOOP_ARRAYS] = { { 0 } };

    for (int i = 0; i < n; i++) {
        outer[i] = row[i] = arrays[i];
        for (int d = 0; d < arrays[i].ndim; d++)
            *(dims >> d & 1 ? &outer[i].shape[d] : &row[i].shape[d]) = 1;
    }
    dtn_loop_begin(&rows->outer, outer, n);
    dtn_loop_begin(&rows->row, row, n);
    for (int i = 0; i < n; i++)
        rows->how[i] = (struct dtn_storage){
            arrays[i].dtype, dtn_block_type(arrays[i].dtype),
            rows->row.step[i] };
}

/* From the first block on, wherever the walk over the last row ended. */
static void rows_go(struct dtn_strips *rows, int64_t at)
{
    const struct dtn_loop *outer = &rows->outer;

    rows->at = at;
    for (int d = 0; d < rows->row.ndim; d++)
        rows->row.index[d] = 0;
    for (int i = 0; i < outer->narrays; i++)
        rows->row.at[i] = outer->at[i] +
                          at * outer->step[i] * (int64_t)outer->size[i];
}

bool dtn_strips_first(struct dtn_strips *rows)
{
    rows_go(rows, 0);
    return !rows->outer.empty;
}

int64_t dtn_strips_beside(const struct dtn_strips *rows)
{
    return rows->outer.run - rows->at;
}

bool dtn_strips_next(struct dtn_strips *rows)
{
    return dtn_strips_skip(rows, 1);
}

bool dtn_strips_skip(struct dtn_strips *rows, int64_t n)
{
    if (n < dtn_strips_beside(rows)) {
        rows_go(rows, rows->at + n);
        return true;
    }
    if (!dtn_loop_next(&rows->outer))
        return false;
    rows_go(rows, 0);
    return true;
}

static bool rows_cut(struct dtn_strips *rows, int64_t first)
{
    const int64_t left = rows->row.run - first;

    rows->first = first;
    rows->n = left < DTN_BLOCK ? left : DTN_BLOCK;
    return left > 0;
}

bool dtn_strips_block(struct dtn_strips *rows)
{
    return rows_cut(rows, 0) && !rows->row.empty;
}

bool dtn_strips_next_block(struct dtn_strips *rows)
{
    if (rows_cut(rows, rows->first + rows->n))
        return true;
    return dtn_loop_next(&rows->row) && rows_cut(rows, 0);
}

char *dtn_strips_at(const struct dtn_strips *rows, int i)
{
    return rows->row.at[i] + rows->first * rows->row.step[i] *
                             (int64_t)rows->row.size[i];
}

const void *dtn_strips_load(const struct dtn_strips *rows, int i, void *buffer)
{
    return dtn_block_load(&rows->how[i], dtn_strips_at(rows, i), rows->n,
                          buffer);
}

void *dtn_strips_place(const struct dtn_strips *rows, int i, void *buffer)
{
    return dtn_block_place(&rows->how[i], dtn_strips_at(rows, i), buffer);
}

void dtn_strips_store(const struct dtn_strips *rows, int i, void *made,
                    void *buffer)
{
    if (made == buffer)
        dtn_block_store(&rows->how[i], dtn_strips_at(rows, i), rows->n, buffer);
}

bool dtn_strips_short(const struct dtn_strips *rows, int i)
{
    return rows->row.ndim == 0 && !rows->row.empty &&
           rows->row.run <= DTN_STRIPS_KEPT &&
           rows->how[i].work == DTENSOR_F32;
}

void dtn_strips_keep(struct dtn_strips *rows, int i, float kept[])
{
    for (bool on = dtn_strips_block(rows); on;
         on = dtn_strips_next_block(rows)) {
        float *to = kept + rows->first;
        const void *in = dtn_strips_load(rows, i, to);

        if (in != to)
            memcpy(to, in, (size_t)rows->n * sizeof *to);
    }
}

bool dtn_strips_direct(const struct dtn_strips *rows, int i)
{
    const struct dtn_storage *how = &rows->how[i];

    return how->dtype == how->work && how->step == 1;
}

double dtn_strips_value(const struct dtn_strips *rows, int i)
{
    return dtn_load(rows->how[i].dtype, rows->row.at[i], 0);
}

void dtn_strips_set(const struct dtn_strips *rows, int i, double value)
{
    dtn_store(rows->how[i].dtype, rows->row.at[i], 0, value);
}

unsigned dtn_strips_reduced(const struct dtn_array *less)
{
    unsigned dims = 0;

    for (int d = 0; d < less->ndim && d < DTENSOR_MAX_DIMS; d++)
        dims |= (unsigned)(less->shape[d] == 1) << d;
    return dims;
}
