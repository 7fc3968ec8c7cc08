/* arguments.h - what the kernels for a GPU are told
 *
 * Each kernel takes one struct by value.  Pointers come first in it, so that a
 * stand-in for the driver finds them.
 */
#ifndef DTN_CUDA_ARGUMENTS_H
#define DTN_CUDA_ARGUMENTS_H

#include "base/box.h"
#include "dtensor.h"

#include <stdint.h>

enum { DTN_KERNEL_TERMS = 32 };        /* sources, and destinations, of a     */
                                       /* fold                                */

/* A division without an instruction for it: n / by is the upper half of
 * 2 n magic, shifted right by `shift`, for n < 2^63.
 */
struct dtn_divide {
    uint64_t by;                  /* the divisor, 1 or more                   */
    uint64_t magic;               /* 2^(63 + shift) / by, rounded up          */
    uint64_t shift;               /* least one with 2^shift >= by             */
};

/* Runs of elements that are contiguous on both sides, and where they begin.  A
 * thread takes one unit of a run at a time, in order.
 */
struct dtn_kernel_box {
    uint64_t units;               /* of the box: runs times units of a run    */
    uint64_t run;                 /* elements of a run                        */
    struct dtn_divide per_run;    /* units of a run                           */
    int64_t ndim;                 /* dimensions; 0: one run                   */
    struct {
        struct dtn_divide size;   /* runs along it                            */
        int64_t dst;              /* bytes from one to the next, destination  */
        int64_t src;              /* the same in the source                   */
    } dim[DTN_BOX_DIMS];          /* the outermost first                      */
};

enum dtn_fold_op {
    DTN_FOLD_SUM, DTN_FOLD_PROD, DTN_FOLD_MIN, DTN_FOLD_MAX,
    DTN_FOLD_MIN_SIGNED, DTN_FOLD_MAX_SIGNED,     /* of integers              */
    DTN_FOLD_BAND, DTN_FOLD_BOR, DTN_FOLD_BXOR
};

/* Which arrays hold partial results of the wider type, and the like. */
enum {
    DTN_FOLD_WIDE_DST = 1,
    DTN_FOLD_WIDE_FIRST = 2,                /* src[0]                        */
    DTN_FOLD_WIDE_REST = 4,                 /* src[1] and all that follow    */
    DTN_FOLD_TIMES_FIRST = 8,               /* multiply by `factor`          */
    DTN_FOLD_TIMES_REST = 16,
    DTN_FOLD_ONE_NAN = 32,                  /* every NaN becomes the same    */
    DTN_FOLD_SIGNED = 64,                   /* averages: of signed integers  */
    DTN_FOLD_ALIGNED = 128,                 /* every run begins at 16 bytes  */
    DTN_FOLD_ONTO_DST = 256,                /* src[0] has the places of dst  */
    DTN_FOLD_FLAT = 512                     /* sum of two or more arrays     */
};                                          /* without gaps and partials,    */
                                            /* aligned, any NaN the same     */

/* dst[.] = src[0] op src[1] op ..., divided, in the same place of each dst. */
struct dtn_fold_args {
    void *dst[DTN_KERNEL_TERMS];       /* the same result to each             */
    const void *src[DTN_KERNEL_TERMS]; /* terms, from the left                */
    struct dtn_kernel_box box;         /* which elements                      */
    double factor;                     /* see DTN_FOLD_TIMES_FIRST            */
    int64_t divisor;                   /* of the result; 0: none              */
    int32_t ndst;                      /* destinations                        */
    int32_t nsrc;                      /* terms                               */
    uint32_t op;                       /* enum dtn_fold_op                    */
    uint32_t flags;                    /* DTN_FOLD_ALIGNED and the like       */
};

/* A box of elements of 1, 2, 4, 8 or 16 bytes, copied. */
struct dtn_copy_args {
    void *dst;                         /* where the first one goes            */
    const void *src;                   /* where it is                         */
    struct dtn_kernel_box box;         /* a unit is an element                */
};

