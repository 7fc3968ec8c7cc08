/* complex.h - loops over complex numbers */
#ifndef DTN_MATH_COMPLEX_H
#define DTN_MATH_COMPLEX_H

#include "math/pointwise.h"

#include <stdint.h>

/* The loop of an operation on c128; NULL: it has no meaning for complex
 * numbers, or is not here.
 */
typedef void dtn_complex_f(void *to, const void *const in[], int64_t n,
                           const void *args);
dtn_complex_f *dtn_complex_loop(enum dtn_pointwise op);

#endif
