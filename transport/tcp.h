/* tcp.h - what tcp.c (connections), tcp_probe.c (of which there is none yet),
 * tcp_region.c (memory) and tcp_stream.c (frames) share
 */
#ifndef DTN_TCP_H
#define DTN_TCP_H

#include "transport/transport.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct dtn_log;
struct dtn_transport_conf;

#define DTN_TCP_PUT_MAX ((size_t)64 << 10)    /* bytes of one PUT frame       */
#define DTN_TCP_ROW_BYTES ((size_t)4 << 10)   /* copying them at both ends    */
/* takes 1.6 us, as long as one put          */
#define DTN_TCP_STAGE_BYTES ((size_t)8 << 10) /* read ahead at once           */
#define DTN_TCP_COOKIE_BYTES 16 /* of the secret that a hello shows          */

/* Every frame begins with this, in the byte order of the host: hello's magic
 * tells when that of the peer differs.
 */
enum dtn_tcp_kind {
    DTN_TCP_PUT = 1,
    DTN_TCP_SIGNAL,
    DTN_TCP_CREDIT,
    DTN_TCP_ABORT
};
struct dtn_tcp_frame {
    uint32_t kind;
    uint32_t size;                /* bytes that follow                        */
    uint64_t consumed;            /* signals the sender has consumed, ever    */
    uint64_t addr;                /* PUT: where to.  ABORT: the culprit       */
    uint64_t key;                 /* PUT: region.  ABORT: -code               */
};

#define DTN_TCP_SIGNAL_BYTES DTN_SIGNAL_BODY

/* What may be waiting to be sent: the rest of one PUT; and behind it, since
 * no second PUT begins before, signals, which are bounded by the peer's
 * queue, two CREDITs (one may be half sent) and an ABORT.
 */
#define DTN_TCP_OUT_BYTES (sizeof(struct dtn_tcp_frame) + DTN_TCP_PUT_MAX +   \
                           DTN_QUEUE_DEPTH * (sizeof(struct dtn_tcp_frame) +  \
                                              DTN_TCP_SIGNAL_BYTES) +         \
                           3 * sizeof(struct dtn_tcp_frame))

enum dtn_tcp_state {
    DTN_TCP_NEW,                  /* nothing yet, or a guest waits in fd      */
    DTN_TCP_CONNECTING,
    DTN_TCP_GREETED,              /* hello sent, reply awaited                */
    DTN_TCP_UP,
    DTN_TCP_DEAD
};

struct dtn_tcp_peer {
    int rank;
    int fd;                       /* -1: none                                 */
    enum dtn_tcp_state state;
    bool send_failed;             /* nothing more goes out; reading goes on   */
    bool wants_write;             /* epoll tells when it can be written       */
    bool silent;                  /* it was given up because it said nothing  */

    /* While it has not connected. */
    struct sockaddr_storage at;   /* where it listens                         */
    socklen_t at_size;            /* 0: not known yet                         */
    int probe;                    /* -1: none is under way                    */
    int64_t probe_next_ns;
    int64_t probe_pause_ns;

    /* Sending. */
    uint64_t sent;                /* signals                                  */
    uint64_t acked;               /* of them, consumed by the peer            */
    uint64_t credited;            /* of its signals, what we last told it     */
    size_t out_begin, out_end;    /* unsent bytes of out[]                    */
    unsigned char out[DTN_TCP_OUT_BYTES];

    /* Receiving. */
    struct dtn_signal queue[DTN_QUEUE_DEPTH];
    uint64_t received;            /* signals                                  */
    uint64_t consumed;
    uint64_t put_key;             /* the PUT being received                   */
    unsigned char *put_to;
    size_t put_left;
    size_t stage_begin, stage_end;    /* bytes read ahead, not yet looked at  */
    unsigned char stage[DTN_TCP_STAGE_BYTES];

    bool abort_sent;
    bool aborted;
    int abort_culprit;
    int abort_code;
    struct dtn_tcp_peer *next_owed; /* in tcp->owed */
    bool owed;
};

/* Memory that peers may write.  A remote's key is the index, and above it the
 * number of times the slot was used, so that an old key reaches nothing.
 */
struct dtn_tcp_region {
    unsigned char *mem;
    size_t size;
    uint32_t uses;                /* odd: registered                          */
    int next_free;
};

/* Somebody who connected and has not yet said who it is. */
struct dtn_tcp_guest {
    int fd;
    int64_t since_ns;
};
#define DTN_TCP_GUESTS 64

struct dtn_tcp {
    struct dtn_transport base;
    struct dtn_log *log;
    int nranks;
    int rank;
    int listener;
    int epoll;
    struct sockaddr_storage address;
    socklen_t address_size;
    unsigned char cookie[DTN_TCP_COOKIE_BYTES];
    int nguests;
    struct dtn_tcp_guest guests[DTN_TCP_GUESTS];
    int nregions, first_free;
    struct dtn_tcp_region *regions;
    struct dtn_tcp_peer *owed;    /* peers that do not know what we consumed  */
    int idle_turns;
    const struct dtn_transport_conf *conf;
    int dead_after_s;
    struct dtn_tcp_peer *peers[]; /* [nranks], NULL until connect()           */
};

/* --------------------------------------------------------- tcp_probe.c --- */

/* True when nobody listens any more where this peer, which has not connected
 * yet, said that it would.  Knocks when it is time to.
 */
bool dtn_tcp_probe_refused(struct dtn_tcp_peer *p);
void dtn_tcp_probe_close(struct dtn_tcp_peer *p);

/* True when what was sent to this peer, which is connected, is sent again and
 * again, and nothing came back for dead_after.
 */
bool dtn_tcp_probe_silent(const struct dtn_tcp *tcp,
                          const struct dtn_tcp_peer *p);

/* Has errno nothing to say about the connection, so that it can be tried again? */
static inline bool dtn_tcp_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
           errno == ENOBUFS || errno == ENOMEM;
}

/* -------------------------------------------------------- tcp_stream.c --- */

/* The peer is up: watch its socket.  0 or ESYS. */
int dtn_tcp_stream_start(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* Close the socket; what was received stays to be read. */
void dtn_tcp_stream_kill(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* Read and carry out what has come. */
void dtn_tcp_stream_receive(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* Send what waits in out[]: 0, EAGAIN or EPEER. */
int dtn_tcp_stream_push(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* Wait, at most a second, until living peers have what was sent to them. */
void dtn_tcp_stream_linger(struct dtn_tcp *tcp);

/* Best effort.  To a peer that was greeted and has not answered as well. */
void dtn_tcp_stream_abort(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                          int culprit, int code);

/* The entries of the table that are about streams. */
int dtn_tcp_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                const void *src, size_t size, size_t *done);
int dtn_tcp_flush(struct dtn_transport *tp, int peer);
int dtn_tcp_reg(struct dtn_transport *tp, void *mem, size_t size,
                struct dtn_remote *remote);
void dtn_tcp_unreg(struct dtn_transport *tp, struct dtn_remote remote);
bool dtn_tcp_room(struct dtn_transport *tp, int peer);
int dtn_tcp_signal(struct dtn_transport *tp, int peer,
                   const struct dtn_signal *signal);
const struct dtn_signal *dtn_tcp_peek(struct dtn_transport *tp, int peer);
void dtn_tcp_consume(struct dtn_transport *tp, int peer);
int dtn_tcp_progress(struct dtn_transport *tp);

#endif
