/* reduce.h - reductions of arrays */
#ifndef DTN_BASE_REDUCE_H
#define DTN_BASE_REDUCE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* A reduction of one type over ranks.  What the caller's arrays hold are
 * *elements*; what lies between two steps is a *partial result*, of type
 * `partial`: f32 where floats of 16 and 8 bits are added, multiplied or given
 * to a function of the caller's, and i64 or 128 bits where integers are averaged,
 * so that all of them are rounded once, at the end, and no sum overflows; else
 * the element's own type.  An element that comes in is *lifted*:
 * widened, and multiplied by `factor`.  A result that becomes an element is
 * *dropped*: divided by `divisor`, and rounded.
 */
struct dtn_reduction {
    enum dtensor_dtype dtype;
    enum dtensor_dtype partial;
    enum dtensor_dtype work;      /* type of the computation                   */
    enum dtensor_redop op;        /* a built-in one; AVG folds as SUM          */
    int divisor;                  /* of AVG the ranks, else 1                  */
    double factor;                /* of a premultiplied sum, else 1            */
    dtensor_reduce_f *fn;         /* folds instead of `op`; or NULL            */
    void *arg;
};

/* That of a built-in `op` over n ranks. */
struct dtn_reduction dtn_reduction(enum dtensor_dtype dtype,
                                   enum dtensor_redop op, int n);

/* Is an element something else than a partial result of one term, and is a
 * partial result of all terms something else than the element it becomes?
 */
bool dtn_reduction_lifts(const struct dtn_reduction *how);
bool dtn_reduction_drops(const struct dtn_reduction *how);

/* Elements that take as much memory as one partial result: 1, 2, 4 or 8. */
size_t dtn_reduction_ratio(const struct dtn_reduction *how);

/* dst[i] = src[0][i] op src[1][i] op ... op src[nsrc-1][i], folded from the
 * left in that order, nsrc >= 1.  `partial` says which of them are partial
 * results; the rest are elements.  dst may be the same as any src of its kind,
 * else does not overlap.  Of bool SUM and MAX are or, PROD and MIN are and, if
 * it is 0 or 1.  MIN and MAX keep the left of two equal ones, such as -0 and
 * +0; a NaN that comes out of two or more sources is always the same positive
 * quiet one, and that of a single source quiet or not.  The type has the
 * operation: dtn_redop_ok() was asked when the reduction was made.  Dispatches
 * to the widest vectors of the CPU at run time; every width gives the same bits.
 */
enum {
    DTN_PARTIAL_DST = 1,
    DTN_PARTIAL_FIRST = 2,                  /* src[0]                        */
    DTN_PARTIAL_REST = 4                    /* src[1] and all that follow    */
};
void dtn_fold(const struct dtn_reduction *how, unsigned partial, void *dst,
              const void *const src[], int nsrc, size_t count);

/* The same of elements only, AVG as SUM. */
void dtn_reduce(enum dtensor_dtype dtype, enum dtensor_redop op, void *dst,
                const void *const src[], int nsrc, size_t count);

/* One of the widths by number, narrowest first, and its name; NULL when this
 * CPU has no more.  For tests and measurements.
 */
void dtn_fold_width(int width, const struct dtn_reduction *how,
                    unsigned partial, void *dst, const void *const src[],
                    int nsrc, size_t count);
const char *dtn_reduce_width_name(int width);

/* Their naive twins: one element at a time, for tests. */
void dtn_fold_naive(const struct dtn_reduction *how, unsigned partial,
                    void *dst, const void *const src[], int nsrc,
                    size_t count);
void dtn_reduce_naive(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *dst, const void *const src[], int nsrc,
                      size_t count);

/* reduce_ends.c: array[i] /= n; integers round toward zero. */
void dtn_scale(enum dtensor_dtype dtype, void *array, size_t count, int n);

/* array[i] = the neutral element of op: 0 (of floats -0, which changes no
 * zero's sign), 1, +inf or type maximum, ...  A complex 1 changes the sign of
 * some zeros and makes a NaN of an infinity, as multiplication is defined.
 */
void dtn_fill_neutral(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *array, size_t count);

#endif
