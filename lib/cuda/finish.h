/* finish.h - the kernel that makes each element of a row from numbers of it
 *
 * Softmax, norms and their gradients: the numbers are totals that rows.h makes.
 */
#ifndef DTN_CUDA_FINISH_H
#define DTN_CUDA_FINISH_H

#include "cuda/fours.h"
#include "cuda/numbers.h"
#include "cuda/spots.h"
#include "math/backward.h"
#include "math/functions.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a gradient, an input and a weight: see math/norm_backward.h. */
DTN_INLINE double norm_backed(const struct dtn_finish_args *args, uint64_t row,
                              double mean, double g, double x, double w)
{
    const double rstd = args->by[1][row];

    return dtn_norm_back(g * w, dtn_norm_unit(x, mean, rstd), rstd,
                         args->by[2] ? args->by[2][row] : 0,
                         args->by[3][row]);
}

/* See math/finish_lanes.h. */
#define DTN_FINISH(kind, T, BITS)                                             \
    DTN_INLINE T finished_##kind(const struct dtn_finish_args *args, T x,     \
                                 double by0, double by1)                      \
    {                                                                         \
        const T most = (T)by0, factor = (T)by1;                               \
                                                                              \
        switch (args->how) {                                                  \
        case DTN_FINISH_EXP: return dtn_exp_##kind(x - most) * factor;        \
        case DTN_FINISH_LOG: return x - most - factor;                        \
        default:             return (x - most) * factor;                      \
        }                                                                     \
    }                                                                         \
    DTN_INLINE T finish_value_##kind(const struct dtn_finish_args *args,      \
                                     uint64_t row, T x, T w, T b)             \
    {                                                                         \
        const double by0 = args->by[0] ? args->by[0][row] : 0;                \
                                                                              \
        switch (args->how) {                                                  \
        case DTN_FINISH_SOFTMAX_BACK:                                         \
            return dtn_softmax_back_##kind(x, w, (T)by0);                     \
        case DTN_FINISH_LOG_BACK:                                             \
            return dtn_log_softmax_back_##kind(x, dtn_exp_##kind(w), (T)by0); \
        case DTN_FINISH_NORM_BACK:                                            \
            return (T)norm_backed(args, row, by0, (double)x, (double)w,       \
                                  (double)b);                                 \
        default:                                                              \
            x = finished_##kind(args, x, by0, args->by[1][row]);              \
            x = args->weight ? x * w : x;                                     \
            return args->bias ? x + b : x;                                    \
        }                                                                     \
    }                                                                         \
    DTN_INLINE void finish_##kind(const struct dtn_finish_args *args,         \
                                  uint64_t row, const struct dtn_spots *spot, \
                                  uint64_t in, uint64_t weight)               \
    {                                                                         \
        const uint32_t t = args->dtype;                                       \
        T w = 1, b = 1;                                                       \
                                                                              \
        if (args->weight)                                                     \
            w = widen_##kind(t, (BITS)weight);                                \
        if (args->bias)                                                       \
            b = get_##kind(t, (const char *)args->bias + spot->at[3]);        \
        put_##kind(t, (char *)args->out + spot->at[0],                        \
                   finish_value_##kind(args, row, widen_##kind(t, (BITS)in),  \
                                       w, b));                                \
    }
DTN_FINISH(f32, float, uint32_t)
DTN_FINISH(f64, double, uint64_t)

/* Where element u is, and the number of its row. */
DTN_INLINE struct dtn_spots finish_spot(const struct dtn_finish_args *args,
                                        uint64_t u, uint64_t *row)
{
    const uint64_t other = divided(u, &args->inside);
    const uint64_t within = u - other * args->inside.by;
    const struct dtn_spots outer = spot_of(
        &args->outer, args->rows_first ? within : other);
    struct dtn_spots spot = spot_of(&args->row,
                                    args->rows_first ? other : within);

    DTN_UNROLL
    for (int a = 0; a < DTN_KERNEL_ARRAYS; a++)
        spot.at[a] += outer.at[a];
    *row = args->rows_first ? within : other;
    return spot;
}

/* Four neighbours of a row of floats without gaps. */
DTN_INLINE void finish_four(const struct dtn_finish_args *args, uint64_t u)
{
    const uint64_t row = divided(u, &args->row_fours);
    const int64_t i = 4 * (int64_t)(u - row * args->row_fours.by);
    const struct dtn_spots spot = spot_of(&args->outer, row);
    const int64_t *step = args->row.step;
    const uint32_t t = args->dtype;
    float x[4], w[4] = { 1, 1, 1, 1 }, b[4] = { 1, 1, 1, 1 };

    four_widen(t, four_load(t, (const char *)args->in + spot.at[1]
                               + i * step[1], false), false, x);
    if (args->weight)
        four_widen(t, four_load(t, (const char *)args->weight + spot.at[2]
                                   + i * step[2], false), false, w);
    if (args->bias)
        four_widen(t, four_load(t, (const char *)args->bias + spot.at[3]
                                   + i * step[3], false), false, b);
    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        x[k] = finish_value_f32(args, row, x[k], w[k], b[k]);
    four_put(t, (char *)args->out + spot.at[0] + i * step[0], x);
}

DTN_KERNEL(finish, finish_args)
{
    const uint32_t bytes = number_bytes(args->dtype);
    uint64_t row;

    for (uint64_t u = at.first; u < args->fours; u += at.step)
        finish_four(args, u);
    for (uint64_t i = at.first + 4 * args->fours; i < args->units;
         i += DTN_BATCH * at.step) {
        uint64_t x[DTN_BATCH], w[DTN_BATCH];

        DTN_UNROLL
        for (int k = 0; k < DTN_BATCH; k++) {
            const struct dtn_spots spot = finish_spot(
                args, in_batch(args->units, i, k, at.step), &row);

            x[k] = load_i64(bytes, (const char *)args->in + spot.at[1]);
            w[k] = 0;
            if (args->weight)
                w[k] = load_i64(bytes, (const char *)args->weight
                                       + spot.at[2]);
        }
        DTN_ROLLED
        for (uint64_t u = i, n = 0; n < DTN_BATCH && u < args->units;
             n++, u += at.step) {
            const struct dtn_spots spot = finish_spot(args, u, &row);

            if (args->dtype == DTENSOR_F64)
                finish_f64(args, row, &spot, x[0], w[0]);
            else
                finish_f32(args, row, &spot, x[0], w[0]);
            DTN_UNROLL
            for (int k = 1; k < DTN_BATCH; k++) {
                x[k - 1] = x[k];
                w[k - 1] = w[k];
            }
        }
    }
}

#endif
