/* test_tcp_halves.c - data of a signal that come in two halves
 *
 * A rank awaits a signal at `place`.  When the first half of its data is there,
 * it gives the wait up, as it does when the call has failed; then the rest
 * comes.  The test itself is the peer, at the other end of a socket pair.
 *
 * Without this test, data could be written to memory that its owner has freed,
 * and the half that had come could be lost.
 */
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"
#include "tests/transport/tcp_pair.h"

#include <stdbool.h>
#include <string.h>

enum { BYTES = 20000 };

static unsigned char data[BYTES], place[BYTES], untouched[BYTES];

static void head(const struct dtn_signal *signal)
{
    const struct dtn_tcp_frame frame = {
        .kind = DTN_TCP_SIGNAL, .size = DTN_TCP_SIGNAL_BYTES + BYTES
    };
    unsigned char bytes[sizeof frame + DTN_TCP_SIGNAL_BYTES];

    memcpy(bytes, &frame, sizeof frame);
    memcpy(bytes + sizeof frame, signal, DTN_TCP_SIGNAL_BYTES);
    pair_arrive(bytes, sizeof bytes);
}

static bool shown(const struct dtn_signal *signal)
{
    const struct dtn_signal *seen = dtn_tcp_peek(&pair.tcp->base, 1);

    return seen && seen->fingerprint == signal->fingerprint
        && memcmp(dtn_tcp_kept(&pair.tcp->base, 1), data, BYTES) == 0;
}

int main(void)
{
    const struct dtn_signal signal = { .fingerprint = 4711, .tag = 3,
                                       .len = BYTES };

    for (size_t i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 7 + (i >> 8));
    pair_open();
    dtn_tcp_expect(&pair.tcp->base, 1, &signal, place);
    head(&signal);
    pair_arrive(data, BYTES / 2);
    ok(!dtn_tcp_peek(&pair.tcp->base, 1) && memcmp(place, data, BYTES / 2) == 0,
       "what is awaited goes to its place before all of it has come");
    dtn_tcp_expect(&pair.tcp->base, 1, NULL, NULL);
    memset(place, 0, sizeof place);
    pair_arrive(data + BYTES / 2, BYTES - BYTES / 2);
    ok(memcmp(place, untouched, BYTES) == 0, "nothing is written there once "
       "nobody awaits it");
    ok(shown(&signal), "and both halves are kept");
    dtn_tcp_consume(&pair.tcp->base, 1);

    dtn_tcp_expect(&pair.tcp->base, 1, &signal, place);
    head(&signal);
    pair_arrive(data, BYTES);
    ok(shown(&signal) && dtn_tcp_kept(&pair.tcp->base, 1) == place,
       "a whole one is shown where it was awaited");
    dtn_tcp_expect(&pair.tcp->base, 1, NULL, NULL);
    memset(place, 0, sizeof place);
    ok(shown(&signal), "and kept, if the place is taken back before it is "
       "consumed");
    pair_close();
    return done();
}
