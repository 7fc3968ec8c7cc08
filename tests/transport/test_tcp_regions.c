/* test_tcp_regions.c - the names of memory that is registered again and again
 *
 * A name contains how often its entry of the table was used, in 31 bits.  The
 * test begins shortly before they are used up.
 *
 * Without this test, a job that has run for some hours could fail in each call
 * over tcp, because the names of its buffers seem to be those of a device.
 */
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"
#include "tests/transport/tcp_pair.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static unsigned char place[64];

static struct dtn_remote named(void)
{
    struct dtn_remote name = { 0, 0 };

    if (dtn_tcp_reg(&pair.tcp->base, place, sizeof place, &name) != 0)
        exit(99);
    return name;
}

/* Do bytes arrive there that the peer puts to that name? */
static bool reached(struct dtn_remote name)
{
    const struct dtn_tcp_frame frame = {
        .kind = DTN_TCP_PUT, .size = sizeof place, .addr = name.addr,
        .key = name.key
    };
    unsigned char bytes[sizeof frame + sizeof place];

    memcpy(bytes, &frame, sizeof frame);
    memset(bytes + sizeof frame, 7, sizeof place);
    memset(place, 0, sizeof place);
    pair_arrive(bytes, sizeof bytes);
    return memcmp(place, bytes + sizeof frame, sizeof place) == 0;
}

int main(void)
{
    struct dtn_remote last, first;

    pair_open();
    pair.tcp->first_free = -1;
    if (!dtn_tcp_regions_make(pair.tcp))
        exit(99);
    pair.tcp->regions[0].uses = INT32_MAX - 1;
    last = named();
    ok(!(last.key & DTN_KEY_DEVICE) && reached(last),
       "the last name of an entry is not one of a device, and is reached");
    dtn_tcp_unreg(&pair.tcp->base, last);
    first = named();
    ok(!(first.key & DTN_KEY_DEVICE) && reached(first),
       "nor is the name after it");
    ok(first.key != last.key, "which is another one");
    ok(!reached(last), "the last one is not valid any more");
    free(pair.tcp->regions);
    pair_close();
    return done();
}
