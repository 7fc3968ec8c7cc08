/* rows.h - the kernels that reduce rows
 *
 * The order of a sum is that of lib/math/totals.h, so that the bits are the
 * same: a row is cut into blocks of 512 elements, element i of a block goes to
 * lane i % 32, the lanes are joined in pairs, and the totals of the blocks are
 * added from the first on.  Each of these three steps is a kernel, so that no
 * thread waits for another: 32 threads for a block, then one, then one for a
 * row.  1,000,000 f32 are 1,954 blocks: 62,528 threads, 1,954, 1.
 */
#ifndef DTN_CUDA_ROWS_H
#define DTN_CUDA_ROWS_H

#include "cuda/fours.h"
#include "cuda/numbers.h"
#include "cuda/index.h"
#include "cuda/spots.h"
#include "math/backward.h"
#include "math/functions.h"
#include "math/totals.h"

#include <stdbool.h>
#include <stdint.h>

/* ---------------------------------------------------------------- sums --- */

/* `t` with one element more. */
DTN_INLINE double total_step(uint32_t kind, double t, double x, double m)
{
    const double size = x > 0 ? x : 0 - x;                 /* of -0 it is 0   */

    switch (kind) {
    case DTN_TOTAL_PROD:    return t * x;
    case DTN_TOTAL_COUNT:   return t + (x != 0 ? 1.0 : 0.0);
    case DTN_TOTAL_ABS:     return t + fabs(x);
    case DTN_TOTAL_SQUARES: return t + (x - m) * (x - m);
    case DTN_TOTAL_MAX:     return ((x > t) | (x != x)) ? x : t;
    case DTN_TOTAL_MIN:     return ((x < t) | (x != x)) ? x : t;
    case DTN_TOTAL_MOST:    return ((size > t) | (x != x)) ? size : t;
    case DTN_TOTAL_LEAST:   return ((size < t) | (x != x)) ? size : t;
    default:                return t + x;
    }
}

/* Two totals become one. */
DTN_INLINE double total_join(uint32_t kind, double t, double x)
{
    switch (kind) {
    case DTN_TOTAL_PROD: return t * x;
    case DTN_TOTAL_MAX: case DTN_TOTAL_MOST:
        return ((x > t) | (x != x)) ? x : t;
    case DTN_TOTAL_MIN: case DTN_TOTAL_LEAST:
        return ((x < t) | (x != x)) ? x : t;
    default: return t + x;
    }
}

/* exp(x - m) in the type of the computation; 0 if m is -infinity. */
DTN_INLINE double total_exp(uint32_t dtype, double x, double m)
{
    if (m == (double)-INFINITY)
        return 0;
    return dtype == DTENSOR_F64 ? dtn_exp_f64(x - m)
                                : (double)dtn_exp_f32((float)x - (float)m);
}

/* Of integers, in 64 bits that wrap. */
DTN_INLINE int64_t whole_join(uint32_t kind, bool is_u64, int64_t t, int64_t x)
{
    const bool less = is_u64 ? (uint64_t)x < (uint64_t)t : x < t;

    switch (kind) {
    case DTN_TOTAL_PROD: return (int64_t)((uint64_t)t * (uint64_t)x);
    case DTN_TOTAL_MAX:  return less ? t : x;
    case DTN_TOTAL_MIN:  return less ? x : t;
    default:             return (int64_t)((uint64_t)t + (uint64_t)x);
    }
}

/* Is it the extreme of the row?  A NaN is, if there is one. */
DTN_INLINE bool is_extreme(const struct dtn_total_args *args, uint64_t bits,
                           uint64_t row)
{
    const double m = args->middle[row];
    double x;

    if (!args->is_float)
        return widen_i64(args->from, bits)
               == ((const int64_t *)args->middle)[row];
    x = widen_float(args->from, bits);
    return m != m ? x != x : x == m;
}

/* -------------------------------------------------------------- places --- */

/* A row, one of its blocks, and a lane of that. */
struct dtn_lane {
    uint64_t row, block, lane;         /* their numbers, from 0               */
};

