/* test_tcp_halves.c - data of a signal that come in two halves
 *
 * A rank awaits a signal at `place`.  When the first half of its data is there,
 * it gives the wait up, as it does when the call has failed; then the rest
 * comes.  The test itself is the peer, at the other end of a socket pair.
 *
 * Without this test, data could be written to memory that its owner has freed,
 * and the half that had come could be lost.
 */
#include "base/log.h"
#include "transport/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 20000 };

static unsigned char data[BYTES], place[BYTES], untouched[BYTES];

/* This rank, and its connection to the peer at the other end of fds[1]. */
static struct dtn_tcp_peer *peer;
static struct dtn_tcp *tcp;
static int fds[2];

static void open_pair(void)
{
    static struct dtn_tcp_peer *peers[2];
    static struct dtn_log quiet;

    tcp = calloc(1, sizeof *tcp);
    peer = calloc(1, sizeof *peer);
    if (!tcp || !peer || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
                                    fds) < 0)
        exit(99);
    peers[1] = peer;
    tcp->peers = peers;
    tcp->nranks = 2;
    tcp->log = &quiet;
    tcp->listener = -1;
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    peer->rank = 1;
    peer->fd = fds[0];
    peer->probe = -1;
    if (dtn_tcp_stream_start(tcp, peer) != 0)
        exit(99);
}

static void close_pair(void)
{
    dtn_tcp_stream_kill(tcp, peer);
    close(fds[1]);
    close(tcp->epoll);
    free(peer);
    free(tcp);
}

static void arrive(const void *bytes, size_t size)
{
    if (send(fds[1], bytes, size, 0) != (ssize_t)size)
        exit(99);
    dtn_tcp_stream_receive(tcp, peer);
}

static void head(const struct dtn_signal *signal)
{
    const struct dtn_tcp_frame frame = {
        .kind = DTN_TCP_SIGNAL, .size = DTN_TCP_SIGNAL_BYTES + BYTES
    };
    unsigned char bytes[sizeof frame + DTN_TCP_SIGNAL_BYTES];

    memcpy(bytes, &frame, sizeof frame);
    memcpy(bytes + sizeof frame, signal, DTN_TCP_SIGNAL_BYTES);
    arrive(bytes, sizeof bytes);
}

static bool shown(const struct dtn_signal *signal)
{
    const struct dtn_signal *seen = dtn_tcp_peek(&tcp->base, 1);

    return seen && seen->fingerprint == signal->fingerprint
        && memcmp(dtn_tcp_kept(&tcp->base, 1), data, BYTES) == 0;
}

int main(void)
{
    const struct dtn_signal signal = { .fingerprint = 4711, .tag = 3,
                                       .len = BYTES };

    for (size_t i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 7 + (i >> 8));
    open_pair();
    dtn_tcp_expect(&tcp->base, 1, &signal, place);
    head(&signal);
    arrive(data, BYTES / 2);
    ok(!dtn_tcp_peek(&tcp->base, 1) && memcmp(place, data, BYTES / 2) == 0,
       "what is awaited goes to its place before all of it has come");
    dtn_tcp_expect(&tcp->base, 1, NULL, NULL);
    memset(place, 0, sizeof place);
    arrive(data + BYTES / 2, BYTES - BYTES / 2);
    ok(memcmp(place, untouched, BYTES) == 0, "nothing is written there once "
       "nobody awaits it");
    ok(shown(&signal), "and both halves are kept");
    dtn_tcp_consume(&tcp->base, 1);

    dtn_tcp_expect(&tcp->base, 1, &signal, place);
    head(&signal);
    arrive(data, BYTES);
    ok(shown(&signal) && dtn_tcp_kept(&tcp->base, 1) == place,
       "a whole one is shown where it was awaited");
    dtn_tcp_expect(&tcp->base, 1, NULL, NULL);
    memset(place, 0, sizeof place);
    ok(shown(&signal), "and kept, if the place is taken back before it is "
       "consumed");
    close_pair();
    return done();
}
