/* fingerprint.h - a 64-bit fingerprint of a call */
#ifndef DTN_SCHED_FINGERPRINT_H
#define DTN_SCHED_FINGERPRINT_H

#include "sched/call.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* A call in 64 bits: collective, dtype and reduction in readable form, so that
 * an error can show both sides of a mismatch, and a 51-bit hash of everything
 * else.  Values that are known later are mixed into the hash.  Each kind of
 * value has its own hash, so that a size cannot look like a number.
 */
enum {
    DTN_FINGERPRINT_HASH_BITS = 51,       /* the lowest bits; above it:       */
    DTN_FINGERPRINT_REDOP_BITS = 4,
    DTN_FINGERPRINT_DTYPE_BITS = 5,
    DTN_FINGERPRINT_COLL_BITS = 4
};
uint64_t dtn_fingerprint(enum dtn_coll coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint64_t hash);
uint64_t dtn_fingerprint_dtype(enum dtensor_dtype dtype);  /* dtype bits      */
enum dtn_coll dtn_fingerprint_coll(uint64_t fingerprint);
enum dtensor_dtype dtn_fingerprint_dtype_of(uint64_t fingerprint);
enum dtensor_redop dtn_fingerprint_redop(uint64_t fingerprint);
size_t dtn_fingerprint_size(uint64_t fingerprint);     /* bytes of an         */
                                                       /* element, >= 1       */

enum dtn_mix {
    DTN_MIX_CALL,                /* what is known when a plan is made         */
    DTN_MIX_NUMBER,              /* sequence number of the call               */
    DTN_MIX_BYTES,               /* message size between two ranks            */
    DTN_MIX_MESSAGE,             /* count of a message, and those before      */
    DTN_MIX_TURN,                /* number of a message in its pair           */
    DTN_MIX_PLAN                 /* redistribute of which a call is a step    */
};

/* Different values have different 64-bit hashes (before they are cut to 51
 * bits).  This is the finalizer of SplitMix64, with 2 multiplications.
 */
static inline uint64_t dtn_fingerprint_hash(enum dtn_mix part, uint64_t value)
{
    value += ((uint64_t)part + 1) * UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* The bits to xor into a fingerprint for a value. */
static inline uint64_t dtn_fingerprint_mix(enum dtn_mix part, uint64_t value)
{
    return dtn_fingerprint_hash(part, value)
        >> (64 - DTN_FINGERPRINT_HASH_BITS);
}

/* The sizes of both blocks between two ranks: from the lower rank, and from the
 * higher one.
 */
static inline uint64_t dtn_fingerprint_blocks(uint64_t from_low,
                                              uint64_t from_high)
{
    return dtn_fingerprint_mix(DTN_MIX_BYTES, from_low)
         ^ dtn_fingerprint_mix(DTN_MIX_BYTES, ~from_high);
}

static inline uint64_t dtn_fingerprint_numbered(uint64_t fingerprint,
                                                uint32_t number)
{
    return fingerprint ^ dtn_fingerprint_mix(DTN_MIX_NUMBER, number);
}

#endif
