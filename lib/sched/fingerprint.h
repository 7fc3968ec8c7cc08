/* fingerprint.h - a call of a rank in 64 bits */
#ifndef DTN_SCHED_FINGERPRINT_H
#define DTN_SCHED_FINGERPRINT_H

#include "sched/call.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* The call of a rank in 64 bits: collective, dtype and reduction in readable
 * form (so that an error can show both sides of a mismatch), and a 51-bit hash
 * of everything else.  Values that are known later are mixed into the hash,
 * each kind with a hash of its own, so that a size is not taken for a number.
 */
enum {
    DTN_FINGERPRINT_HASH_BITS = 51,       /* the lowest; then, upward:         */
    DTN_FINGERPRINT_REDOP_BITS = 4,
    DTN_FINGERPRINT_DTYPE_BITS = 5,
    DTN_FINGERPRINT_COLL_BITS = 4
};
uint64_t dtn_fingerprint(enum dtn_coll coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint64_t hash);
uint64_t dtn_fingerprint_dtype(enum dtensor_dtype dtype);  /* the bits of it   */
enum dtn_coll dtn_fingerprint_coll(uint64_t fingerprint);
enum dtensor_dtype dtn_fingerprint_dtype_of(uint64_t fingerprint);
enum dtensor_redop dtn_fingerprint_redop(uint64_t fingerprint);
size_t dtn_fingerprint_size(uint64_t fingerprint);     /* of an element, >= 1  */

enum dtn_mix {
    DTN_MIX_CALL,                /* all that is known when a plan is made     */
    DTN_MIX_NUMBER,              /* of a call over its ranks                  */
    DTN_MIX_BYTES,               /* that go between two ranks                 */
    DTN_MIX_MESSAGE,             /* its count, and those before it            */
    DTN_MIX_TURN                 /* the number of a message between two ranks */
};

/* Different values have different hashes (before they are cut to fit): the
 * finalizer of SplitMix64, 2 multiplications.
 */
static inline uint64_t dtn_fingerprint_hash(enum dtn_mix part, uint64_t value)
{
    value += ((uint64_t)part + 1) * UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* What to xor a fingerprint with for a part of it. */
static inline uint64_t dtn_fingerprint_mix(enum dtn_mix part, uint64_t value)
{
    return dtn_fingerprint_hash(part, value)
        >> (64 - DTN_FINGERPRINT_HASH_BITS);
}

static inline uint64_t dtn_fingerprint_numbered(uint64_t fingerprint,
                                                uint32_t number)
{
    return fingerprint ^ dtn_fingerprint_mix(DTN_MIX_NUMBER, number);
}

#endif
