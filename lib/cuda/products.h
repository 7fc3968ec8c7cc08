/* products.h - the kernels that multiply matrices
 *
 * A thread makes 4 rows of 4 columns of the result, in registers, and loads 8
 * numbers for 16 products.  Each element is one chain of fused multiply-adds in
 * the order of k, as in lib/math/tiles.c, so it has the bits of the CPU's own
 * loops.  Threads beside each other have columns beside each other.
 */
#ifndef DTN_CUDA_PRODUCTS_H
#define DTN_CUDA_PRODUCTS_H

#include "cuda/numbers.h"
#include "cuda/spots.h"

#include <stdbool.h>
#include <stdint.h>

enum { DTN_TILE = DTN_KERNEL_TILE };

/* A tile: its first row and column, and the matrices of its batch. */
struct dtn_tile {
    int64_t row, column;               /* of the matrix                       */
    char *out;                         /* its first element                   */
    const char *a, *b;                 /* the same of the factors             */
};

DTN_INLINE struct dtn_tile tile_of(const struct dtn_product_args *args,
                                   uint64_t unit)
{
    const uint64_t above = divided(unit, &args->across);
    const uint64_t batch = divided(above, &args->down);
    const struct dtn_spots spot = spot_of(&args->batch, batch);

    return (struct dtn_tile){
        (int64_t)(above - batch * args->down.by) * DTN_TILE,
        (int64_t)(unit - above * args->across.by) * DTN_TILE,
        (char *)args->out + spot.at[0], (const char *)args->a + spot.at[1],
        (const char *)args->b + spot.at[2]
    };
}

/* The address of row i, column j of the tile, both kept inside the matrix. */
DTN_INLINE int64_t within(int64_t first, int i, int64_t size)
{
    return first + i < size ? first + i : size - 1;
}

#define DTN_PRODUCT(kind, T, fma)                                             \
    DTN_INLINE T *tile_place_##kind(const struct dtn_product_args *args,      \
                                    const struct dtn_tile *tile, int i,       \
                                    int j)                                    \
    {                                                                         \
        return (T *)(tile->out                                                \
                     + within(tile->row, i, args->m) * args->out_stride[0]    \
                     + within(tile->column, j, args->n)                       \
                       * args->out_stride[1]);                                \
    }                                                                         \
    DTN_INLINE void tile_add_##kind(const struct dtn_product_args *args,      \
                                    const struct dtn_tile *tile, int64_t k,   \
                                    T sum[DTN_TILE][DTN_TILE])                \
    {                                                                         \
        T x[DTN_TILE], y[DTN_TILE];                                           \
                                                                              \
        DTN_UNROLL                                                            \
        for (int i = 0; i < DTN_TILE; i++)                                    \
            x[i] = get_##kind(args->dtype, tile->a + k * args->a_stride[1]    \
                + within(tile->row, i, args->m) * args->a_stride[0]);         \
        DTN_UNROLL                                                            \
        for (int j = 0; j < DTN_TILE; j++)                                    \
            y[j] = get_##kind(args->dtype, tile->b + k * args->b_stride[0]    \
                + within(tile->column, j, args->n) * args->b_stride[1]);      \
        DTN_UNROLL                                                            \
        for (int i = 0; i < DTN_TILE; i++) {                                  \
            DTN_UNROLL                                                        \
            for (int j = 0; j < DTN_TILE; j++)                                \
                sum[i][j] = fma(x[i], y[j], sum[i][j]);                       \
        }                                                                     \
    }                                                                         \
    DTN_KERNEL(product_##kind, product_args)                                  \
    {                                                                         \
        for (uint64_t u = at.first; u < args->units; u += at.step) {          \
            const struct dtn_tile tile = tile_of(args, u);                    \
            T sum[DTN_TILE][DTN_TILE];                                        \
                                                                              \
            DTN_UNROLL                                                        \
            for (int i = 0; i < DTN_TILE; i++) {                              \
                DTN_UNROLL                                                    \
                for (int j = 0; j < DTN_TILE; j++)                            \
                    sum[i][j] = args->adds                                    \
                        ? get_##kind(args->dtype,                             \
                                     tile_place_##kind(args, &tile, i, j))    \
                        : 0;                                                  \
            }                                                                 \
            for (int64_t k = 0; k < args->k; k++)                             \
                tile_add_##kind(args, &tile, k, sum);                         \
            DTN_UNROLL                                                        \
            for (int i = 0; i < DTN_TILE; i++) {                              \
                DTN_UNROLL                                                    \
                for (int j = 0; j < DTN_TILE; j++)                            \
                    if (tile.row + i < args->m && tile.column + j < args->n)  \
                        put_##kind(args->dtype,                               \
                                   tile_place_##kind(args, &tile, i, j),      \
                                   sum[i][j]);                                \
            }                                                                 \
        }                                                                     \
    }
DTN_PRODUCT(f32, float, __builtin_fmaf)
DTN_PRODUCT(f64, double, __builtin_fma)

#endif
