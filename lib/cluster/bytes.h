/* bytes.h - a cluster file as bytes */
#ifndef DTN_CLUSTER_BYTES_H
#define DTN_CLUSTER_BYTES_H

#include "dtensor.h"

#include <stddef.h>

struct dtn_findings;

/* Read the file at findings->path.  *bytesp gets *np bytes and a NUL; the
 * caller frees it.
 *
 * Errors: ESYS  it cannot be read;  ECONF  it is no regular file, or too
 *         large;  ENOMEM.  All but ENOMEM have been reported.
 */
int dtn_bytes_read(struct dtn_findings *findings, char **bytesp, size_t *np,
                   struct dtensor_error *err);

/* Index of the first byte that is not printable UTF-8, or -1. */
int dtn_bytes_bad(const char *text, size_t n);

#endif