/* The same 16 bytes again and again. */
struct dtn_pattern_args {
    void *dst;                         /* any address                         */
    uint64_t bytes;                    /* to be written                       */
    uint64_t head;                     /* of these, before a multiple of 16   */
    uint64_t pattern[2];               /* what stands at a multiple of 16     */
};

/* Sets *differ to 1 if a pair differs; else leaves it. */
struct dtn_equal_args {
    const void *left, *right;          /* arrays of words                     */
    uint32_t *differ;                  /* on the device                       */
    uint64_t count;                    /* words                               */
    uint64_t mask;                     /* bits of a word without its sign     */
    uint64_t limit;                    /* above it, without sign: a NaN       */
};

/* Element i is first + i. */
struct dtn_arange_args {
    void *dst;                         /* the array                           */
    int64_t first;                     /* index of the first element          */
    uint64_t count;                    /* elements                            */
    uint32_t dtype;                    /* enum dtensor_dtype                  */
    uint32_t zero;                     /* not used                            */
};

/* Which block of random words, and which elements are made of it. */
enum dtn_fill_order {
    DTN_FILL_SEQUENTIAL,               /* neighbours                          */
    DTN_FILL_GRID,                     /* `grid` apart                        */
    DTN_FILL_VECTOR                    /* neighbours, `vector` a stream       */
};

/* Elements first .. first + count - 1 of a sequence of random numbers. */
struct dtn_fill_args {
    void *dst;                         /* of element `first`                  */
    uint64_t seed;                     /* the Philox key                      */
    uint32_t key[20];                  /* the same in each of ten rounds      */
    uint64_t block;                    /* counter of the operation's first    */
    uint64_t first;                    /* index of the first element          */
    uint64_t count;                    /* elements                            */
    uint64_t units;                    /* blocks to be made                   */
    uint64_t unit;                     /* number of the first of them         */
    uint64_t turn;                     /* GRID: of the first round of streams */
    struct dtn_divide grid;            /* GRID, VECTOR: streams               */
    struct dtn_divide per_turn;        /* GRID: units of one turn             */
    uint64_t vector;                   /* VECTOR: elements, 2, 4 or 8         */
    uint32_t order;                    /* enum dtn_fill_order                 */
    uint32_t dtype;                    /* enum dtensor_dtype                  */
    uint32_t words;                    /* of 32 bits for an element: 1 or 2   */
    uint32_t remainder;                /* integers: x mod range               */
    uint32_t mirrored;                 /* truncated normal: of -to .. -from   */
    uint32_t aligned;                  /* each block's elements begin at a    */
                                       /* multiple of their bytes             */
    uint32_t plain;                    /* f32, SEQUENTIAL or GRID, and those  */
                                       /* SEQUENTIAL are aligned, by fours    */
    uint32_t zero;                     /* not used                            */
    double mul, add;                   /* as in struct dtn_dist               */
    double from, to;                   /* bounds                              */
    double p_low, p_range;             /* truncated normal: probabilities     */
    int64_t low;                       /* integers: the smallest              */
    uint64_t range;                    /* integers: how many; 0: 2^64         */
};

/* dst[i] = keep[i] ? in[i] * scale : 0 * in[i]. */
struct dtn_dropout_args {
    void *dst;                         /* the result                          */
    const void *in;                    /* elements                            */
    const void *keep;                  /* a byte for each, 0 or 1             */
    uint64_t count;                    /* elements                            */
    double scale;                      /* rounded to f32, but for f64         */
};

/* Elements of up to four arrays of one shape, which may be broadcast: element i
 * is number i % run of its run, and the runs have places along dimensions.
 */
