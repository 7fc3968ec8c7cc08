/* tiles.h - own products of matrices of floats, tile by tile */
#ifndef DTN_MATH_TILES_H
#define DTN_MATH_TILES_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A factor, of any type of float and with any strides. */
struct dtn_tiles_matrix {
    const void *data;             /* its first element                        */
    enum dtensor_dtype dtype;     /* of an element                            */
    int64_t stride[2];            /* to the next row, to the next column;     */
                                  /* elements                                 */
};

/* out = a b, or out += a b: m x k by k x n. */
struct dtn_tiles_call {
    enum dtensor_dtype work;      /* of `out`: DTENSOR_F32 or DTENSOR_F64     */
    int64_t m, n, k;              /* rows and columns of out, terms           */
    bool adds;                    /* out += a b                               */
    void *out;                    /* whose columns are neighbours             */
    int64_t apart;                /* from a row of `out` to the next; elements*/
    struct dtn_tiles_matrix a, b; /* see above                                */
};

/* Bytes of scratch memory for it; addresses are not looked at. */
size_t dtn_tiles_bytes(const struct dtn_tiles_call *call);

/* Each element of the result is one chain of fused multiply-adds in the order
 * of k.  `room` is aligned for any type.
 */
void dtn_tiles_multiply(const struct dtn_tiles_call *call, void *room);

#endif
