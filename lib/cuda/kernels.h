/* kernels.h - the kernels for a GPU: their names, and a launch of one
 *
 * Kernels are C, compiled by nvcc for GPUs and by the C compiler for the CPU
 * (twin.h).  The functions of launch.h write their arguments; a launch then
 * needs no more than a name, the struct and a number of threads.
 */
#ifndef DTN_CUDA_KERNELS_H
#define DTN_CUDA_KERNELS_H

#include "cuda/arguments.h"

#include <stddef.h>
#include <stdint.h>

enum { DTN_KERNEL_THREADS = 256 };     /* of a block; every launch has as     */
                                       /* many                                */

/* Of each kernel: its name, the tag of its arguments, and the pointers that
 * these begin with.
 */
#define DTN_KERNELS(X)                                                        \
    X(fold_f32, fold_args, 2 * DTN_KERNEL_TERMS)                              \
    X(fold_f64, fold_args, 2 * DTN_KERNEL_TERMS)                              \
    X(fold_f16, fold_args, 2 * DTN_KERNEL_TERMS)                              \
    X(fold_bf16, fold_args, 2 * DTN_KERNEL_TERMS)                             \
    X(fold_f8e4m3, fold_args, 2 * DTN_KERNEL_TERMS)                           \
    X(fold_f8e5m2, fold_args, 2 * DTN_KERNEL_TERMS)                           \
    X(fold_int8, fold_args, 2 * DTN_KERNEL_TERMS)                             \
    X(fold_int16, fold_args, 2 * DTN_KERNEL_TERMS)                            \
    X(fold_int32, fold_args, 2 * DTN_KERNEL_TERMS)                            \
    X(fold_int64, fold_args, 2 * DTN_KERNEL_TERMS)                            \
    X(average_int8, fold_args, 2 * DTN_KERNEL_TERMS)                          \
    X(average_int16, fold_args, 2 * DTN_KERNEL_TERMS)                         \
    X(average_int32, fold_args, 2 * DTN_KERNEL_TERMS)                         \
    X(average_int64, fold_args, 2 * DTN_KERNEL_TERMS)                         \
    X(product_c64, fold_args, 2 * DTN_KERNEL_TERMS)                           \
    X(product_c128, fold_args, 2 * DTN_KERNEL_TERMS)                          \
    X(copy_1, copy_args, 2)                                                   \
    X(copy_2, copy_args, 2)                                                   \
    X(copy_4, copy_args, 2)                                                   \
    X(copy_8, copy_args, 2)                                                   \
    X(copy_16, copy_args, 2)                                                  \
    X(pattern, pattern_args, 1)                                               \
    X(equal_1, equal_args, 3)                                                 \
    X(equal_2, equal_args, 3)                                                 \
    X(equal_4, equal_args, 3)                                                 \
    X(equal_8, equal_args, 3)                                                 \
    X(arange, arange_args, 1)                                                 \
    X(fill_uniform_f32, fill_args, 1)                                         \
    X(fill_normal_f32, fill_args, 1)                                          \
    X(fill_log_normal_f32, fill_args, 1)                                      \
    X(fill_exponential_f32, fill_args, 1)                                     \
    X(fill_bernoulli_f32, fill_args, 1)                                       \
    X(fill_trunc_normal_f32, fill_args, 1)                                    \
    X(fill_cuda_normal_f32, fill_args, 1)                                     \
    X(fill_cuda_log_normal_f32, fill_args, 1)                                 \
    X(fill_cuda_exponential_f32, fill_args, 1)                                \
    X(fill_cuda_normal_f64, fill_args, 1)                                     \
    X(fill_cuda_log_normal_f64, fill_args, 1)                                 \
    X(fill_cuda_exponential_f64, fill_args, 1)                                \
    X(fill_uniform_f64, fill_args, 1)                                         \
    X(fill_normal_f64, fill_args, 1)                                          \
    X(fill_log_normal_f64, fill_args, 1)                                      \
    X(fill_exponential_f64, fill_args, 1)                                     \
    X(fill_bernoulli_f64, fill_args, 1)                                       \
    X(fill_trunc_normal_f64, fill_args, 1)                                    \
    X(fill_integers, fill_args, 1)                                            \
    X(dropout_f32, dropout_args, 3)                                           \
    X(dropout_f64, dropout_args, 3)                                           \
    X(dropout_f16, dropout_args, 3)                                           \
    X(dropout_bf16, dropout_args, 3)                                          \
    X(dropout_f8e4m3, dropout_args, 3)                                        \
    X(dropout_f8e5m2, dropout_args, 3)                                        \
    X(pointwise_f32, pointwise_args, 4)                                       \
    X(pointwise_f64, pointwise_args, 4)                                       \
    X(pointwise_i64, pointwise_args, 4)                                       \
    X(pointwise_u64, pointwise_args, 4)                                       \
    X(where, pointwise_args, 4)                                               \
    X(cast, cast_args, 2)                                                     \
    X(total_lanes, total_args, 9)                                             \
    X(total_blocks, total_args, 9)                                            \
    X(total_rows, total_args, 9)                                              \
    X(finish, finish_args, 8)                                                 \
    X(column_blocks, column_args, 7)                                          \
    X(column_ends, column_args, 7)                                            \
    X(index_check, index_args, 3)                                             \
    X(gather, index_args, 3)                                                  \
    X(scatter, line_args, 3)                                                  \
    X(cumulate, line_args, 3)                                                 \
    X(triangle, triangle_args, 2)                                             \
    X(order_keys, order_args, 6)                                              \
    X(order_merge, order_args, 6)                                             \
    X(order_often, order_args, 6)                                             \
    X(order_take, order_args, 6)                                              \
    X(product_f32, product_args, 3)                                           \
    X(product_f64, product_args, 3)

