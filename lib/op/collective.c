/* collective.c - what an operator reduces over the ranks by itself
 *
 * The softmax of rows that are cut over ranks needs the largest element of each
 * row and a sum: two small allreduces, where to gather the rows would send all
 * of their elements.
 */
#include "op/collective.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "dtensor.h"

#include <string.h>

unsigned dtn_collective_dims(const struct dtn_options *options,
                             const struct dtn_tuple *choice)
{
    unsigned dims = 0;

    for (int m = 0; m < options->ndim; m++)
        if (options->option[m][choice->at[m]].row->collective)
            dims |= 1u << m;
    return dims;
}

/* Rows of the first input that a rank has a part of. */
static double rows_of(const struct dtn_options *options,
                      const struct dtn_tuple *choice, unsigned dims)
{
    static const struct dtensor_placement whole = { .kind =
                                                        DTENSOR_REPLICATE };
    const struct dtn_signature *sig = options->sig;
    struct dtensor_spec rows = sig->call->in[0];

    dtn_choice_input(options, choice, 0, rows.placement);
    for (int d = 0; d < rows.ndim; d++)
        if (sig->in[0].inner[d] != DTN_WHOLE)
            rows.shape[d] = 1;
    for (int m = 0; m < options->ndim; m++)
        if (dims >> m & 1)
            rows.placement[m] = whole;
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
