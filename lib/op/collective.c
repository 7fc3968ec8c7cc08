/* collective.c - what an operator reduces over the ranks by itself
 *
 * The softmax of rows that are sharded over ranks needs the largest element of
 * each row and a sum: two small allreduces, where to gather the rows would send
 * all of their elements.
 */
#include "op/collective.h"
#include "op/rule.h"
#include "op/signature.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/predict.h"
#include "sched/call.h"
#include "dtensor.h"

#include <string.h>

unsigned dtn_collective_dims(const struct dtn_options *options,
                             const struct dtn_tuple *choice)
{
    unsigned dims = 0;

    for (int m = 0; m < options->ndim && options->reduces; m++)
        if (options->option[m][choice->at[m]].row->collective)
            dims |= 1u << m;
    return dims;
}

/* A number for each row, as the input lies that has the rows. */
static struct dtensor_spec rows_spec(const struct dtn_signature *sig,
                                     const struct dtensor_spec *in,
                                     unsigned dims)
{
    static const struct dtensor_placement whole = { .kind =
                                                        DTENSOR_REPLICATE };
    const int of = dtn_signature_rows(sig);
    struct dtensor_spec rows = *in;

    rows.dtype = DTENSOR_F64;
    for (int d = 0; d < rows.ndim; d++)
        if (sig->in[of].inner[d] != DTN_WHOLE)
            rows.shape[d] = 1;
    for (int m = 0; m < rows.mesh->ndim; m++)
        if (dims >> m & 1)
            rows.placement[m] = whole;
    return rows;
}

/* Rows that a rank has a part of. */
static double rows_of(const struct dtn_options *options,
                      const struct dtn_tuple *choice, unsigned dims)
{
    const int of = dtn_signature_rows(options->sig);
    struct dtensor_spec rows = options->sig->call->in[of];

    dtn_choice_input(options, choice, of, rows.placement);
    rows = rows_spec(options->sig, &rows, dims);
    return dtn_volume_local(&rows, rows.placement);
}

double dtn_collective_cost(const struct dtn_options *options,
                           const struct dtn_tuple *choice,
                           const struct dtn_costs *costs)
{
    const struct dtensor_mesh *mesh = options->sig->call->in[0].mesh;
    const unsigned dims = dtn_collective_dims(options, choice);
    const char *word = options->sig->rule->collective;
    double bytes, sum = 0;

    if (dims == 0)
        return 0;
    bytes = rows_of(options, choice, dims) * sizeof(double);
    while (*word) {
        const size_t n = strcspn(word, " ");

        sum += costs->allreduce(costs->arg, mesh, dims, bytes * (double)n);
        word += n + strspn(word + n, " ");
    }
    return sum;
}

/* One allreduce, of `each` numbers for a row. */
static void allreduce_follow(struct dtn_watcher *watcher,
                             const struct dtensor_spec *rows, unsigned dims,
                             size_t each)
{
    const double bytes = dtn_volume_local(rows, rows->placement) *
                         (double)(each * sizeof(double));
    struct dtn_cost cost;

    dtn_cost_init(rows->mesh, &cost);
    watcher->begin(watcher, &(struct dtn_activity){
        .kind = DTN_WATCHED_CALL, .name = "allreduce",
        .coll = DTN_COLL_ALLREDUCE,
        .bytes = dtn_allreduce_bytes(rows, dims, each),
        .ns = dtn_cost_allreduce(&cost, rows->mesh, dims, bytes) });
    watcher->end(watcher);
}

int dtn_collective_follow(const struct dtn_decision *d,
                          struct dtensor_error *err)
{
    const unsigned dims = d->inferred.collective;
    struct dtn_watcher *watcher = d->in[0].mesh->ctx->watcher;
    const struct dtn_rule *rule = NULL;
    struct dtn_signature sig;
    struct dtensor_spec rows;
    int rc;

    if (dims == 0 || !watcher)
        return 0;
    rc = dtn_rule_of(&d->call, &rule, err);
    if (rc == 0)
        rc = dtn_signature_init(&sig, rule, &d->call, err);
    if (rc != 0)
        return rc;
    rows = rows_spec(&sig, &d->inferred.want[dtn_signature_rows(&sig)], dims);
    for (const char *word = rule->collective; *word; word += *word == ' ') {
        const size_t each = strcspn(word, " ");

        allreduce_follow(watcher, &rows, dims, each);
        word += each;
    }
    return 0;
}
