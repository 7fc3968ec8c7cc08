/* stream.c - any frames on a connection of the tcp transport
 *
 * A peer that has connected puts into a region of this rank, signals and gives
 * up.  A put may write nowhere but into the region, and no more signals are
 * queued, nor data of them kept, than there is room for.
 *
 * A frame is in the input as kind, region, signals consumed, two bytes of size
 * and four of the place in the region; then its bytes.
 */
#include "base/log.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/fuzz/targets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 9, REGION = 512, GUARD = 64, SENT = 20 };

static void must(bool condition)
{
    if (!condition)
        abort();
}

static int32_t place_of(const uint8_t *at)
{
    int32_t place;

    memcpy(&place, at, sizeof place);
    return place;
}

/* Send the next frame; returns how many bytes of the input it took. */
static size_t frame_send(int fd, const unsigned char *region,
                         const uint8_t *data, size_t size)
{
    size_t length = (size_t)data[3] << 8 | data[4], sent = length;
    const struct dtn_tcp_frame frame = {
        .kind = data[0], .size = (uint32_t)length, .consumed = data[2],
        .addr = (uintptr_t)region + (uint64_t)(int64_t)place_of(data + 5),
        .key = (uint64_t)(data[1] >> 4) << 32 | (data[1] & 15)
    };

    sent = sent < size - HEAD ? sent : size - HEAD;
    if (send(fd, &frame, sizeof frame, MSG_NOSIGNAL) > 0 && sent > 0)
        sent = (size_t)(send(fd, data + HEAD, sent, MSG_NOSIGNAL) < 0 ? 0
                                                                      : sent);
    return HEAD + sent;
}

static bool kept_holds(const struct dtn_tcp_peer *peer,
                       const unsigned char *at, size_t size)
{
    return at >= peer->kept && size <= sizeof peer->kept
        && at <= peer->kept + sizeof peer->kept - size;
}

static void peer_turn(struct dtn_tcp *tcp, struct dtn_tcp_peer *peer)
{
    if (peer->fd >= 0)
        dtn_tcp_stream_receive(tcp, peer);
    must(peer->received - peer->consumed <= DTN_QUEUE_DEPTH
         && peer->acked <= peer->sent);
    must(peer->kept_used <= DTN_TCP_WINDOW);
    must(!peer->arriving || kept_holds(peer, peer->put_to, peer->put_left));
    if (peer->consumed < peer->received) {
        const struct dtn_tcp_kept *data =
            &peer->data[peer->consumed % DTN_QUEUE_DEPTH];

        must(data->size == 0 || kept_holds(peer, dtn_tcp_kept(&tcp->base, 1),
                                           data->size));
        dtn_tcp_consume(&tcp->base, 1);
    }
    must(!peer->aborted || (peer->abort_culprit >= -1
                            && peer->abort_culprit < tcp->nranks));
}

void fuzz_stream(const uint8_t *data, size_t size)
{
    static struct dtn_tcp_peer peer;
    static unsigned char mem[GUARD + REGION + GUARD], zeros[GUARD];
    struct dtn_tcp_region region = { mem + GUARD, REGION, 1, -1 };
    struct dtn_tcp_peer *peers[] = { NULL, &peer };
    struct dtn_tcp tcp = { .nranks = 2, .listener = -1, .nregions = 1,
                           .first_free = -1, .regions = &region,
                           .peers = peers };
    static struct dtn_log quiet;
    int fds[2];

    memset(&peer, 0, sizeof peer);
    memset(mem, 0, sizeof mem);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds)
         == 0);
    tcp.log = &quiet;
    tcp.epoll = epoll_create1(EPOLL_CLOEXEC);
    peer.rank = 1;
    peer.fd = fds[0];
    peer.probe = -1;
    peer.sent = SENT;
    must(tcp.epoll >= 0 && dtn_tcp_stream_start(&tcp, &peer) == 0);
    for (size_t at = 0; at + HEAD <= size && peer.fd >= 0;) {
        at += frame_send(fds[1], mem + GUARD, data + at, size - at);
        peer_turn(&tcp, &peer);
    }
    close(fds[1]);
    peer_turn(&tcp, &peer);
    must(memcmp(mem, zeros, GUARD) == 0
         && memcmp(mem + GUARD + REGION, zeros, GUARD) == 0);
    if (peer.fd >= 0)
        dtn_tcp_stream_kill(&tcp, &peer);
    close(tcp.epoll);
}
