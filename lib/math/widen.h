/* widen.h - bf16 and f16 as f32, and back */
#ifndef DTN_MATH_WIDEN_H
#define DTN_MATH_WIDEN_H

#include "dtensor.h"

#include <stdint.h>

/* n elements, rounded to the nearest, of two the even one. */
void dtn_widen_bf16(float *to, const uint16_t *from, int64_t n);
void dtn_narrow_bf16(uint16_t *to, const float *from, int64_t n);
void dtn_widen_f16(float *to, const uint16_t *from, int64_t n);
void dtn_narrow_f16(uint16_t *to, const float *from, int64_t n);

/* The same of `rows` times DTN_WIDEN_ROW elements of `dtype`, one of the two.
 * Rows of f32 have no gaps; the others are `apart` elements apart.
 */
enum { DTN_WIDEN_ROW = 32 };
void dtn_widen_rows(enum dtensor_dtype dtype, void *to, const void *from,
                    int64_t apart, int64_t rows);
void dtn_narrow_rows(enum dtensor_dtype dtype, void *to, int64_t apart,
                     const void *from, int64_t rows);

#endif
