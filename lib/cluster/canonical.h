/* canonical.h - the meaning of a file as text, and its digest */
#ifndef DTN_CLUSTER_CANONICAL_H
#define DTN_CLUSTER_CANONICAL_H

#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* The meaning of the file: one line "[section] key = value\n" for each key.
 * Keys that were not given have their defaults; lists of hosts and addresses
 * are expanded.  Two files that mean the same give the same text.  The caller
 * frees it.
 */
int dtn_cluster_canonical(const struct dtensor_cluster *cluster, char **textp,
                          struct dtensor_error *err);

/* xxh64 of that text. */
uint64_t dtn_digest(const char *text);

/* Write the first difference of two canonical texts to `buf`, such as
 * `[transport] port is 17800 there, 17801 here`.  "there" is `other`.
 */
char *dtn_canonical_diff(const char *mine, const char *other, char *buf,
                         size_t size);

#endif
