/* widen.h - bf16 and f16 as f32, and back */
#ifndef DTN_MATH_WIDEN_H
#define DTN_MATH_WIDEN_H

#include <stdint.h>

/* n elements, rounded to the nearest, of two the even one. */
void dtn_widen_bf16(float *to, const uint16_t *from, int64_t n);
void dtn_narrow_bf16(uint16_t *to, const float *from, int64_t n);
void dtn_widen_f16(float *to, const uint16_t *from, int64_t n);
void dtn_narrow_f16(uint16_t *to, const float *from, int64_t n);

#endif