enum { DTN_KERNEL_ARRAYS = 4, DTN_KERNEL_DIMS = DTENSOR_MAX_DIMS };
struct dtn_kernel_grid {
    uint64_t count;               /* elements                                 */
    int64_t ndim;                 /* dimensions; 0: one run                   */
    struct dtn_divide run;        /* elements of a run                        */
    int64_t step[DTN_KERNEL_ARRAYS];   /* bytes from one of them to the next  */
    struct {
        struct dtn_divide size;   /* runs along it                            */
        int64_t stride[DTN_KERNEL_ARRAYS];  /* bytes from one to the next     */
    } dim[DTN_KERNEL_DIMS];       /* the outermost first                      */
};

/* out[.] = op(in[0][.], in[1][.], in[2][.]). */
struct dtn_pointwise_args {
    void *out;                         /* array 0 of the grid                 */
    const void *in[3];                 /* arrays 1, 2, 3                      */
    struct dtn_kernel_grid grid;       /* where the elements are              */
    uint64_t fours;                    /* of floats without gaps, at the      */
                                       /* beginning; 0: one by one            */
    uint64_t p, q;                     /* arguments, in the type that is      */
                                       /* computed with, in the first bytes   */
    uint32_t op;                       /* enum dtn_pointwise                  */
    uint32_t dtype;                    /* enum dtensor_dtype of the operands; */
                                       /* of `where` bytes of an element      */
    uint32_t nin;                      /* operands                            */
    uint32_t zero;                     /* not used                            */
};

/* Elements of one type from those of another. */
struct dtn_cast_args {
    void *out;                         /* array 0 of the grid                 */
    const void *in;                    /* array 1                             */
    struct dtn_kernel_grid grid;       /* where the elements are              */
    int64_t least;                     /* integers: the smallest              */
    uint64_t most;                     /* the largest                         */
    uint32_t to, from;                 /* enum dtensor_dtype                  */
    uint32_t is_float, was_float;      /* is `to`, is `from`                  */
    uint32_t truth;                    /* `to` is bool                        */
    uint32_t zero;                     /* not used                            */
};

/* What becomes of the total of a row. */
enum dtn_total_end {
    DTN_END_AS_IT_IS, DTN_END_MEAN, DTN_END_VARIANCE, DTN_END_STD,
    DTN_END_ROOT, DTN_END_RSTD, DTN_END_LOG, DTN_END_INVERSE,
    DTN_END_LOGSUMEXP, DTN_END_ALL, DTN_END_ANY,
    DTN_END_LOSS
};

/* What is added up, of the element x. */
enum dtn_total_term {
    DTN_TERM_ITSELF,
    DTN_TERM_PRODUCT,                  /* x times `with`                      */
    DTN_TERM_NORM,                     /* d = x times `weight`                */
    DTN_TERM_NORM_UNIT,                /* d x', where x' is of `with`         */
    DTN_TERM_PLACE                     /* the place of x, if it is `middle`   */
};

/* Rows become totals, in three steps: see rows.h. */
struct dtn_total_args {
    void *scratch;                     /* of lanes, 8 bytes each              */
    void *totals;                      /* of blocks, the same                 */
    double *result;                    /* f64 of each row; NULL: not wanted   */
    void *out;                         /* an element of each row, array 0;    */
                                       /* NULL: not wanted                    */
    const void *in;                    /* the elements, array 1               */
    const void *with;                  /* array 2; of LOSS the targets        */
    const void *weight;                /* array 3; NULL: 1                    */
    const double *middle;              /* of each row; NULL: 0                */
    const double *scale;               /* of each row, of NORM_UNIT           */
    struct dtn_kernel_grid outer;      /* where rows begin                    */
    struct dtn_kernel_grid row;        /* where elements of a row are         */
    struct dtn_divide rows;            /* how many                            */
    struct dtn_divide blocks;          /* of a row                            */
    struct dtn_divide lanes;           /* of a block, at most 32              */
    struct dtn_divide per_run;         /* blocks of a run                     */
    struct dtn_divide one;             /* by 1                                */
    uint64_t nblocks;                  /* of a row; 0: it is empty            */
    uint64_t units;                    /* of this step                        */
    uint64_t fours;                    /* of lanes, of floats without gaps;   */
                                       /* 0: each by itself                   */
    double start;                      /* what a total begins with            */
    int64_t whole_start;               /* the same of integers                */
    double count;                      /* elements of a row                   */
    double divisor;                    /* of a variance                       */
    double epsilon;                    /* added under the root of RSTD        */
    uint32_t kind;                     /* enum dtn_total                      */
    uint32_t end;                      /* enum dtn_total_end                  */
    uint32_t from, to;                 /* enum dtensor_dtype                  */
    uint32_t is_float;                 /* are the elements                    */
    uint32_t is_truth;                 /* those that differ from 0 are        */
                                       /* counted                             */
    uint32_t rows_first;               /* rows lie beside each other          */
    uint32_t term;                     /* enum dtn_total_term                 */
    uint32_t is_whole;                 /* totals are integers                 */
    uint32_t index_bytes;              /* of a target                         */
};

