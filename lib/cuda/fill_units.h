/* fill_units.h - which block a thread makes, and where its elements go
 *
 * A thread makes a block of random words and the elements of it: 4 of f32, 2 of
 * f64.  In the sequential order these are neighbours, and are stored at once.
 * In the order of a CUDA grid of T threads they are T apart, and neighbouring
 * threads store neighbouring elements.  T is that of the rule, not of this
 * launch.
 */
#ifndef DTN_CUDA_FILL_UNITS_H
#define DTN_CUDA_FILL_UNITS_H

#include "base/narrow.h"
#include "cuda/places.h"
#include "cuda/values.h"
#include "dtensor.h"

#include <stdbool.h>

/* Where a thread is in the GRID: unit = turn * per_turn + rest.  It goes on by
 * additions, since a division takes as long as a quarter of a block.
 */
struct dtn_fill_walk {
    uint64_t turn, rest;               /* of this unit                        */
    uint64_t turns, rests;             /* from one unit to the next           */
};

DTN_INLINE struct dtn_fill_walk fill_walk(const struct dtn_fill_args *args,
                                          struct dtn_thread at)
{
    const uint64_t turn = divided(at.first, &args->per_turn);
    const uint64_t turns = divided(at.step, &args->per_turn);
    const struct dtn_fill_walk walk = {
        turn, at.first - turn * args->per_turn.by,
        turns, at.step - turns * args->per_turn.by
    };

    return walk;
}

DTN_INLINE void fill_step(const struct dtn_fill_args *args,
                          struct dtn_fill_walk *walk)
{
    walk->turn += walk->turns;
    walk->rest += walk->rests;
    if (walk->rest >= args->per_turn.by) {
        walk->rest -= args->per_turn.by;
        walk->turn++;
    }
}

/* A block and its elements. */
struct dtn_fill_unit {
    uint64_t counter, stream;          /* of the block                        */
    uint64_t index;                    /* of its first element                */
    uint64_t stride;                   /* from an element to the next         */
    int lanes;                         /* elements: 2 or 4                    */
};

DTN_INLINE struct dtn_fill_unit fill_sequential(
    const struct dtn_fill_args *args, uint64_t u, int each)
{
    struct dtn_fill_unit unit;

    unit.counter = args->block + args->unit + u;
    unit.stream = 0;
    unit.index = (args->unit + u) * (uint64_t)each;
    unit.stride = 1;
    unit.lanes = each;
    return unit;
}

DTN_INLINE struct dtn_fill_unit fill_grid(const struct dtn_fill_args *args,
                                          const struct dtn_fill_walk *walk,
                                          int each)
{
    const uint64_t turn = args->turn + walk->turn;
    struct dtn_fill_unit unit;

    unit.stream = args->unit + walk->rest;
    unit.counter = args->block + turn;
    unit.index = unit.stream + args->grid.by * (uint64_t)each * turn;
    unit.stride = args->grid.by;
    unit.lanes = each;
    return unit;
}

DTN_INLINE struct dtn_fill_unit fill_vector(const struct dtn_fill_args *args,
                                            uint64_t u)
{
    const uint64_t parts = args->vector > 4 ? 2 : 1;
    const uint64_t group = (args->unit + u) / parts;
    const uint64_t part = (args->unit + u) % parts;
    const uint64_t turn = divided(group, &args->grid);
    struct dtn_fill_unit unit;

    unit.stream = group - turn * args->grid.by;
    unit.counter = args->block + turn * parts + part;
    unit.index = group * args->vector + 4 * part;
    unit.stride = 1;
    unit.lanes = args->vector < 4 ? 2 : 4;
    return unit;
}

DTN_INLINE struct dtn_fill_unit fill_unit(const struct dtn_fill_args *args,
                                          const struct dtn_fill_walk *walk,
                                          uint64_t u, int each)
{
    return args->order == DTN_FILL_GRID ? fill_grid(args, walk, each)
         : args->order == DTN_FILL_VECTOR ? fill_vector(args, u)
                                          : fill_sequential(args, u, each);
}

/* ------------------------------------------------------------- storing --- */

/* COUNT elements of type T, as one access of type V if they are neighbours.
 * Those before the first one asked for have places of more than 2^63.
 */
#define DTN_FILL_STORE(name, T, COUNT, V)                                     \
    DTN_INLINE void name(const struct dtn_fill_args *args,                    \
                         const struct dtn_fill_unit *unit, const T x[COUNT])  \
    {                                                                         \
        const uint64_t place = unit->index - args->first;                     \
        const uint64_t last = place + (COUNT - 1) * unit->stride;             \
        T *to = (T *)args->dst;                                               \
        union {                                                               \
            T x[COUNT];                                                       \
            V all;                                                            \
        } both;                                                               \
                                                                              \
        DTN_UNROLL                                                            \
        for (int k = 0; k < COUNT; k++)                                       \
            both.x[k] = x[k];                                                 \
        if (unit->lanes == COUNT && place < args->count                       \
            && last < args->count) {                                          \
            if (args->aligned) {                                              \
                *(V *)(to + place) = both.all;                                \
                return;                                                       \
            }                                                                 \
            DTN_UNROLL                                                        \
            for (int k = 0; k < COUNT; k++)                                   \
                to[place + (uint64_t)k * unit->stride] = both.x[k];           \
            return;                                                           \
        }                                                                     \
        DTN_UNROLL                                                            \
        for (int k = 0; k < COUNT; k++)                                       \
            if (k < unit->lanes                                               \
                && place + (uint64_t)k * unit->stride < args->count)          \
                to[place + (uint64_t)k * unit->stride] = both.x[k];           \
    }
