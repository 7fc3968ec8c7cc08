/* memlock.h - how much memory this process may lock */
#ifndef DTN_TRANSPORT_MEMLOCK_H
#define DTN_TRANSPORT_MEMLOCK_H

#include <stddef.h>
#include <stdint.h>

#define DTN_MEMLOCK_UNLIMITED UINT64_MAX

/* Bytes that this process may lock: RLIMIT_MEMLOCK, or UNLIMITED where it has
 * CAP_IPC_LOCK.
 */
uint64_t dtn_memlock_bytes(void);

/* "unlimited" or "64.0 KiB". */
char *dtn_memlock_text(uint64_t bytes, char *buf, size_t size);

/* How to be allowed to lock more: the end of an error. */
const char *dtn_memlock_remedy(void);

/* Bytes that an rc transport of `nranks` with so many rails locks to open at
 * all, before any tensor; see dtensor-rdma(7).  0 without libibverbs.
 */
uint64_t dtn_memlock_need(int nranks, int nrails);

#endif