/* Neighbouring threads have neighbouring elements: of one row, or, if rows lie
 * beside each other, of one column.
 */
DTN_INLINE struct dtn_lane lane_of(const struct dtn_total_args *args,
                                   uint64_t unit, const struct dtn_divide *by)
{
    const uint64_t first = args->rows_first ? divided(unit, &args->rows)
                                            : divided(unit, by);
    const uint64_t within = unit - first * (args->rows_first ? args->rows.by
                                                             : by->by);
    const uint64_t other = args->rows_first ? divided(first, by)
                                            : divided(first, &args->blocks);

    if (args->rows_first)
        return (struct dtn_lane){ within, other, first - other * by->by };
    return (struct dtn_lane){ other, first - other * args->blocks.by, within };
}

/* The reverse. */
DTN_INLINE uint64_t unit_of(const struct dtn_total_args *args, uint64_t row,
                            uint64_t block, uint64_t lane, uint64_t lanes)
{
    return args->rows_first
         ? (block * lanes + lane) * args->rows.by + row
         : (row * args->blocks.by + block) * lanes + lane;
}

/* ------------------------------------------------------------- kernels --- */

/* The element `i` steps after the spot, of one of several arrays. */
DTN_INLINE double element_of(const struct dtn_total_args *args,
                             const void *array, int number,
                             const struct dtn_spots *spot, uint64_t i)
{
    return get_float(args->from, (const char *)array + spot->at[number]
                                 + (int64_t)i * args->row.step[number]);
}

/* What is added up of that element, which is x. */
DTN_INLINE double term_of(const struct dtn_total_args *args,
                          const struct dtn_spots *spot, uint64_t row,
                          double m, uint64_t i, double x)
{
    double d;

    if (args->term == DTN_TERM_ITSELF)
        return x;
    if (args->term == DTN_TERM_PRODUCT)
        return x * element_of(args, args->with, 2, spot, i);
    d = args->weight ? x * element_of(args, args->weight, 3, spot, i) : x;
    if (args->term == DTN_TERM_NORM)
        return d;
    return d * dtn_norm_unit(element_of(args, args->with, 2, spot, i), m,
                             args->scale[row]);
}

/* The total of a lane so far: a float, or an integer. */
struct dtn_lane_total {
    double real;                       /* of floats                           */
    int64_t whole;                     /* of all else                         */
};

/* `t` with element i more. */
DTN_INLINE struct dtn_lane_total lane_step(const struct dtn_total_args *args,
                                           const struct dtn_spots *spot,
                                           uint64_t row, double m, uint64_t i,
                                           uint64_t bits,
                                           struct dtn_lane_total t)
{
    const uint32_t from = args->from;

    if (args->term == DTN_TERM_PLACE) {
        t.whole = whole_join(args->kind, false, t.whole,
                             is_extreme(args, bits, row) ? (int64_t)i
                                                         : t.whole);
    } else if (args->is_truth) {
        t.whole += args->is_float ? widen_float(from, bits) != 0
                                  : widen_i64(from, bits) != 0;
    } else if (!args->is_float) {
        t.whole = whole_join(args->kind, from == DTENSOR_U64, t.whole,
                             widen_i64(from, bits));
    } else {
        const double x = widen_float(from, bits);

        t.real = args->kind == DTN_TOTAL_EXP
               ? t.real + total_exp(from, x, m)
               : total_step(args->kind, t.real,
                            term_of(args, spot, row, m, i, x),
                            args->term == DTN_TERM_ITSELF ? m : 0);
    }
    return t;
}

