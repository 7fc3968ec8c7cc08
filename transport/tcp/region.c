/* region.c - memory that peers may write
 *
 * A table of ranges.  A peer names a range by its index and by the number of
 * times that this entry of the table was used.  So after a range was
 * unregistered, the name "index 3, second use" is invalid, even if entry 3 has
 * another range now.  The number of uses has 31 bits: with the 32nd a name
 * would have DTN_KEY_DEVICE.  A call registers its buffers each time, so a job
 * of a day can use all of them; then they begin again.
 */
#include "base/array.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define REGION_USES UINT32_C(0x7fffffff)

/* It is registered or unregistered. */
static void region_turn(struct dtn_tcp_region *region)
{
    region->uses = (region->uses + 1) & REGION_USES;
}

/* The index of a free entry of the table, or -1. */
static int region_slot(struct dtn_tcp *tcp)
{
    const int n = tcp->nregions;

    if (tcp->first_free >= 0)
        return tcp->first_free;
    if (!dtn_array_reserve(&tcp->regions, &tcp->nregions, n + 1,
                           sizeof *tcp->regions))
        return -1;
    for (int i = n; i < tcp->nregions; i++)
        tcp->regions[i] = (struct dtn_tcp_region){
            .next_free = i + 1 < tcp->nregions ? i + 1 : -1
        };
    tcp->first_free = n;
    return n;
}

bool dtn_tcp_regions_make(struct dtn_tcp *tcp)
{
    return region_slot(tcp) >= 0;
}

int dtn_tcp_reg(struct dtn_transport *tp, void *mem, size_t size,
                struct dtn_remote *remote)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    int slot = region_slot(tcp);
    struct dtn_tcp_region *region;

    if (slot < 0)
        return DTENSOR_ENOMEM;
    region = &tcp->regions[slot];
    tcp->first_free = region->next_free;
    region->mem = mem;
    region->size = size;
    region_turn(region);
    remote->addr = (uintptr_t)mem;
    remote->key = (uint64_t)region->uses << 32 | (uint32_t)slot;
    return 0;
}

void dtn_tcp_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
    struct dtn_tcp *tcp = dtn_tcp_of(tp);
    int slot = (int)(remote.key & UINT32_MAX);
    struct dtn_tcp_region *region = &tcp->regions[slot];

    region_turn(region);
    region->next_free = tcp->first_free;
    tcp->first_free = slot;
}
