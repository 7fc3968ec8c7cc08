/* terms.c - what the terms cost that an operator makes of whole inputs
 *
 * Two square matrices of 8 MiB on two ranks, S(0) times S(1).  To gather the
 * second one each rank receives 4 MiB, and has half of the rows of the product.
 * To make it S(1) times S(0) each rank receives twice 2 MiB, the same; but then
 * it has a term of the whole product, twice the memory, and 4 MiB more have to
 * be sent when somebody wants the sum.  So such terms cost what it takes at
 * least to reduce and scatter them, and S(0) times R is cheaper.
 */
#include "op/terms.h"
#include "op/choose.h"
#include "op/combine.h"
#include "op/result.h"
#include "op/types.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <string.h>

/* Mesh dimensions along which a choice makes terms, a bit set. */
static unsigned terms_made(const struct dtn_options *options,
                           const struct dtn_tuple *choice)
{
    unsigned made = 0;

    for (int m = 0; m < options->ndim && options->makes; m++)
        if (options->option[m][choice->at[m]].makes)
            made |= 1u << m;
    return made;
}

static struct dtensor_spec result_spec(const struct dtn_options *options,
                                       const struct dtn_tuple *choice, int i)
{
    const struct dtn_signature *sig = options->sig;
    struct dtensor_spec spec;

    spec.mesh = sig->call->in[0].mesh;
    spec.dtype = dtn_types_out(sig->rule, sig->call, i);
    spec.ndim = sig->out[i].ndim;
    dtn_result_shape(sig, i, spec.shape);
    dtn_choice_output(options, choice, i, spec.placement);
    return spec;
}

/* The dimension with most elements in a rank's part, which is sharded with the
 * fewest messages; -1: none has two.
 */
static int longest_dim(const struct dtensor_spec *spec)
{
    double longest = 1;
    int dim = -1;

    for (int d = 0; d < spec->ndim; d++) {
        double n = (double)spec->shape[d];

        for (int m = 0; m < spec->mesh->ndim; m++)
            if (dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
                spec->placement[m].dim == d)
                n /= spec->mesh->size[m];
        if (n > longest) {
            longest = n;
            dim = d;
        }
    }
    return dim;
}

/* Reduced to shards of the longest dimension, or to replicas of a number. */
static double result_cost(const struct dtensor_spec *spec, unsigned made,
                          const struct dtn_costs *costs)
{
    const int d = longest_dim(spec);
    const struct dtensor_placement whole = { .kind = DTENSOR_REPLICATE };
    const struct dtensor_placement shard = { .kind = DTENSOR_SHARD, .dim = d };
    struct dtensor_spec terms = *spec;
    struct dtensor_placement dst[DTENSOR_MAX_DIMS];

    memcpy(dst, spec->placement, sizeof dst);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (made >> m & 1 && spec->placement[m].kind == DTENSOR_PARTIAL)
            dst[m] = d < 0 ? whole : shard;
    return costs->terms(costs->arg, &terms, dst);
}

double dtn_terms_cost(const struct dtn_options *options,
                      const struct dtn_tuple *choice,
                      const struct dtn_costs *costs)
{
    const unsigned made = costs->terms ? terms_made(options, choice) : 0;
    double sum = 0;

    for (int i = 0; i < options->sig->nout && made != 0; i++) {
        const struct dtensor_spec spec = result_spec(options, choice, i);

        sum += result_cost(&spec, made, costs);
    }
    return sum;
}