/* Elements i, i + 32, ... below `end`. */
DTN_INLINE struct dtn_lane_total lane_total(const struct dtn_total_args *args,
                                            const struct dtn_spots *spot,
                                            uint64_t row, uint64_t i,
                                            uint64_t end)
{
    const char *in = (const char *)args->in + spot->at[1];
    const uint32_t bytes = number_bytes(args->from);
    const double m = args->middle ? args->middle[row] : 0;
    struct dtn_lane_total t = { args->start, args->whole_start };

    for (; i < end; i += 32 * DTN_BATCH) {
        uint64_t x[DTN_BATCH];

        DTN_UNROLL
        for (int k = 0; k < DTN_BATCH; k++)
            x[k] = load_i64(bytes, in + (int64_t)in_batch(end, i, k, 32)
                                        * args->row.step[1]);
        DTN_ROLLED
        for (uint64_t e = i, n = 0; n < DTN_BATCH && e < end; n++, e += 32) {
            t = lane_step(args, spot, row, m, e, x[0], t);
            DTN_UNROLL
            for (int k = 1; k < DTN_BATCH; k++)
                x[k - 1] = x[k];
        }
    }
    return t;
}

/* Four lanes of a block: of a row of floats without gaps, and its elements
 * themselves.
 */
DTN_INLINE void total_four_lanes(const struct dtn_total_args *args, uint64_t u)
{
    const uint64_t number = u / 8, lane = 4 * (u % 8);
    const uint64_t row = divided(number, &args->blocks);
    const uint64_t start = (number - row * args->blocks.by) * 512;
    const uint64_t all = args->row.run.by;
    const uint64_t end = start + 512 < all ? start + 512 : all;
    const double m = args->middle ? args->middle[row] : 0;
    const char *in = (const char *)args->in + spot_of(&args->outer, row).at[1];
    double *to = (double *)args->scratch + 32 * number + lane;
    double t[4] = { args->start, args->start, args->start, args->start };
    float x[4];

    for (uint64_t i = start + lane; i < end; i += 32) {
        four_widen(args->from, four_load(args->from, in + (int64_t)i
                                         * args->row.step[1], false), false, x);
        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            t[k] = args->kind == DTN_TOTAL_EXP
                 ? t[k] + total_exp(args->from, (double)x[k], m)
                 : total_step(args->kind, t[k], (double)x[k], m);
    }
    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        to[k] = t[k];
}

DTN_KERNEL(total_lanes, total_args)
{
    for (uint64_t u = at.first; u < args->fours; u += at.step)
        total_four_lanes(args, u);
    if (args->fours > 0)
        return;
    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const struct dtn_lane place = lane_of(args, u, &args->lanes);
        const uint64_t run = divided(place.block, &args->per_run);
        const uint64_t start = (place.block - run * args->per_run.by) * 512;
        const uint64_t all = args->row.run.by;
        const uint64_t end = start + 512 < all ? start + 512 : all;
        struct dtn_spots spot = spot_of(&args->outer, place.row);
        const struct dtn_spots within = spot_of(&args->row, run * all);
        struct dtn_lane_total t;

        DTN_UNROLL
        for (int a = 0; a < DTN_KERNEL_ARRAYS; a++)
            spot.at[a] += within.at[a];
        t = lane_total(args, &spot, place.row, start + place.lane, end);
        if (!args->is_whole)
            ((double *)args->scratch)[u] = t.real;
        else
            ((int64_t *)args->scratch)[u] = t.whole;
    }
}

/* The lanes of a block, in pairs; a row of fewer elements has fewer. */
DTN_INLINE double lanes_joined(const struct dtn_total_args *args, uint64_t row,
                               uint64_t block)
{
    const double *from = (const double *)args->scratch;
    double lane[32];

    DTN_UNROLL
    for (int j = 0; j < 32; j++)
        lane[j] = (uint64_t)j < args->lanes.by
                ? from[unit_of(args, row, block, (uint64_t)j, args->lanes.by)]
                : args->start;
    DTN_UNROLL
    for (int half = 16; half > 0; half /= 2) {
        DTN_UNROLL
        for (int j = 0; j < 16; j++)
            if (j < half)
                lane[j] = total_join(args->kind, lane[j], lane[j + half]);
    }
    return lane[0];
}

