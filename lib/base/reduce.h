/* reduce.h - reductions of arrays */
#ifndef DTN_BASE_REDUCE_H
#define DTN_BASE_REDUCE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* A reduction of one type over ranks.  The caller's arrays hold *elements*.  A
 * *partial result*, of type `partial`, lies between two steps.  It is f32 if
 * floats of 16 and 8 bits are added, multiplied or given to a function of the
 * caller's; it has 64 or 128 bits if integers are averaged; else it has the
 * element's type.  So a result is rounded once, at the end, and no sum
 * overflows.  An element that comes in is *lifted*: converted to the
 * accumulator type and multiplied by `factor`.  A result that becomes an
 * element is *dropped*, that is finalised: divided by `divisor`, then rounded.
 */
struct dtn_reduction {
    enum dtensor_dtype dtype;     /* type of an element                       */
    enum dtensor_dtype partial;   /* type of a partial result                 */
    enum dtensor_dtype work;      /* type of the computation                  */
    enum dtensor_redop op;        /* a built-in one; AVG folds as SUM         */
    int divisor;                  /* of AVG the number of ranks, else 1       */
    double factor;                /* of a premultiplied sum, else 1           */
    dtensor_reduce_f *fn;         /* folds instead of `op`; or NULL           */
    void *arg;                    /* argument of `fn`                         */
};

/* The reduction of a built-in `op` over n ranks. */
struct dtn_reduction dtn_reduction(enum dtensor_dtype dtype,
                                   enum dtensor_redop op, int n);

/* Is an element changed when it becomes a partial result?  Is a partial result
 * of all terms changed when it becomes an element?
 */
bool dtn_reduction_converts(const struct dtn_reduction *how);
bool dtn_reduction_finalises(const struct dtn_reduction *how);

/* Elements that take as much memory as one partial result: 1, 2, 4 or 8. */
size_t dtn_reduction_ratio(const struct dtn_reduction *how);

/* dst[i] = src[0][i] op src[1][i] op ... op src[nsrc-1][i], folded from the
 * left in that order, nsrc >= 1.  `partial` says which of the arrays are
 * partial results; the others are elements.  dst may be the same array as a src
 * of the same kind; otherwise they do not overlap.
 *
 * For bool values of 0 and 1, SUM and MAX are "or", PROD and MIN are "and".
 * MIN and MAX keep the left of two equal values, such as -0 and +0.  A NaN that
 * two or more sources give is always the same positive quiet NaN; that of a
 * single source may be signalling.  The type has the operation: dtn_redop_ok()
 * was tested when the reduction was made.  The widest vectors of the CPU are
 * chosen at run time; every width gives the same bits.
 */
enum {
    DTN_PARTIAL_DST = 1,
    DTN_PARTIAL_FIRST = 2,                  /* src[0]                        */
    DTN_PARTIAL_REST = 4                    /* src[1] and all that follow    */
};
void dtn_fold(const struct dtn_reduction *how, unsigned partial, void *dst,
              const void *const src[], int nsrc, size_t count);

/* The loop dst[i] = a[i] op b[i] of `count` elements, if dtn_fold() of two
 * sources does nothing else; or NULL.  For callers that fold the same again.
 */
typedef void dtn_fold_f(void *dst, const void *a, const void *b, size_t count);
dtn_fold_f *dtn_fold_loop(const struct dtn_reduction *how, unsigned partial,
                          size_t count);

/* Is a single source copied unchanged? */
bool dtn_fold_moves(const struct dtn_reduction *how, unsigned partial);

/* dtn_fold() with one vector width, by number, narrowest first; and the name of
 * that width, or NULL if this CPU has no more.  For tests and measurements.
 */
void dtn_fold_width(int width, const struct dtn_reduction *how,
                    unsigned partial, void *dst, const void *const src[],
                    int nsrc, size_t count);
const char *dtn_reduce_width_name(int width);

/* reduce_ends.c: array[i] /= n; integers round toward zero. */
void dtn_scale(enum dtensor_dtype dtype, void *array, size_t count, int n);

/* array[i] = the neutral element of op: 0, 1, +inf, the type's maximum, ...
 * For floats the 0 is -0, which keeps the sign of every zero.  A product with a
 * complex 1 changes the sign of some zeros and turns an infinity into a NaN:
 * complex multiplication is defined so.
 */
void dtn_fill_neutral(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *array, size_t count);

#endif
