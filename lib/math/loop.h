/* loop.h - walking over several arrays at once */
#ifndef DTN_MATH_LOOP_H
#define DTN_MATH_LOOP_H

#include "math/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DTN_LOOP_ARRAYS = 6 };

/* Arrays of one shape, walked over in row-major order.  Dimensions that follow
 * each other in all arrays are one, those of size 1 are none; so the last one,
 * the *run*, is as long as it can be.
 */
struct dtn_loop {
    int narrays;                  /* arrays walked over                       */
    int ndim;                     /* dimensions beside the run                */
    bool empty;                   /* there is no element                      */
    int64_t run;                  /* elements of a run                        */
    int64_t step[DTN_LOOP_ARRAYS];    /* stride of a run, in elements         */
    size_t size[DTN_LOOP_ARRAYS]; /* bytes of an element                      */
    char *at[DTN_LOOP_ARRAYS];    /* the run's first element                  */
    int64_t shape[DTENSOR_MAX_DIMS];  /* elements along each dimension        */
    int64_t stride[DTN_LOOP_ARRAYS][DTENSOR_MAX_DIMS]; /* of those, in bytes  */
    int64_t index[DTENSOR_MAX_DIMS];  /* the place of the run                 */
};

/* The first run over arrays of one shape.
 *
 *     dtn_loop_begin(&loop, arrays, n);
 *     for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
 *         ... loop.run elements at loop.at[i], each loop.step[i] after the last
 */
void dtn_loop_begin(struct dtn_loop *loop, const struct dtn_array arrays[],
                    int narrays);

/* The next run; false after the last, when the loop is at the first again. */
bool dtn_loop_next(struct dtn_loop *loop);

#endif
