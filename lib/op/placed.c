/* placed.c - where the dimensions of an index lie among those of a tensor
 *
 * Of 4x5x6 by two indices of 2x3, the elements of dimensions 1 and 2 are 4x2x3;
 * those of dimensions 0 and 2, which are no neighbours, are 2x3x5.
 */
#include "op/placed.h"
#include "op/words.h"

int dtn_placed_at(const int dim[], int n)
{
    int least = dim[0], most = dim[0];

    for (int i = 1; i < n; i++) {
        least = dim[i] < least ? dim[i] : least;
        most = dim[i] > most ? dim[i] : most;
    }
    return most - least == n - 1 ? least : 0;
}

/* All indices have the dimensions of the last one. */
static int index_ndim(const struct dtn_signature *sig)
{
    return sig->call->in[sig->call->nin - 1].ndim;
}

int dtn_placed_letters(const struct dtn_signature *sig, int nstars,
                       int letter[2 * DTENSOR_MAX_DIMS])
{
    const int at = dtn_placed_at(sig->dim, sig->ndims);
    int n = 0;

    for (int d = 0; d <= nstars; d++) {
        for (int k = 0; n == at + k && k < index_ndim(sig); k++)
            letter[n++] = DTN_PLACED + k;
        if (d < nstars && !dtn_signature_names(sig, d))
            letter[n++] = d;
    }
    return n;
}

int dtn_placed_check(const struct dtn_signature *sig, int i,
                     struct dtensor_error *err)
{
    const int given = sig->call->nin - i;
    const int ndim = sig->in[0].ndim - sig->ndims + sig->in[i].ndim;

    if (given != sig->ndims)
        return dtn_op_fail(sig->call, err, "args.dim names %d dimensions, but "
                           "there are %d indices (expected one for each)",
                           sig->ndims, given);
    if (ndim > DTENSOR_MAX_DIMS)
        return dtn_op_fail(sig->call, err, "the elements of the index have %d "
                           "dimensions (expected at most %d)", ndim,
                           DTENSOR_MAX_DIMS);
    return 0;
}
