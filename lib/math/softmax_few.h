/* softmax_few.h - softmax of columns of few elements */
#ifndef DTN_MATH_SOFTMAX_FEW_H
#define DTN_MATH_SOFTMAX_FEW_H

#include "math/softmax_columns.h"

#include <stdbool.h>
#include <stdint.h>

/* As dtn_softmax_columns(), for columns of up to DTN_SOFTMAX_FEW elements.  If
 * it returns 0, something may have been written: the result is not the input.
 */
enum { DTN_SOFTMAX_FEW = 8 };
int64_t dtn_softmax_few(bool logarithm, const struct dtn_columns *columns);

#endif