DTN_INLINE int64_t lanes_whole(const struct dtn_total_args *args, uint64_t row,
                               uint64_t block)
{
    const int64_t *from = (const int64_t *)args->scratch;
    const bool is_u64 = args->from == DTENSOR_U64
                     && args->term == DTN_TERM_ITSELF;
    int64_t whole = args->whole_start;

    for (uint64_t j = 0; j < args->lanes.by; j++)
        whole = whole_join(args->is_truth ? DTN_TOTAL_SUM : args->kind, is_u64,
                           whole, from[unit_of(args, row, block, j,
                                               args->lanes.by)]);
    return whole;
}

DTN_KERNEL(total_blocks, total_args)
{
    const struct dtn_divide one = args->one;

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const struct dtn_lane place = lane_of(args, u, &one);

        if (!args->is_whole)
            ((double *)args->totals)[u] = lanes_joined(args, place.row,
                                                       place.block);
        else
            ((int64_t *)args->totals)[u] = lanes_whole(args, place.row,
                                                       place.block);
    }
}

/* The score of the row's target. */
DTN_INLINE double target_score(const struct dtn_total_args *args, uint64_t row)
{
    const struct dtn_spots spot = spot_of(&args->outer, row);
    const int64_t i = index_get(args->index_bytes,
                                (const char *)args->with + spot.at[2]);

    if (i < 0 || i >= (int64_t)args->count)
        return 0;
    return get_float(args->from, (const char *)args->in + spot.at[1]
                                 + i * args->row.step[1]);
}

/* As dtn_finish_log(). */
DTN_INLINE double total_log(const struct dtn_total_args *args, double t)
{
    return args->from == DTENSOR_F64 ? dtn_log_f64(t) : dtn_log_33_f64(t);
}

/* What the total of a row comes to, of floats. */
DTN_INLINE double total_ended(const struct dtn_total_args *args, uint64_t row,
                              double t)
{
    double most;

    switch (args->end) {
    case DTN_END_MEAN:     return t / args->count;
    case DTN_END_VARIANCE: return t / args->divisor;
    case DTN_END_STD:      return __builtin_sqrt(t / args->divisor);
    case DTN_END_ROOT:     return __builtin_sqrt(t);
    case DTN_END_RSTD:
        return 1 / __builtin_sqrt(t / args->count + args->epsilon);
    case DTN_END_LOG:      return total_log(args, t);
    case DTN_END_INVERSE:  return 1 / t;
    case DTN_END_LOGSUMEXP:
        most = args->middle[row];
        return most - most != 0 ? most : most + total_log(args, t);
    case DTN_END_LOSS:
        return args->middle[row] + total_log(args, t) - target_score(args, row);
    default:               return t;
    }
}

DTN_KERNEL(total_rows, total_args)
{
    for (uint64_t row = at.first; row < args->units; row += at.step) {
        void *out = (char *)args->out + spot_of(&args->outer, row).at[0];
        double t = args->start;
        int64_t whole = args->whole_start;

        if (!args->is_whole) {
            for (uint64_t b = 0; b < args->nblocks; b++)
                t = total_join(args->kind, t, ((const double *)args->totals)
                                   [unit_of(args, row, b, 0, 1)]);
            t = total_ended(args, row, t);
            if (args->result)
                ((double *)args->result)[row] = t;
            if (args->out)
                put_float(args->to, out, t);
            continue;
        }
        for (uint64_t b = 0; b < args->nblocks; b++)
            whole = whole_join(args->is_truth ? DTN_TOTAL_SUM : args->kind,
                               args->from == DTENSOR_U64
                               && args->term == DTN_TERM_ITSELF, whole,
                               ((const int64_t *)args->totals)
                                   [unit_of(args, row, b, 0, 1)]);
        if (args->is_truth)
            whole = args->end == DTN_END_ALL ? whole == (int64_t)args->count
                                             : whole > 0;
        if (args->result)
            ((int64_t *)args->result)[row] = whole;
        if (args->out)
            put_i64(args->to, out, whole);
    }
}

#endif
