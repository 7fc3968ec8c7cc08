/* plan_text.h - the texts of a redistribute for logs and errors */
#ifndef DTN_REDIST_PLAN_TEXT_H
#define DTN_REDIST_PLAN_TEXT_H

#include "base/compiler.h"

struct dtensor_plan;

/* Write the beginning of `text`, and `call`. */
void dtn_redist_title(struct dtensor_plan *plan);

/* Append to `text`; what does not fit is cut off. */
void dtn_redist_text_add(struct dtensor_plan *plan, const char *fmt, ...)
    DTN_PRINTF(2, 3);

#endif