enum dtn_finish {
    DTN_FINISH_NORM, DTN_FINISH_EXP, DTN_FINISH_LOG,
    DTN_FINISH_SOFTMAX_BACK, DTN_FINISH_LOG_BACK, DTN_FINISH_NORM_BACK
};

/* Each element from itself and some numbers of its row. */
struct dtn_finish_args {
    void *out;                         /* array 0                             */
    const void *in;                    /* array 1                             */
    const void *weight, *bias;         /* arrays 2, 3; NULL: none; of a       */
                                       /* gradient what came out, or the      */
                                       /* input and the weight                */
    const double *by[4];               /* the numbers of each row; NULL: 0    */
    struct dtn_kernel_grid outer;      /* where rows begin                    */
    struct dtn_kernel_grid row;        /* where elements of a row are         */
    struct dtn_divide inside;          /* rows, or elements of a row          */
    struct dtn_divide row_fours;       /* fours of a row                      */
    uint64_t units;                    /* elements                            */
    uint64_t fours;                    /* of all, of floats without gaps; 0:  */
                                       /* each element by itself              */
    uint32_t how;                      /* enum dtn_finish                     */
    uint32_t dtype;                    /* enum dtensor_dtype of all arrays    */
    uint32_t rows_first;               /* `inside` is rows                    */
    uint32_t zero;                     /* not used                            */
};

/* out[.] = table[.][index[.] - first]; or indices that are checked. */
struct dtn_index_args {
    void *out;                         /* array 0; of index_check a word      */
    const void *index;                 /* array 1                             */
    const void *table;                 /* array 2, without that dimension     */
    struct dtn_kernel_grid grid;       /* where the elements are              */
    int64_t first;                     /* index of the table's first          */
    int64_t limit;                     /* how many the table has              */
    int64_t stride;                    /* bytes from one to the next          */
    uint32_t index_bytes;              /* of an index: 4 or 8                 */
    uint32_t bytes;                    /* of an element                       */
};

/* Elements go to, or are added at, places of a table; or each of them so far is
 * added up.  A thread walks over a line, of which it takes the places that
 * belong to it: so no two threads write one place, and the order is the line's.
 */
struct dtn_line_args {
    void *out;                         /* array 0; a table: without lines     */
    const void *index;                 /* array 1                             */
    const void *in;                    /* array 2                             */
    struct dtn_kernel_grid outer;      /* where lines begin                   */
    struct dtn_kernel_grid line;       /* where elements of a line are        */
    struct dtn_divide lines;           /* how many                            */
    uint64_t units;                    /* threads                             */
    uint64_t share;                    /* threads of a line, a power of two   */
    int64_t first;                     /* index of the table's first          */
    int64_t limit;                     /* how many the table has              */
    int64_t stride;                    /* bytes from one to the next          */
    uint32_t index_bytes;              /* of an index: 4 or 8                 */
    uint32_t bytes;                    /* of an element                       */
    uint32_t dtype;                    /* enum dtensor_dtype of what is added */
    uint32_t parts;                    /* of these in an element              */
    uint32_t is_float;                 /* are they                            */
    uint32_t how;                      /* of a table: adds; else is a product */
};

