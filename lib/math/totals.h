/* totals.h - what a block of floats comes to */
#ifndef DTN_MATH_TOTALS_H
#define DTN_MATH_TOTALS_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* `total` is what came before the block; x are its n elements, of f32 or f64,
 * or, if dtn_total_narrow(), of bf16 or f16.  They are added in an order that
 * depends on n only, not on the CPU.
 */
enum dtn_total {
    DTN_TOTAL_SUM,                /* total + the sum of x                     */
    DTN_TOTAL_PROD,               /* total times the product of x             */
    DTN_TOTAL_MAX,                /* the larger; a NaN anywhere gives a NaN   */
    DTN_TOTAL_MIN,
    DTN_TOTAL_COUNT,              /* total + how many differ from 0           */
    DTN_TOTAL_ABS,                /* total + the sum of |x|                   */
    DTN_TOTAL_SQUARES,            /* total + the sum of (x - middle)^2        */
    DTN_TOTAL_MOST,               /* the larger of total and |x|              */
    DTN_TOTAL_LEAST,              /* the smaller                              */
    DTN_TOTAL_EXP,                /* total + the sum of exp(x - middle), of   */
                                  /* which none is above 0                    */
    DTN_TOTAL_POWERS,             /* total + the sum of |x|^middle            */
    DTN_TOTALS
};
bool dtn_total_narrow(enum dtn_total kind);
double dtn_total(enum dtn_total kind, enum dtensor_dtype work, const void *x,
                 int64_t n, double total, double middle);

/* The same of any number of elements, DTN_BLOCK after DTN_BLOCK. */
double dtn_total_row(enum dtn_total kind, enum dtensor_dtype work,
                     const void *x, int64_t n, double total, double middle);

/* The same of several rows: element i of row r is x[r apart + i], and total[r]
 * is its total; the middle is 0.
 */
void dtn_total_rows(enum dtn_total kind, enum dtensor_dtype work, const void *x,
                    int64_t apart, int64_t rows, int64_t n, double total[]);

/* n totals of nothing: 0, 1 or an infinity. */
void dtn_total_begin(enum dtn_total kind, int64_t n, double total[]);

/* As dtn_total(), of several columns at once: element i of column k is
 * x[i apart + k], and total[k] is its total; the middle is 0.  Loops take
 * DTN_TOTAL_COLUMNS columns at a time, of bf16 and f16 DTN_TOTAL_WIDE.
 * Sums have the bits that they have as rows.  Not for EXP and POWERS.
 */
enum { DTN_TOTAL_COLUMNS = 64, DTN_TOTAL_WIDE = 256 };
void dtn_total_columns(enum dtn_total kind, enum dtensor_dtype work,
                       const void *x, int64_t apart, int64_t n, int64_t width,
                       double total[]);

/* As DTN_TOTAL_EXP, and made[i] = exp(x[i] - middle); `made` may be x. */
double dtn_total_exp(enum dtensor_dtype work, void *made, const void *x,
                     int64_t n, double total, double middle);

/* The first i with x[i] equal to `value`, which may be a NaN; n: there is none.
 */
int64_t dtn_total_place(enum dtensor_dtype work, const void *x, int64_t n,
                        double value);

#endif
