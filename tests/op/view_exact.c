/* view_exact.c - does every rank have the same elements before and after
 *
 * Element by element: the number in the whole tensor, in row-major order, of
 * each element of a part.
 */
#include "tests/op/view_exact.h"

#include <stdlib.h>

enum { ELEMENTS = 4096 };         /* of a part, at most                       */

/* The global indices of a rank along one dimension; how many. */
static int64_t along(const struct dtensor_spec *spec, int rank, int dim,
                     int64_t index[ELEMENTS])
{
    static struct dtensor_run run[ELEMENTS];
    const int64_t runs = dtensor_spec_runs(spec, rank, dim, run, ELEMENTS);
    int64_t n = 0;

    for (int64_t k = 0; k < runs; k++)
        for (int64_t i = 0; i < run[k].size; i++)
            index[n++] = run[k].start + i;
    return n;
}

/* The numbers of all elements of a part; how many. */
static int64_t elements(const struct dtensor_spec *spec, int rank,
                        int64_t number[ELEMENTS])
{
    static int64_t index[ELEMENTS];
    int64_t n = 1;

    number[0] = 0;
    for (int d = 0; d < spec->ndim; d++) {
        const int64_t size = along(spec, rank, d, index);

        if (n * size > ELEMENTS)
            abort();
        for (int64_t k = n * size - 1; k >= 0; k--)
            number[k] = number[k / size] * spec->shape[d] + index[k % size];
        n *= size;
    }
    return n;
}

bool view_exact(const struct dtensor_spec *in, const struct dtensor_spec *out)
{
    static int64_t before[ELEMENTS], after[ELEMENTS];
    bool exact = true;

    for (int m = 0; m < dtensor_mesh_ndim(in->mesh); m++) {
        const bool term = in->placement[m].kind == DTENSOR_PARTIAL;

        exact &= term == (out->placement[m].kind == DTENSOR_PARTIAL) &&
                 (!term || in->placement[m].op == out->placement[m].op);
    }
    for (int i = 0; i < dtensor_mesh_size(in->mesh); i++) {
        const int rank = dtensor_mesh_rank(in->mesh, i);
        const int64_t n = elements(in, rank, before);

        exact &= n == elements(out, rank, after);
        for (int64_t k = 0; exact && k < n; k++)
            exact = before[k] == after[k];
    }
    return exact;
}
