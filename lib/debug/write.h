/* write.h - private to this room: parts of what is written */
#ifndef DTN_DEBUG_WRITE_H
#define DTN_DEBUG_WRITE_H

#include "dtensor.h"

#include <stdio.h>

struct dtn_line;

/* What a line is, as fields of JSON: direction, tensors, why. */
void dtn_write_line_fields(const struct dtn_line *line, FILE *stream);

/* 0, or ESYS if something could not be written. */
int dtn_write_end(const char *what, FILE *stream, struct dtensor_error *err);

#endif
