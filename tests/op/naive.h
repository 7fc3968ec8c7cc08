/* naive.h - operators on whole arrays of numbers, in the plainest way
 *
 * What dtensor_op() gives, gathered, has to be this.
 */
#ifndef TESTS_OP_NAIVE_H
#define TESTS_OP_NAIVE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { WHOLE_MAX = 4096 };

/* A whole array. */
struct whole {
    enum dtensor_dtype dtype;          /* of the tensor that it stands for    */
    int ndim;                          /* dimensions                          */
    int64_t shape[DTENSOR_MAX_DIMS];   /* in elements                         */
    double at[WHOLE_MAX];              /* row-major                           */
};

int64_t whole_count(const struct whole *w);

/* Move `index` to the next place of `shape`; false: it is all 0 again. */
bool place_next(int ndim, const int64_t shape[], int64_t index[]);

/* The element of `w` at the place of a result, to which it is broadcast. */
double whole_at_place(const struct whole *w, int ndim, const int64_t index[]);

/* Fill `out`, whose shapes are set.  False: there is no twin of that name. */
bool naive_op(const struct dtensor_op_call *call, const struct whole in[],
              int nout, struct whole out[]);

/* The parts of it: element by element; reductions; products; gradients;
 * rows; attention; the rest.
 */
bool naive_pointwise(const struct dtensor_op_call *call,
                     const struct whole in[], struct whole *out);
bool naive_reduce(const struct dtensor_op_call *call, const struct whole *in,
                  int nout, struct whole out[]);
bool naive_product(const struct dtensor_op_call *call, const struct whole in[],
                   struct whole *out);
bool naive_backward(const struct dtensor_op_call *call,
                    const struct whole in[], int nout, struct whole out[]);
bool naive_row(const struct dtensor_op_call *call, const struct whole in[],
               int nout, struct whole out[]);
bool naive_attention(const struct dtensor_op_call *call,
                     const struct whole in[], int nout, struct whole out[]);
bool naive_parts(const struct dtensor_op_call *call, const struct whole in[],
                 int nout, struct whole out[]);

#endif
