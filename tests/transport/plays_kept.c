/* plays_kept.c - scenarios about data of a signal that the transport keeps */
#include "base/compiler.h"
#include "base/wait.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/wire.h"
#include "tests/transport/plays.h"
#include "tests/transport/windows.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* As many of the longest fill what a peer keeps. */
enum { FULL = DTN_TCP_WINDOW / DTN_KEPT_MAX };

/* Of one round all are sent before any is received, so together they fit in
 * what a transport has to keep of one peer: two of the longest.
 */
static const size_t bursts[][4] = {
    { DTN_KEPT_MAX, DTN_KEPT_MAX },
    { 45, 65535, 4096, 50000 },
    { 1, 8192, 64, 8153 },
    { 60001, 60002 },
    { 16384, 4097, 32768, 65000 },
    { DTN_KEPT_MAX },
};

static size_t kept_size(const struct wire *w, int round, int i)
{
    const size_t size = bursts[round % (int)DTN_COUNT(bursts)][i];
    const size_t most = w->tp->ops->kept_max;

    return size < most ? size : most;
}

static int kept_try(struct wire *w, int r, uint32_t number, const void *src,
                    size_t size)
{
    const struct dtn_signal signal = {
        .kind = dtn_signal_kind(3, (uint32_t)size), .fingerprint = number
    };
    const struct dtn_eager data = { { 0, 0 }, src, size };

    return w->tp->ops->signal(w->tp, r, &signal, &data);
}

/* The source is overwritten as soon as the signal is taken. */
static void kept_send(struct wire *w, unsigned char *src, int r,
                      uint32_t number, size_t size)
{
    struct dtn_wait wait = wire_patience(w);
    int rc;

    wire_fill(src, size, wire_seed(w->rank, r, (int)number));
    while ((rc = kept_try(w, r, number, src, size)) == DTENSOR_EAGAIN)
        wire_turn(w, &wait, "a signal with data to keep");
    need(rc == 0, "a signal with %zu bytes to keep: %s", size,
         dtensor_errname(rc));
    memset(src, 0xee, size);
}

static unsigned char place[DTN_KEPT_MAX + 1];

/* Some are awaited at `place`, some as another message, some not at all. */
static void kept_expect(struct wire *w, int r, uint32_t number, size_t size)
{
    struct dtn_signal signal = { .tag = 3, .len = (uint32_t)size,
                                 .fingerprint = number };

    memset(place, 0x77, sizeof place);
    if (number % 5 == 2)
        signal.fingerprint++;
    if (number % 5 == 3)
        signal.tag++;
    if (number % 5 != 4 && w->tp->ops->expect)
        w->tp->ops->expect(w->tp, r, &signal, place);
}

/* Only data that were awaited are at `place`, and nothing behind them. */
static void kept_unexpected(uint32_t number, size_t size, const void *data)
{
    const size_t from = data == place ? size : 0;

    need(data != place || number % 5 < 2, "signal %u is not the one awaited",
         number);
    for (size_t i = number % 5 < 2 ? size : from; i < sizeof place; i++)
        need(place[i] == 0x77, "signal %u wrote byte %zu of %zu", number, i,
             size);
}

/* The data stay until the signal is consumed, whatever else arrives. */
static void kept_receive(struct wire *w, int r, uint32_t number, size_t size)
{
    const uint32_t seed = wire_seed(r, w->rank, (int)number);
    struct dtn_wait wait = wire_patience(w);
    const struct dtn_signal *signal;
    size_t bad;

    kept_expect(w, r, number, size);
    while ((signal = w->tp->ops->peek(w->tp, r)) == NULL) {
        wire_turn(w, &wait, "a signal with kept data");
        if (number % 5 == 1 && w->tp->ops->expect)  /* perhaps half-way */
            w->tp->ops->expect(w->tp, r, NULL, NULL);
    }
    need(signal->fingerprint == number && signal->tag == 3 &&
         signal->len == size, "signal %u of rank %d has number %llu, tag %u "
         "and %u bytes", number, r, (unsigned long long)signal->fingerprint,
         (unsigned)signal->tag, (unsigned)signal->len);
    w->tp->ops->progress(w->tp);
    bad = wire_differs(w->tp->ops->kept(w->tp, r), size, seed);
    need(bad == size, "signal %u: byte %zu of %zu from rank %d is not what "
         "was sent", number, bad, size, r);
    kept_unexpected(number, size, w->tp->ops->kept(w->tp, r));
    w->tp->ops->consume(w->tp, r);
}

void play_kept(struct wire *w)
{
    static unsigned char src[DTN_KEPT_MAX];
    const int rounds = rounds_of(w->n <= 2 ? 300 : 60);

    for (int round = 0; w->tp->ops->kept && round < rounds; round++) {
        for (int i = 0; i < 4 && kept_size(w, round, i) > 0; i++)
            for (int r = 0; r < w->n; r++)
                if (r != w->rank)
                    kept_send(w, src, r, (uint32_t)(4 * round + i),
                              kept_size(w, round, i));
        for (int i = 0; i < 4 && kept_size(w, round, i) > 0; i++)
            for (int r = 0; r < w->n; r++)
                if (r != w->rank)
                    kept_receive(w, r, (uint32_t)(4 * round + i),
                                 kept_size(w, round, i));
    }
    wire_barrier(w);
}

/* More than a peer keeps is refused as often as it is asked, and other signals
 * still pass; once it has consumed, it is told, and the rest follows.  A peer
 * with room for the data of all signals in flight refuses none.
 */
void play_kept_full(struct wire *w)
{
    static unsigned char src[DTN_KEPT_MAX];
    const int peer = w->rank ^ 1;
    struct dtn_wait wait = wire_patience(w);
    uint32_t sent = 0;

    for (; w->tp->ops->kept_max == DTN_KEPT_MAX && peer < w->n && sent < FULL;
         sent++)
        kept_send(w, src, peer, sent, DTN_KEPT_MAX);
    wire_barrier(w);
    for (int i = 0; sent > 0 && i < 100; i++) {
        int rc = kept_try(w, peer, sent, src, 45);

        need(rc == DTENSOR_EAGAIN, "one byte more than is kept: %s",
             dtensor_errname(rc));
        wire_turn(w, &wait, "a peer that keeps enough");
    }
    wire_barrier(w);
    if (sent > 0)
        wire_signal(w, peer, 2, 7);
    for (uint32_t i = 0; i < sent; i++)
        kept_receive(w, peer, i, DTN_KEPT_MAX);
    if (sent > 0) {
        wire_await(w, peer, 2, 7);
        kept_send(w, src, peer, sent, DTN_KEPT_MAX);
        kept_receive(w, peer, sent, DTN_KEPT_MAX);
    }
    wire_barrier(w);
}
