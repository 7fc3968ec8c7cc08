/* defaults.c - table entries for transports that need no adopt or fetch
 *
 * A transport whose puts reach any memory has nothing to adopt; one that maps
 * nothing has nothing to fetch.
 */
#include "transport/transport.h"
#include "dtensor.h"

int dtn_adopt_any(struct dtn_transport *tp, void *mem, size_t size,
                  struct dtensor_error *err)
{
    return 0;
}

void dtn_disown_any(struct dtn_transport *tp, void *mem, size_t size)
{
}

int dtn_fetch_none(struct dtn_transport *tp, int peer, void *dst,
                   struct dtn_remote src, size_t size)
{
    return DTENSOR_EINVAL;
}
