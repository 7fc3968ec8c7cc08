/* sparse.h - a large array of which few entries are used */
#ifndef DTN_BASE_SPARSE_H
#define DTN_BASE_SPARSE_H

#include <stddef.h>

/* An array of n entries, all zero.  A page of it takes memory when something is
 * written there; reading takes none.  So an array with an entry for each rank
 * of a large job costs what the ranks cost that are talked to, and is indexed
 * like any other.  NULL: not enough memory or addresses.
 */
void *dtn_sparse_new(size_t n, size_t entry_bytes);

/* NULL is a no-op.  The numbers are those of dtn_sparse_new(). */
void dtn_sparse_free(void *array, size_t n, size_t entry_bytes);

/* The bytes of its pages that were written, or read, at least once. */
size_t dtn_sparse_resident(const void *array, size_t n, size_t entry_bytes);

#endif