enum dtn_kernel {
#define DTN_KERNEL_NUMBER(name, args, pointers) DTN_KERNEL_##name,
    DTN_KERNELS(DTN_KERNEL_NUMBER)
#undef DTN_KERNEL_NUMBER
    DTN_NKERNELS
};

/* launch.c: by number. */
struct dtn_kernel_row {
    const char *name;                  /* in the image: "dtn_fold_f32"        */
    size_t args_bytes;                 /* of its struct                       */
    size_t pointers;                   /* that the struct begins with         */
};
extern const struct dtn_kernel_row dtn_kernels[DTN_NKERNELS];

/* One launch: ceil(threads / DTN_KERNEL_THREADS) blocks or fewer, since every
 * thread goes on to the next unit of work.
 */
struct dtn_launch {
    enum dtn_kernel kernel;            /* which                               */
    uint64_t threads;                  /* units of work; 0: nothing to do     */
    union {
        struct dtn_fold_args fold;         /* folds, averages, products     */
        struct dtn_copy_args copy;         /* dtn_copy_* */
        struct dtn_pattern_args pattern;   /* dtn_pattern */
        struct dtn_equal_args equal;       /* dtn_equal_* */
        struct dtn_arange_args arange;     /* dtn_arange */
        struct dtn_fill_args fill;         /* dtn_fill_* */
        struct dtn_dropout_args dropout;   /* dtn_dropout_* */
        struct dtn_pointwise_args pointwise; /* dtn_pointwise_*, dtn_where */
        struct dtn_cast_args cast;         /* dtn_cast */
        struct dtn_total_args total;       /* dtn_total_* */
        struct dtn_finish_args finish;     /* dtn_finish */
        struct dtn_index_args index;       /* dtn_index_check, dtn_gather */
        struct dtn_line_args line;         /* dtn_scatter, dtn_cumulate */
        struct dtn_column_args column;     /* dtn_column_* */
        struct dtn_triangle_args triangle; /* dtn_triangle */
        struct dtn_order_args order;       /* dtn_order_* */
        struct dtn_product_args product;   /* dtn_product_f* */
    } args;                            /* the member of that kernel           */
};

#endif
