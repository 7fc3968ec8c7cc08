/* fingerprint.c - what a rank is doing, in 32 bits
 *
 * Four bits name the collective, five the dtype and four the reduction, so that
 * both sides of a mismatch can be worded; nineteen hold a hash of the rest
 * (counts, root, ranks).  Two calls that differ only there collide once in half
 * a million.
 */
#include "coll/coll.h"

_Static_assert(DTN_NCOLLS <= 16 && DTENSOR_NDTYPES <= 32
               && DTN_NREDOPS <= 16, "each fits its bits");

uint32_t dtn_fingerprint(int coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint32_t hash)
{
    return (uint32_t)coll << 28 | (uint32_t)dtype << 23 | (uint32_t)dtn_redop_kind(redop) << 19
         | ((hash ^ hash >> 19) & 0x7ffff);
}

/* The odd constant, 2^64 over the golden ratio, spreads small numbers. */
uint32_t dtn_fingerprint_mix(uint32_t fingerprint, size_t more)
{
    return fingerprint ^ (uint32_t)(((uint64_t)more
                                     * UINT64_C(0x9e3779b97f4a7c15)) >> 45);
}

char *dtn_fingerprint_words(uint32_t fingerprint, char *buf, size_t size)
{
    enum dtn_coll coll = (enum dtn_coll)(fingerprint >> 28);
    bool reduces = coll < DTN_NCOLLS && dtn_shapes[coll].reduces;

    if (coll == DTN_COLL_BARRIER)
        snprintf(buf, size, "barrier");
    else
        snprintf(buf, size, "%s of %s%s%s", dtn_coll_name(coll),
                 dtensor_dtype_name((enum dtensor_dtype)(fingerprint >> 23
                                                         & 31)),
                 reduces ? " " : "", reduces ? dtensor_redop_name(
                 (enum dtensor_redop)(fingerprint >> 19 & 15)) : "");
    return buf;
}
