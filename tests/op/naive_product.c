/* naive_product.c - products of whole matrices: a sum for each element */
#include "tests/op/naive.h"

#include <string.h>

static bool is(const char *op, const char *name)
{
    return strcmp(op, name) == 0;
}

/* Element (i, k) of the matrix of `w` for the result at `index`, whose leading
 * dimensions are broadcast.
 */
static double element(const struct whole *w, int ndim, const int64_t index[],
                      int64_t i, int64_t k)
{
    int64_t at[DTENSOR_MAX_DIMS];

    memcpy(at, index, sizeof at);
    at[ndim - 2] = i;
    at[ndim - 1] = k;
    return whole_at_place(w, ndim, at);
}

static void matmul(const struct whole *a, const struct whole *b,
                   const struct whole *bias, struct whole *out)
{
    const int64_t terms = a->shape[a->ndim - 1];
    int64_t index[DTENSOR_MAX_DIMS] = { 0 }, at = 0;

    if (whole_count(out) == 0)
        return;
    do {
        const int64_t m = index[out->ndim - 2], n = index[out->ndim - 1];
        double sum = bias ? whole_at_place(bias, out->ndim, index) : 0;

        for (int64_t k = 0; k < terms; k++)
            sum += element(a, out->ndim, index, m, k) *
                   element(b, out->ndim, index, k, n);
        out->at[at++] = sum;
    } while (place_next(out->ndim, out->shape, index));
}

/* Input, weight (n x k), perhaps bias: any number of leading dimensions. */
static void linear(const struct dtensor_op_call *call, const struct whole in[],
                   struct whole *out)
{
    const int64_t n = in[1].shape[0], terms = in[1].shape[1];

    for (int64_t i = 0; i < whole_count(out); i++) {
        double sum = call->nin > 2 ? in[2].at[i % n] : 0;

        for (int64_t k = 0; k < terms; k++)
            sum += in[0].at[i / n * terms + k] * in[1].at[i % n * terms + k];
        out->at[i] = sum;
    }
}

/* A matrix, or one row, by a vector. */
static void by_vector(const struct whole in[], struct whole *out)
{
    const int64_t terms = in[1].shape[0];

    for (int64_t i = 0; i < whole_count(out); i++) {
        out->at[i] = 0;
        for (int64_t k = 0; k < terms; k++)
            out->at[i] += in[0].at[i * terms + k] * in[1].at[k];
    }
}

bool naive_product(const struct dtensor_op_call *call, const struct whole in[],
                   struct whole *out)
{
    const char *op = call->op;

    if (is(op, "matmul"))
        matmul(&in[0], &in[1], NULL, out);
    else if (is(op, "addmm"))
        matmul(&in[1], &in[2], &in[0], out);
    else if (is(op, "linear"))
        linear(call, in, out);
    else if (is(op, "mv") || is(op, "dot"))
        by_vector(in, out);
    else
        return false;
    return true;
}
