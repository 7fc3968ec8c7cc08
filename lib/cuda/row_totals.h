/* row_totals.h - launches that make totals of rows, and then of each element
 * something else
 */
#ifndef DTN_CUDA_ROW_TOTALS_H
#define DTN_CUDA_ROW_TOTALS_H

#include "cuda/kernels.h"
#include "math/array.h"
#include "math/totals.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DTN_LAUNCHES = 16 };

struct dtn_launches {
    struct dtn_launch launch[DTN_LAUNCHES];    /* in their order              */
    int n;                        /* of them                                  */
    size_t bytes;                 /* of memory that they need, on the device  */
};

/* The rows of some arrays, of which the first is the result and the second is
 * what is reduced.
 */
struct dtn_totals {
    struct dtn_kernel_grid outer, row; /* where they begin, and elements      */
    uint64_t count;               /* rows                                     */
    uint64_t blocks;              /* of a row                                 */
    uint64_t per_run;             /* blocks of a run                          */
    uint64_t lanes;               /* of a block                               */
    uint64_t elements;            /* of a row                                 */
    bool beside;                  /* rows lie beside each other               */
    enum dtensor_dtype from;      /* of what is reduced                       */
    const void *in;               /* the same                                 */
    char *memory;                 /* on the device                            */
    double *scratch, *totals;     /* of lanes, of blocks: in it               */
    struct dtn_launches *to;      /* where launches go                        */
};

/* `dims` is a bit set of the dimensions of a row.  Launches begin here. */
struct dtn_totals dtn_rows_of(const struct dtn_array arrays[], int n,
                              unsigned dims, void *memory,
                              struct dtn_launches *to);

/* `n` numbers of f64 on the device. */
double *dtn_rows_take(struct dtn_totals *rows, uint64_t n);

/* One more launch, for its arguments. */
struct dtn_launch *dtn_rows_launch(struct dtn_totals *rows,
                                   enum dtn_kernel kernel, uint64_t units);

/* One total of each row. */
struct dtn_row_total {
    enum dtn_total kind;          /* how it is made                           */
    enum dtn_total_end end;       /* what becomes of it                       */
    enum dtn_total_term term;     /* of what it is made                       */
    const void *with, *weight;    /* arrays 2 and 3, of that term             */
    const double *middle;         /* of each row; NULL: 0                     */
    const double *scale;          /* of each row, of NORM_UNIT                */
    double *result;               /* of each row; NULL: not wanted            */
    const struct dtn_array *out;  /* the same as elements; NULL               */
    double p, epsilon;            /* see struct dtn_total_args                */
    bool is_truth;                /* what differs from 0 is counted           */
    bool same;                    /* of the same elements as the last total,  */
                                  /* with another end                         */
    size_t index_bytes;           /* LOSS: of a target                        */
};
void dtn_rows_total(struct dtn_totals *rows, const struct dtn_row_total *total);

/* Each element of `out`, array 0. */
void dtn_rows_finish(struct dtn_totals *rows, const struct dtn_finish_args *how,
                     const struct dtn_array *out);

#endif
