/* fingerprint.c - a 64-bit fingerprint of a call
 *
 * Ranks compare fingerprints to find out that they made different calls.  Four
 * bits name the collective, five the dtype and four the reduction, so that an
 * error can show both sides of a mismatch.  The other 51 bits are a hash of
 * everything else: counts, root, ranks, the number of the call, the size of a
 * message, both specs of a redistribute.  Two calls that differ only in the
 * hash look equal once in 2*10^15 times.  The hash does not show the values
 * that users want to read.  So each rank keeps the values of its last 16 calls
 * (struct dtn_call_record) and sends them to the others after a mismatch.
 */
#include "sched/fingerprint.h"
#include "base/dtype.h"
#include "sched/call.h"
#include "dtensor.h"

#include <stdbool.h>

enum {
    REDOP_AT = DTN_FINGERPRINT_HASH_BITS,
    DTYPE_AT = REDOP_AT + DTN_FINGERPRINT_REDOP_BITS,
    COLL_AT = DTYPE_AT + DTN_FINGERPRINT_DTYPE_BITS
};
#define BITS(n) ((UINT64_C(1) << (n)) - 1)

_Static_assert(COLL_AT + DTN_FINGERPRINT_COLL_BITS == 64
               && DTN_NCOLLS <= 1 << DTN_FINGERPRINT_COLL_BITS
               && DTENSOR_NDTYPES <= 1 << DTN_FINGERPRINT_DTYPE_BITS
               && DTN_NREDOPS <= 1 << DTN_FINGERPRINT_REDOP_BITS,
               "each fits its bits");

uint64_t dtn_fingerprint(enum dtn_coll coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint64_t hash)
{
    return (uint64_t)coll << COLL_AT | (uint64_t)dtype << DTYPE_AT
         | (uint64_t)dtn_redop_kind(redop) << REDOP_AT
         | (dtn_fingerprint_hash(DTN_MIX_CALL, hash)
            & BITS(DTN_FINGERPRINT_HASH_BITS));
}

uint64_t dtn_fingerprint_dtype(enum dtensor_dtype dtype)
{
    return (uint64_t)dtype << DTYPE_AT;
}

enum dtn_coll dtn_fingerprint_coll(uint64_t fingerprint)
{
    return (enum dtn_coll)(fingerprint >> COLL_AT);
}

enum dtensor_dtype dtn_fingerprint_dtype_of(uint64_t fingerprint)
{
    return (enum dtensor_dtype)(fingerprint >> DTYPE_AT
                                & BITS(DTN_FINGERPRINT_DTYPE_BITS));
}

size_t dtn_fingerprint_size(uint64_t fingerprint)
{
    const size_t size =
        dtensor_dtype_size(dtn_fingerprint_dtype_of(fingerprint));

    return size > 0 ? size : 1;
}

enum dtensor_redop dtn_fingerprint_redop(uint64_t fingerprint)
{
    return (enum dtensor_redop)(fingerprint >> REDOP_AT
                                & BITS(DTN_FINGERPRINT_REDOP_BITS));
}