/* The sums of a weight and a bias of a norm: see rows.h. */
struct dtn_column_args {
    double *sums;                      /* [2][blocks][columns]                */
    void *weight, *bias;               /* arrays 0, 1 of column_ends; NULL:   */
                                       /* not wanted                          */
    const void *grad, *in;             /* arrays 1, 2 of column_blocks        */
    const double *mean, *rstd;         /* of each row; NULL: 0                */
    struct dtn_kernel_grid outer;      /* where rows begin                    */
    struct dtn_kernel_grid row;        /* where elements of a row are         */
    struct dtn_divide columns;         /* elements of a row                   */
    uint64_t blocks;                   /* of 64 rows                          */
    uint64_t rows;                     /* how many                            */
    uint64_t units;                    /* of this step                        */
    uint32_t dtype;                    /* enum dtensor_dtype of all arrays    */
    uint32_t zero;                     /* not used                            */
};

/* out = in inside of a triangle, 0 outside. */
struct dtn_triangle_args {
    void *out;                         /* array 0                             */
    const void *in;                    /* array 1                             */
    struct dtn_kernel_grid batch;      /* where the matrices begin            */
    struct dtn_divide columns, cells;  /* of a row, of a matrix               */
    int64_t out_stride[2];             /* bytes: of rows, of columns          */
    int64_t in_stride[2];              /* the same                            */
    int64_t diagonal;                  /* column - row of its edge            */
    uint64_t units;                    /* elements                            */
    uint32_t bytes;                    /* of an element                       */
    uint32_t lower;                    /* below the edge, else above          */
};

/* out = a b, or out + a b, of several matrices. */
enum { DTN_KERNEL_TILE = 4 };
struct dtn_product_args {
    void *out;                         /* array 0 of the batch                */
    const void *a, *b;                 /* arrays 1, 2                         */
    struct dtn_kernel_grid batch;      /* where the matrices begin            */
    int64_t m, n, k;                   /* m x k by k x n                      */
    int64_t out_stride[2];             /* bytes: of rows, of columns          */
    int64_t a_stride[2], b_stride[2];  /* the same                            */
    struct dtn_divide across, down;    /* tiles of the result                 */
    uint64_t units;                    /* tiles of all matrices               */
    uint32_t dtype;                    /* enum dtensor_dtype                  */
    uint32_t adds;                     /* to what `out` holds                 */
};

/* An element of a row, while rows are brought in order. */
struct dtn_kernel_entry {
    uint64_t key;                      /* in the order of the elements        */
    int64_t at;                        /* place in the row                    */
};

/* Rows are brought in order, step by step: see orders.h. */
struct dtn_order_args {
    void *values, *index;              /* arrays 0, 1 of order_take; NULL:    */
                                       /* not wanted                          */
    const void *in;                    /* array 2                             */
    struct dtn_kernel_entry *from, *to;  /* [rows][n]                         */
    int64_t *first;                    /* [rows]: see order_often; NULL:      */
                                       /* `skip` of each row                  */
    struct dtn_kernel_grid outer;      /* where rows begin                    */
    int64_t step[3];                   /* bytes from an element of a row of   */
                                       /* each array to the next              */
    struct dtn_divide n;               /* elements of a row                   */
    struct dtn_divide taken;           /* of these, by order_take             */
    uint64_t row;                      /* number of the first row             */
    uint64_t units;                    /* of this step                        */
    int64_t width;                     /* of the runs that are merged         */
    int64_t skip;                      /* elements before those taken         */
    uint32_t bytes;                    /* of an element                       */
    uint32_t dtype;                    /* enum dtensor_dtype                  */
    uint32_t is_float, is_signed;      /* is it                               */
    uint32_t down;                     /* the largest first                   */
    uint32_t nan;                      /* a NaN is taken, if there is one     */
};

#endif
