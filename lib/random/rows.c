/* rows.c - the runs of a rank's part, and where they lie in the whole
 *
 * A run is as many elements as lie side by side in the part and in the whole.
 * Of f32[4,6] as S(1) on 2 ranks, rank 1 has four runs of 3 elements: its
 * elements 0..2 are 3..5 of the whole, 3..5 are 9..11.  Placements that cut a
 * dimension apply left to right, each to the list the one before left, so a
 * place in the part is followed back through them from the right.  Nothing is
 * listed or allocated, however many pieces a cyclic placement makes.
 */
#include "random/random.h"

/* Place `at` of what the cut leaves, in what it cuts; *leftp shrinks to how
 * many follow it there side by side, itself among them.
 */
static int64_t cut_back(const struct dtn_cut *cut, int64_t at, int64_t *leftp)
{
    int64_t regular = cut->len * cut->count, left, place;

    if (at < regular) {
        left = cut->len - at % cut->len;
        place = cut->start + at / cut->len * cut->stride + at % cut->len;
    } else {
        left = cut->last_len - (at - regular);
        place = cut->last_start + (at - regular);
    }
    if (left < *leftp)
        *leftp = left;
    return place;
}

/* Global index along dimension d of the part's index `at`, and how many follow
 * side by side.
 */
static int64_t rows_place(const struct dtn_rows *rows, int d, int64_t at,
                          int64_t *leftp)
{
    *leftp = rows->shape[d] - at;
    for (int m = rows->ncuts - 1; m >= 0; m--)
        if (rows->cut_dim[m] == d)
            at = cut_back(&rows->cut[m], at, leftp);
    return at;
}

/* The last dimension of which the rank has less than all, or not in order; 0
 * if there is none.
 */
static int rows_last(const struct dtn_rows *rows, int ndim)
{
    int last = 0;

    for (int m = 0; m < rows->ncuts; m++)
        if (rows->cut_dim[m] > last && rows->cut_dim[m] < ndim)
            last = rows->cut_dim[m];
    return last;
}

void dtn_rows_init(struct dtn_rows *rows, const struct dtensor_spec *spec,
                   int index)
{
    int64_t length[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    int coord[DTENSOR_MAX_DIMS];

    *rows = (struct dtn_rows){ .ndim = spec->ndim };
    dtn_mesh_coord_of(spec->mesh, index, coord);
    dtn_layout(spec, index, rows->shape, offset);
    dtn_strides(spec->ndim, spec->shape, rows->stride);
    for (int d = 0; d < spec->ndim; d++)
        length[d] = spec->shape[d];
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];
        struct dtn_cut *cut = &rows->cut[rows->ncuts];

        if (p->kind == DTENSOR_REPLICATE || p->kind == DTENSOR_PARTIAL)
            continue;
        dtn_cut_of(p, length[p->dim], spec->mesh->size[m], coord[m], cut);
        length[p->dim] = dtn_cut_count(cut);
        rows->cut_dim[rows->ncuts++] = p->dim;
    }
    rows->last = rows_last(rows, spec->ndim);
    rows->count = dtn_numel(spec->ndim, rows->shape);
    rows->inner = 1;
    for (int d = rows->last + 1; d < spec->ndim; d++)
        rows->inner *= rows->shape[d];
}

/* Go on by `n` in the last cut dimension, and from its end to the next row. */
static void rows_step(struct dtn_rows *rows, int64_t n)
{
    rows->at[rows->last] += n;
    for (int d = rows->last; d > 0 && rows->at[d] == rows->shape[d]; d--) {
        rows->at[d] = 0;
        rows->at[d - 1]++;
    }
}

bool dtn_rows_next(struct dtn_rows *rows, struct dtn_row *row)
{
    int64_t left = 1, ignored, global = 0;

    if (rows->done >= rows->count)
        return false;
    for (int d = 0; d <= rows->last && d < rows->ndim; d++)
        global += rows_place(rows, d, rows->at[d],
                             d == rows->last ? &left : &ignored) *
                  rows->stride[d];
    *row = (struct dtn_row){ rows->done, global, left * rows->inner };
    rows->done += row->count;
    rows_step(rows, left);
    return true;
}
