/* places.h - where a thread finds its elements */
#ifndef DTN_CUDA_PLACES_H
#define DTN_CUDA_PLACES_H

#include "cuda/device.h"

DTN_INLINE uint64_t divided(uint64_t n, const struct dtn_divide *divide)
{
    __extension__ typedef unsigned __int128 wide;

    return (uint64_t)((wide)(2 * n) * divide->magic >> 64) >> divide->shift;
}

struct dtn_where {
    int64_t dst, src;                  /* of the run, in bytes                */
    uint64_t unit;                     /* of the run                          */
};

DTN_INLINE struct dtn_where place_of(const struct dtn_kernel_box *box,
                                     uint64_t unit)
{
    struct dtn_where place = { 0, 0, unit };
    uint64_t run;

    if (box->ndim == 0)
        return place;
    run = divided(unit, &box->per_run);
    place.unit = unit - run * box->per_run.by;
    for (int64_t d = box->ndim - 1; d >= 0; d--) {
        const uint64_t outer = d > 0 ? divided(run, &box->dim[d].size) : 0;
        const int64_t i = (int64_t)(run - outer * box->dim[d].size.by);

        place.dst += i * box->dim[d].dst;
        place.src += i * box->dim[d].src;
        run = outer;
    }
    return place;
}

/* Load `n` of COUNT elements of type T; `whole`: all, by 16 bytes. */
#define DTN_LOAD(name, T, COUNT)                                              \
    DTN_INLINE void name(const char *at, bool whole, int n, T x[COUNT])       \
    {                                                                         \
        union {                                                               \
            struct dtn_quad quad[sizeof(T) * COUNT / 16];                     \
            T x[COUNT];                                                       \
        } both;                                                               \
                                                                              \
        if (whole) {                                                          \
            DTN_UNROLL                                                        \
            for (unsigned q = 0; q < sizeof(T) * COUNT / 16; q++)             \
                both.quad[q] = ((const struct dtn_quad *)at)[q];              \
        } else {                                                              \
            DTN_UNROLL                                                        \
            for (int k = 0; k < COUNT; k++)                                   \
                both.x[k] = ((const T *)at)[k < n ? k : 0];                   \
        }                                                                     \
        DTN_UNROLL                                                            \
        for (int k = 0; k < COUNT; k++)                                       \
            x[k] = both.x[k];                                                 \
    }

#define DTN_STORE(name, T, COUNT)                                             \
    DTN_INLINE void name(char *at, bool whole, int n, const T x[COUNT])       \
    {                                                                         \
        union {                                                               \
            struct dtn_quad quad[sizeof(T) * COUNT / 16];                     \
            T x[COUNT];                                                       \
        } both;                                                               \
                                                                              \
        DTN_UNROLL                                                            \
        for (int k = 0; k < COUNT; k++)                                       \
            both.x[k] = x[k];                                                 \
        if (whole) {                                                          \
            DTN_UNROLL                                                        \
            for (unsigned q = 0; q < sizeof(T) * COUNT / 16; q++)             \
                ((struct dtn_quad *)at)[q] = both.quad[q];                    \
        } else {                                                              \
            DTN_UNROLL                                                        \
            for (int k = 0; k < COUNT; k++)                                   \
                if (k < n)                                                    \
                    ((T *)at)[k] = both.x[k];                                 \
        }                                                                     \
    }

#endif
