/* placed.c - elements at several indices, on one rank's parts
 *
 * x[:,i,j] takes, and index_put puts, the elements at the places that indices
 * of one shape name together.  What each index adds to the place in the table
 * is summed first; then one walk goes over the elements, the places, and the
 * table with stride 0 along the dimensions that were looked up.  Where the
 * table is sharded along one of those, this rank puts what it has.
 */
#include "op/device.h"
#include "op/local/index.h"
#include "op/local/rows.h"
#include "op/placed.h"
#include "math/select.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* A table, and the inputs that are its indices. */
struct lookup {
    const struct dtn_parts *parts;     /* of this run                         */
    const struct dtn_array *table;     /* whose elements are named            */
    const struct dtensor_spec *spec;   /* of the whole table                  */
    int from;                          /* the first input that is an index    */
    int n;                             /* how many there are                  */
    int dim[DTENSOR_MAX_DIMS];         /* the dimension that each looks up    */
    int at;                            /* where theirs lie: dtn_placed_at()   */
};

static struct lookup lookup_of(const struct dtn_parts *parts, int from,
                               const struct dtn_array *table,
                               const struct dtensor_spec *spec)
{
    struct lookup look = { .parts = parts, .table = table, .spec = spec,
                           .from = from, .n = parts->nin - from };

    for (int k = 0; k < look.n; k++)
        look.dim[k] = dtn_local_dim(parts, k, table->ndim);
    look.at = dtn_placed_at(look.dim, look.n);
    return look;
}

static const struct dtn_array *index_of(const struct lookup *look)
{
    return &look->parts->in[look->from];
}

static int indices_check(const struct lookup *look, struct dtensor_error *err)
{
    int rc = 0;

    for (int k = 0; k < look->n && rc == 0; k++)
        rc = dtn_index_check(look->parts, look->from + k,
                             look->spec->shape[look->dim[k]], err);
    return rc;
}

static bool names(const struct lookup *look, int d)
{
    for (int k = 0; k < look->n; k++)
        if (look->dim[k] == d)
            return true;
    return false;
}

/* A dimension of the walk: of the index, or of the table. */
static void view_add(struct dtn_array *table, struct dtn_array *place,
                     int64_t size, const int64_t stride[2])
{
    table->shape[table->ndim] = place->shape[place->ndim] = size;
    table->stride[table->ndim++] = stride[0];
    place->stride[place->ndim++] = stride[1];
}

/* The table and the places in the shape of the elements. */
static void views(const struct lookup *look, struct dtn_array *table,
                  struct dtn_array *place)
{
    const struct dtn_array *index = index_of(look);

    *table = *look->table;
    table->ndim = 0;
    *place = (struct dtn_array){ .data = look->parts->work,
                                 .dtype = DTENSOR_I64 };
    for (int d = 0; d <= look->table->ndim; d++) {
        for (int k = 0; table->ndim == look->at + k && k < index->ndim; k++)
            view_add(table, place, index->shape[k],
                     (const int64_t[]){ 0, index->stride[k] });
        if (d < look->table->ndim && !names(look, d))
            view_add(table, place, look->table->shape[d],
                     (const int64_t[]){ look->table->stride[d], 0 });
    }
}

static void places_make(const struct lookup *look)
{
    const struct dtn_parts *parts = look->parts;
    const size_t bytes = (size_t)dtn_array_count(index_of(look)) *
                         sizeof(int64_t);

    if (bytes > 0)
        memset(parts->work, 0, bytes);
    for (int k = 0; k < look->n; k++)
        dtn_places_add(parts->work, &parts->in[look->from + k],
                       dtn_index_first(parts, look->spec, look->dim[k]),
                       look->table->shape[look->dim[k]],
                       look->table->stride[look->dim[k]]);
}

/* An index as one of one dimension. */
static struct dtn_array flat(const struct dtn_array *index)
{
    const int64_t n = dtn_array_count(index);

