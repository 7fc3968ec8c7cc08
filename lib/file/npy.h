/* npy.h - the header of a .npy file */
#ifndef DTN_FILE_NPY_H
#define DTN_FILE_NPY_H

#include "dtensor.h"

#include <stddef.h>

enum { DTN_NPY_MIN_BYTES = 10,    /* magic, version, length of the text       */
       DTN_NPY_MAX_BYTES = 4096 };   /* a longer header is refused            */

/* Write the header of a row-major array to buf[DTN_NPY_MAX_BYTES].  Returns its
 * bytes, a multiple of 64.
 */
size_t dtn_npy_format(const struct dtensor_meta *meta, char *buf);

/* Read the header at the start of `bytes` bytes.  *header_bytesp is where the
 * elements begin.  `what` begins the words of an error.  The strides are those
 * of a row-major array.
 *
 * Errors: EINVAL  it is none, or of an array that is not read here
 */
int dtn_npy_parse(const char *what, const char *buf, size_t bytes,
                  struct dtensor_meta *meta, size_t *header_bytesp,
                  struct dtensor_error *err);

#endif
