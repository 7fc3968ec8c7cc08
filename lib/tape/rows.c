/* rows.c - the backward of operators that find rows by index
 *
 * If some rows of a table were taken, the gradient of the table is zeros to
 * which the gradients of these rows are added.  If the table is sharded by
 * rows, each rank adds the gradients of its own rows to zeros with the
 * placements of the table.  Example: 8 rows on 2 ranks and the index 1 5 1.
 * One rank adds two gradients to row 1, the other adds one to row 5, and no
 * rank makes the whole table.
 */
#include "layout/spec.h"
#include "tape/express.h"
#include "tape/rules.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/predict.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

static const struct dtensor_spec *input_of(const struct dtn_express *e, int i)
{
    return &e->note->operand[i].spec;
}

/* The index of rows, as large as the rows. */
static int index_wide(const struct dtensor *index, const struct dtensor *rows,
                      int dim, struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor_op_args wide = { .ndim = rows->spec.ndim };
    int64_t shape[DTENSOR_MAX_DIMS];
    int rc;

    memcpy(wide.shape, rows->spec.shape, sizeof wide.shape);
    for (int d = 0; d < rows->spec.ndim; d++)
        shape[d] = d == dim ? index->spec.shape[0] : 1;
    *tp = dtn_tensor_hold(index);
    rc = dtn_express_reshape(tp, rows->spec.ndim, shape, err);
    return rc == 0 ? dtn_express_step("expand", &wide, tp, err) : rc;
}

int dtn_back_index_select(const struct dtn_express *e, struct dtensor *grad[],
                          struct dtensor_error *err)
{
    const struct dtensor_spec *in = input_of(e, 0);
    const struct dtensor_spec spec = dtn_spec_reduced(*in);
    const int dim = e->note->args.dim[0] < 0 ? e->note->args.dim[0] + in->ndim
                                             : e->note->args.dim[0];
    struct dtensor *zeros = NULL, *wide = NULL;
    const struct dtensor *index;
    int rc = dtn_express_operand(e, 1, &index, err);

    if (rc == 0)
        rc = index_wide(index, e->grad[0], dim, &wide, err);
    if (rc == 0)
        rc = dtensor_zeros(&spec, &zeros, err);
    if (rc == 0)
        rc = dtensor_op("scatter_add", 3, (const struct dtensor *const[]){
                        zeros, wide, e->grad[0] }, &e->note->args, 1, &grad[0],
                        err);
    dtensor_destroy(wide);
    dtensor_destroy(zeros);
    return rc;
}

/* --------------------------------------------------------------- index --- */

/* An operator of some tensors, and of the indices of the call. */
static int by_index(const struct dtn_express *e, const char *op,
                    const struct dtensor *first, const struct dtensor *second,
                    int from, struct dtensor **gradp, struct dtensor_error *err)
{
    const struct dtensor *in[2 + DTENSOR_MAX_DIMS] = { first, second };
    int n = second ? 2 : 1, rc = 0;

    for (int i = from; i < e->note->nin && rc == 0; i++)
        rc = dtn_express_operand(e, i, &in[n++], err);
    return rc == 0 ? dtensor_op(op, n, in, &e->note->args, 1, gradp, err) : rc;
}

int dtn_back_index(const struct dtn_express *e, struct dtensor *grad[],
                   struct dtensor_error *err)
{
    const struct dtensor_spec spec = dtn_spec_reduced(*input_of(e, 0));
    struct dtensor *zeros = NULL;
    int rc = dtensor_zeros(&spec, &zeros, err);

    if (rc == 0)
        rc = by_index(e, "index_put_add", zeros, e->grad[0], 1, &grad[0], err);
    dtensor_destroy(zeros);
    return rc;
}

/* What was put goes to the values, all else to the table. */
int dtn_back_index_put(const struct dtn_express *e, struct dtensor *grad[],
                       struct dtensor_error *err)
{
    const struct dtensor_spec spec = dtn_spec_reduced(*input_of(e, 1));
    struct dtensor *zeros = NULL;
    int rc = 0;

    if (e->note->operand[0].value >= 0)
        rc = dtensor_zeros(&spec, &zeros, err);
    if (zeros)
        rc = by_index(e, "index_put", e->grad[0], zeros, 2, &grad[0], err);
    if (rc == 0 && e->note->operand[1].value >= 0)
        rc = by_index(e, "index", e->grad[0], NULL, 2, &grad[1], err);
    dtensor_destroy(zeros);
    return rc;
}

int dtn_back_index_put_add(const struct dtn_express *e, struct dtensor *grad[],
                           struct dtensor_error *err)
{
    grad[0] = dtn_tensor_hold(e->grad[0]);
    return e->note->operand[1].value < 0 ? 0
         : by_index(e, "index", e->grad[0], NULL, 2, &grad[1], err);
}

/* ----------------------------------------------------------- embedding --- */

static bool sharded_by_rows(const struct dtensor_spec *table)
{
    for (int m = 0; m < table->mesh->ndim; m++)
        if (dtn_placement_class(&table->placement[m]) == DTENSOR_SHARD &&
            table->placement[m].dim == 0)
            return true;
    return false;
}

/* What the gradient of the table costs, until it lies as `to`; in us. */
static int embedding_cost(const struct dtensor *const in[], int nin,
                          const struct dtensor_op_args *args,
                          const struct dtensor_spec *to, double *us,
                          struct dtensor_error *err)
{
    const struct dtensor_spec specs[3] = { in[0]->spec, in[1]->spec, *to };
    const struct dtensor_op_call call = { .op = "embedding_backward",
                                          .nin = nin, .in = specs,
                                          .args = *args };
    struct dtensor_spec want[3], out;
    struct dtensor_op_info info;
    struct dtn_cost cost;
    int rc = dtensor_op_infer(&call, want, 1, &out, &info, err);

    if (rc != 0)
        return rc;
    dtn_cost_init(to->mesh, &cost);
    *us = info.predicted_us + dtn_redist_predict(&cost, &out, to) / 1000;
    return 0;
}

/* Is it no dearer to add to zeros that lie as the table? */
static int adds_own_rows(const struct dtensor *const in[],
                         const struct dtensor_op_args *args,
                         const struct dtensor_spec *to, bool *ownp,
                         struct dtensor_error *err)
{
    double whole, own;
    int rc;

    *ownp = sharded_by_rows(to);
    if (!*ownp)
        return 0;
    rc = embedding_cost(in, 2, args, to, &whole, err);
    if (rc == 0)
        rc = embedding_cost(in, 3, args, to, &own, err);
    *ownp = rc == 0 && own <= whole;
    return rc;
}

int dtn_back_embedding(const struct dtn_express *e, struct dtensor *grad[],
                       struct dtensor_error *err)
{
    const struct dtensor_spec to = dtn_spec_reduced(*input_of(e, 0));
    const struct dtensor_op_args args = { .count = to.shape[0] };
    const struct dtensor *in[3] = { e->grad[0], NULL, NULL };
    struct dtensor *zeros = NULL;
    bool own = false;
    int rc = dtn_express_operand(e, 1, &in[1], err);

    if (rc == 0)
        rc = adds_own_rows(in, &args, &to, &own, err);
    if (rc == 0 && own)
        rc = dtensor_zeros(&to, &zeros, err);
    in[2] = zeros;
    if (rc == 0)
        rc = dtensor_op("embedding_backward", own ? 3 : 2, in, &args, 1, grad,
                        err);
    dtensor_destroy(zeros);
    return rc;
}