    return dtn_array_packed(index->data, index->dtype, 1, &n);
}

/* --------------------------------------------------------------- index --- */

/* One index, as index_select: its dimensions are one. */
static void index_one(const struct lookup *look)
{
    const struct dtn_parts *parts = look->parts;
    const struct dtn_array index = flat(index_of(look));
    const int dim = look->dim[0];
    struct dtn_array out;
    int64_t shape[DTENSOR_MAX_DIMS];

    memcpy(shape, look->table->shape, sizeof shape);
    shape[dim] = index.shape[0];
    out = dtn_array_packed(parts->out->data, parts->out->dtype,
                           look->table->ndim, shape);
    dtn_op_index_select(parts, &out, look->table, dim, &index, 0);
}

size_t dtn_work_index(const struct dtn_local *local,
                      const struct dtn_parts *parts)
{
    return parts->nin == 2 ? 0 : (size_t)dtn_array_count(&parts->in[1]) *
                                 sizeof(int64_t);
}

int dtn_local_index(const struct dtn_local *local,
                    const struct dtn_parts *parts, struct dtensor_error *err)
{
    const struct lookup look = lookup_of(parts, 1, &parts->in[0],
                                         &parts->want[0]);
    struct dtn_array table, place;
    int rc = indices_check(&look, err);

    if (rc != 0)
        return rc;
    if (look.n == 1) {
        index_one(&look);
    } else if (parts->device) {
        parts->device->lacks = true;
    } else {
        places_make(&look);
        views(&look, &table, &place);
        dtn_array_pick(&parts->out[0], &table, &place);
    }
    return 0;
}

/* ----------------------------------------------------------- index_put --- */

/* Add rows, which are `from`: as embedding_backward. */
static void rows_add(const struct lookup *look, const struct dtn_array *from)
{
    const struct dtn_array *table = look->table;
    const struct dtn_array index = flat(index_of(look));
    const int64_t rows = table->shape[0];
    int64_t width = 1;
    struct dtn_array to, grad;

    for (int d = 1; d < table->ndim; d++)
        width *= table->shape[d];
    to = dtn_array_packed(table->data, table->dtype, 2,
                          (const int64_t[]){ rows, width });
    grad = dtn_array_packed(from->data, from->dtype, 2,
                            (const int64_t[]){ index.shape[0], width });
    dtn_op_embedding_backward(look->parts, &to, &grad, &index,
                              dtn_index_first(look->parts, look->spec, 0));
}

/* Are whole rows put, one for each index? */
static bool by_rows(const struct lookup *look, const struct dtn_array *from,
                    const struct dtn_array *view)
{
    return look->n == 1 && look->dim[0] == 0 &&
           dtn_array_count(from) == dtn_array_count(view);
}

size_t dtn_work_index_put(const struct dtn_local *local,
                          const struct dtn_parts *parts)
{
    return (size_t)dtn_array_count(&parts->in[2]) * sizeof(int64_t);
}

int dtn_local_index_put(const struct dtn_local *local,
                        const struct dtn_parts *parts,
                        struct dtensor_error *err)
{
    const struct lookup look = lookup_of(parts, 2, &parts->out[0],
                                         &parts->spec[0]);
    struct dtn_array table, place, from;
    int rc = indices_check(&look, err);

    if (rc != 0)
        return rc;
    dtn_op_copy(parts, &parts->out[0], &parts->in[0]);
    views(&look, &table, &place);
    if (local->which && by_rows(&look, &parts->in[1], &table)) {
        rows_add(&look, &parts->in[1]);
    } else if (parts->device) {
        parts->device->lacks = true;
    } else if (dtn_array_count(&parts->out[0]) > 0) {
        places_make(&look);
        from = dtn_array_expanded(&parts->in[1], &table);
        dtn_array_put(&table, &place, &from, local->which);
    }
    return 0;
}
