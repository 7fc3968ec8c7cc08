/* view_exact.h - does every rank have the same elements before and after */
#ifndef TESTS_VIEW_EXACT_H
#define TESTS_VIEW_EXACT_H

#include "dtensor.h"

#include <stdbool.h>

/* Do the parts of `in` and of `out`, a view of it, have on every rank the same
 * elements in the same order, and each mesh dimension the same kind of terms?
 */
bool view_exact(const struct dtensor_spec *in, const struct dtensor_spec *out);

#endif
