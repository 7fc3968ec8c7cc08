/* fingerprint.c - what a rank is doing, in 32 bits
 *
 * Four bits name the collective, five the dtype and four the reduction, so that
 * both sides of a mismatch can be worded; nineteen hold a hash of the rest
 * (counts, root, ranks).  Two calls that differ only there collide once in half
 * a million.
 */
#include "coll/coll.h"

static const char *const names[] = {
    [DTN_COLL_ALLREDUCE] = "allreduce", [DTN_COLL_REDUCE] = "reduce",
    [DTN_COLL_BROADCAST] = "broadcast", [DTN_COLL_ALLGATHER] = "allgather",
    [DTN_COLL_REDUCE_SCATTER] = "reduce_scatter",
    [DTN_COLL_ALL_TO_ALL] = "all_to_all", [DTN_COLL_BARRIER] = "barrier",
    [DTN_COLL_EXCHANGE] = "redistribute"
};

_Static_assert(DTN_NCOLLS <= 16 && DTENSOR_NDTYPES <= 32
               && DTENSOR_NREDOPS <= 16, "each fits its bits");

const char *dtn_coll_name(enum dtn_coll coll)
{
    return (unsigned)coll < DTN_NCOLLS ? names[coll] : "?";
}

uint32_t dtn_fingerprint(int coll, enum dtensor_dtype dtype,
                         enum dtensor_redop redop, uint32_t hash)
{
    return (uint32_t)coll << 28 | (uint32_t)dtype << 23 | (uint32_t)redop << 19
         | ((hash ^ hash >> 19) & 0x7ffff);
}

char *dtn_fingerprint_words(uint32_t fingerprint, char *buf, size_t size)
{
    enum dtn_coll coll = (enum dtn_coll)(fingerprint >> 28);
    bool reduces = coll == DTN_COLL_ALLREDUCE || coll == DTN_COLL_REDUCE
                || coll == DTN_COLL_REDUCE_SCATTER;

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