struct dtn_two_quads {
    struct dtn_quad quad[2];           /* 32 bytes                            */
};
DTN_FILL_STORE(store_8, uint8_t, 4, uint32_t)
DTN_FILL_STORE(store_16, uint16_t, 4, uint64_t)
DTN_FILL_STORE(store_32, uint32_t, 4, struct dtn_quad)
DTN_FILL_STORE(store_64, uint64_t, 4, struct dtn_two_quads)
DTN_FILL_STORE(store_f64, double, 2, struct dtn_quad)

#define DTN_FILL_ROUND(T, store, expression)                                  \
    do {                                                                      \
        T y[4];                                                               \
                                                                              \
        DTN_UNROLL                                                            \
        for (int k = 0; k < 4; k++)                                           \
            y[k] = (T)(expression);                                           \
        store(args, unit, y);                                                 \
    } while (0)

/* Floats rounded to the type, as store_floats() of lib/random/dist.c. */
DTN_INLINE void store_floats(const struct dtn_fill_args *args,
                             const struct dtn_fill_unit *unit,
                             const float x[4])
{
    switch (args->dtype) {
    case DTENSOR_F16:
        DTN_FILL_ROUND(uint16_t, store_16, dtn_f16_narrow(x[k]));
        break;
    case DTENSOR_BF16:
        DTN_FILL_ROUND(uint16_t, store_16, dtn_bf16_narrow(x[k]));
        break;
    case DTENSOR_F8E4M3:
        DTN_FILL_ROUND(uint8_t, store_8, dtn_f8e4m3_narrow(x[k]));
        break;
    case DTENSOR_F8E5M2:
        DTN_FILL_ROUND(uint8_t, store_8, dtn_f8e5m2_narrow(x[k]));
        break;
    default:
        DTN_FILL_ROUND(uint32_t, store_32, dtn_narrow_bits(x[k]));
    }
}

/* What the type makes of a value. */
DTN_INLINE float rounded(uint32_t dtype, float x)
{
    switch (dtype) {
    case DTENSOR_F16:    return dtn_f16_widen(dtn_f16_narrow(x));
    case DTENSOR_BF16:   return dtn_bf16_widen(dtn_bf16_narrow(x));
    case DTENSOR_F8E4M3: return dtn_f8e4m3_widen(dtn_f8e4m3_narrow(x));
    case DTENSOR_F8E5M2: return dtn_f8e5m2_widen(dtn_f8e5m2_narrow(x));
    default:             return x;
    }
}

/* Rounding to a narrow type may give the excluded end of the interval. */
DTN_INLINE void store_uniform(const struct dtn_fill_args *args,
                              const struct dtn_fill_unit *unit,
                              const float x[4])
{
    const float to = (float)args->to, from = (float)args->from;
    const bool narrow = args->dtype != DTENSOR_F32;
    float inside[4];

    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        inside[k] = x[k];
    if (narrow) {
        DTN_UNROLL
        for (int k = 0; k < 4; k++)
            inside[k] = rounded(args->dtype, x[k]) >= to ? from : x[k];
    }
    store_floats(args, unit, inside);
}

/* Integers as any type but a complex one. */
DTN_INLINE void store_integers(const struct dtn_fill_args *args,
                               const struct dtn_fill_unit *unit,
                               const int64_t x[4])
{
    float single[4];

    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        single[k] = (float)(double)x[k];
    switch (args->dtype) {
    case DTENSOR_F32: case DTENSOR_F16: case DTENSOR_BF16:
    case DTENSOR_F8E4M3: case DTENSOR_F8E5M2:
        store_floats(args, unit, single);
        break;
    case DTENSOR_F64:
        DTN_FILL_ROUND(uint64_t, store_64, bits_of_f64((double)x[k]));
        break;
    case DTENSOR_BOOL:
        DTN_FILL_ROUND(uint8_t, store_8, x[k] & 1);
        break;
    case DTENSOR_I8: case DTENSOR_U8:
        DTN_FILL_ROUND(uint8_t, store_8, x[k]);
        break;
    case DTENSOR_I16: case DTENSOR_U16:
        DTN_FILL_ROUND(uint16_t, store_16, x[k]);
        break;
    case DTENSOR_I32: case DTENSOR_U32:
        DTN_FILL_ROUND(uint32_t, store_32, x[k]);
        break;
    default:
        DTN_FILL_ROUND(uint64_t, store_64, x[k]);
    }
}

DTN_INLINE void store_flags(const struct dtn_fill_args *args,
                            const struct dtn_fill_unit *unit,
                            const float x[4])
{
    int64_t flag[4];

    DTN_UNROLL
    for (int k = 0; k < 4; k++)
        flag[k] = x[k] != 0;
    store_integers(args, unit, flag);
}

#endif
