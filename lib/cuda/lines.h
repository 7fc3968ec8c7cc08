/* lines.h - the kernels that walk along lines, and that of triangles
 *
 * Of 4,096 gradients of 512 numbers that are added to a table there are 512
 * lines of 4,096.  Each has 64 threads, which all read the indices; thread 5
 * adds to rows 5, 69, 133, ... of the table, in the order of the line.
 */
#ifndef DTN_CUDA_LINES_H
#define DTN_CUDA_LINES_H

#include "cuda/index.h"
#include "cuda/numbers.h"
#include "cuda/pointwise.h"
#include "cuda/spots.h"

#include <stdint.h>

/* See element_add() of math/select.c. */
DTN_INLINE void element_add(const struct dtn_line_args *args, void *to,
                            const void *from)
{
    const uint32_t t = args->dtype, bytes = args->bytes / args->parts;

    for (uint32_t i = 0; i < args->bytes; i += bytes) {
        char *sum = (char *)to + i;
        const char *term = (const char *)from + i;

        if (args->is_float)
            put_float(t, sum, get_float(t, sum) + get_float(t, term));
        else
            put_i64(t, sum, (int64_t)((uint64_t)get_i64(t, sum)
                                      + (uint64_t)get_i64(t, term)));
    }
}

DTN_KERNEL(scatter, line_args)
{
    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const uint64_t mine = divided(u, &args->lines);
        const struct dtn_spots spot = spot_of(&args->outer,
                                              u - mine * args->lines.by);

        for (uint64_t i = 0; i < args->line.count; i++) {
            const struct dtn_spots along = spot_of(&args->line, i);
            const int64_t found = index_get(args->index_bytes,
                                            (const char *)args->index
                                            + spot.at[1] + along.at[1])
                                - args->first;
            char *to = (char *)args->out + spot.at[0] + found * args->stride;
            const char *from = (const char *)args->in + spot.at[2]
                             + along.at[2];

            if (found < 0 || found >= args->limit ||
                ((uint64_t)found & (args->share - 1)) != mine)
                continue;
            if (args->how)
                element_add(args, to, from);
            else
                element_copy(args->bytes, to, from);
        }
    }
}

/* See math/scan.c. */
DTN_KERNEL(cumulate, line_args)
{
    const uint32_t t = args->dtype;

    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const struct dtn_spots spot = spot_of(&args->outer, u);
        double total = args->how ? 1 : 0;
        uint64_t whole = args->how ? 1 : 0;

        for (uint64_t i = 0; i < args->line.count; i++) {
            const struct dtn_spots along = spot_of(&args->line, i);
            const char *from = (const char *)args->in + spot.at[2]
                             + along.at[2];
            char *to = (char *)args->out + spot.at[0] + along.at[0];

            if (args->is_float) {
                const double x = get_float(t, from);

                total = args->how ? total * x : total + x;
                put_float(t, to, total);
            } else {
                const uint64_t x = (uint64_t)get_i64(t, from);

                whole = args->how ? whole * x : whole + x;
                put_i64(t, to, (int64_t)whole);
            }
        }
    }
}

DTN_KERNEL(triangle, triangle_args)
{
    for (uint64_t u = at.first; u < args->units; u += at.step) {
        const uint64_t matrix = divided(u, &args->cells);
        const uint64_t cell = u - matrix * args->cells.by;
        const uint64_t above = divided(cell, &args->columns);
        const int64_t row = (int64_t)above;
        const int64_t column = (int64_t)(cell - above * args->columns.by);
        const struct dtn_spots spot = spot_of(&args->batch, matrix);
        void *to = (char *)args->out + spot.at[0] + row * args->out_stride[0]
                 + column * args->out_stride[1];

        if (args->lower ? column - row <= args->diagonal
                        : column - row >= args->diagonal)
            element_copy(args->bytes, to, (const char *)args->in + spot.at[1]
                         + row * args->in_stride[0]
                         + column * args->in_stride[1]);
        else
            element_zero(args->bytes, to);
    }
}

#endif
