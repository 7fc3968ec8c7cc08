/* test_tcp_credit.c - when a rank tells a peer how much it has consumed
 *
 * The test is the peer, at the other end of a socket pair: it sends signals and
 * looks when a CREDIT comes back.
 *
 * Without this test, the calls that consume could pay for a CREDIT, as every
 * second broadcast of 32 KiB did.  A rank that waits could send one just when a
 * message arrives, as in each message of 32 KiB.  And a peer that has sent all
 * that it may could wait for a CREDIT that never comes.
 */
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"
#include "tests/transport/tcp_pair.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { HALF = DTN_QUEUE_DEPTH / 2, MUCH = DTN_QUEUE_DEPTH / 4 * 3,
       HALF_DATA = DTN_TCP_WINDOW / 2 / DTN_KEPT_MAX,
       SHORT = 1000, LONG = 10000 };      /* turns without an event           */

/* So many signals with `size` bytes of data come and are consumed. */
static void consume(int n, size_t size)
{
    static unsigned char bytes[sizeof(struct dtn_tcp_frame)
                               + DTN_TCP_SIGNAL_BYTES + DTN_KEPT_MAX];
    const struct dtn_signal signal = { .len = (uint32_t)size };
    const struct dtn_tcp_frame frame = {
        .kind = DTN_TCP_SIGNAL,
        .size = (uint32_t)(DTN_TCP_SIGNAL_BYTES + size)
    };
    const size_t whole = sizeof frame + frame.size;

    memcpy(bytes, &frame, sizeof frame);
    memcpy(bytes + sizeof frame, &signal, DTN_TCP_SIGNAL_BYTES);
    for (int i = 0; i < n; i++) {
        pair_arrive(bytes, whole);
        if (!dtn_tcp_peek(&pair.tcp->base, 1))
            exit(99);
        dtn_tcp_consume(&pair.tcp->base, 1);
    }
}

/* What the next CREDIT says; -1: none has come. */
static long credit(void)
{
    struct dtn_tcp_frame frame;

    return recv(pair.far, &frame, sizeof frame, 0) == (ssize_t)sizeof frame
           && frame.kind == DTN_TCP_CREDIT ? (long)frame.consumed : -1;
}

static void idle(int turns)
{
    for (int turn = 0; turn < turns; turn++)
        dtn_tcp_progress(&pair.tcp->base);
}

static void in_idle_turn(int n, size_t size)
{
    pair_open();
    consume(n - 1, size);
    idle(SHORT);
    ok(credit() == -1, "%d signals of %zu bytes and %d turns: no credit", n - 1,
       size, SHORT);
    consume(1, size);
    ok(credit() == -1, "one more: the call that consumed it sends no credit");
    dtn_tcp_progress(&pair.tcp->base);
    ok(credit() == n, "but the next turn does, as nothing arrives in it");
    idle(LONG);
    ok(credit() == -1, "and once only");
    pair_close();
}

int main(void)
{
    in_idle_turn(HALF, 0);
    in_idle_turn(HALF_DATA, DTN_KEPT_MAX);
    pair_open();
    consume(MUCH - 1, 0);
    ok(credit() == -1, "%d signals without a turn: no credit", MUCH - 1);
    consume(1, 0);
    ok(credit() == MUCH, "%d: at once, before the peer has to wait", MUCH);
    consume(1, 0);
    idle(LONG);
    ok(credit() == MUCH + 1, "one, and a rank that is idle: then, too");
    pair_close();
    return done();
}
