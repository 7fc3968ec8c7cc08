/* tcp.h - private to the tcp transport
 *
 *     tcp.c           the table: open, close, health, abort
 *     tcp/address.c   addresses as text
 *     tcp/connect.c   connections
 *     tcp/probe.c     is a peer still there?
 *     tcp/region.c    memory that peers may write
 *     tcp/stream.c    the socket of a peer
 *     tcp/send.c      frames to a peer
 *     tcp/receive.c   frames from a peer
 *     tcp/progress.c  progress on the sockets of all peers
 */
#ifndef DTN_TCP_H
#define DTN_TCP_H

#include "base/seal.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct dtn_log;
struct dtn_transport_conf;

#define DTN_TCP_MAGIC UINT64_C(0x6474656e74637031)    /* "dtentcp1"           */
#define DTN_TCP_PUT_MAX ((size_t)8 << 20)     /* bytes of one PUT frame       */
#define DTN_TCP_ROW_BYTES ((size_t)4 << 10)   /* copying them at both ends    */
                                              /* takes 1.6 us, as one put     */
#define DTN_TCP_STAGE_BYTES ((size_t)72 << 10)        /* read ahead: the      */
                                              /* longest message and more     */
#define DTN_TCP_NAME_MAX (INET6_ADDRSTRLEN + 8)       /* of an address's text */

/* The bytes of a blob. */
struct dtn_tcp_address {
    uint64_t magic;               /* DTN_TCP_MAGIC                            */
    unsigned char key[DTN_SECRET_BYTES];  /* random; a hello to this rank     */
                                  /* proves that its sender has it            */
    uint32_t size;                /* bytes of `at`                            */
    struct sockaddr_storage at;   /* of the listener                          */
};

/* Every frame begins with this, in the byte order of the host.  If that of the
 * peer differs, the magic of its hello is wrong.
 */
enum dtn_tcp_kind {
    DTN_TCP_PUT = 1,
    DTN_TCP_SIGNAL,
    DTN_TCP_CREDIT,
    DTN_TCP_ABORT
};
struct dtn_tcp_frame {
    uint32_t kind;                /* enum dtn_tcp_kind                        */
    uint32_t size;                /* bytes that follow                        */
    uint64_t consumed;            /* signals that the sender has consumed     */
    uint64_t addr;                /* PUT: destination.  ABORT: the culprit    */
    uint64_t key;                 /* PUT: region.  ABORT: -code               */
};

/* A SIGNAL begins with these bytes; then come its data, if they are kept. */
#define DTN_TCP_SIGNAL_BYTES DTN_SIGNAL_BODY

/* Kept data of signals on their way to a peer, or not consumed there yet: no
 * more than the window.  They are contiguous, in a ring.  A message that does
 * not fit before the end of the ring begins at 0, so that less than the
 * longest message is lost there.
 */
#define DTN_TCP_WINDOW ((size_t)6 * DTN_KEPT_MAX)
#define DTN_TCP_KEPT_BYTES (DTN_TCP_WINDOW + DTN_KEPT_MAX)

/* The most that can wait to be sent: signals, which the peer's queue bounds;
 * two CREDITs, one of them half sent; and an ABORT.  Before them one frame that
 * is half sent: a PUT, whose bytes stay where they are, or kept data.
 */
#define DTN_TCP_AFTER_BYTES (DTN_QUEUE_DEPTH * (sizeof(struct dtn_tcp_frame) + \
                                                DTN_TCP_SIGNAL_BYTES) +        \
                             3 * sizeof(struct dtn_tcp_frame))
#define DTN_TCP_OUT_BYTES (sizeof(struct dtn_tcp_frame) + DTN_KEPT_MAX +       \
                           DTN_TCP_AFTER_BYTES)

enum dtn_tcp_state {
    DTN_TCP_NEW,                  /* not begun; or it has connected, as `fd`  */
    DTN_TCP_CONNECTING,           /* connect() was called                     */
    DTN_TCP_GREETED,              /* hello sent, the peer's is awaited        */
    DTN_TCP_UP,                   /* connected                                */
    DTN_TCP_DEAD                  /* closed                                   */
};

struct dtn_tcp_peer {
    int rank;                     /* of the peer                              */
    int fd;                       /* socket; -1: none                         */
    enum dtn_tcp_state state;     /* of the connection                        */
    bool send_failed;             /* nothing more is sent; reading goes on    */
    bool wants_write;             /* epoll watches until fd takes more bytes  */
    bool silent;                  /* closed because it did not answer         */

    /* Until it has connected. */
    struct sockaddr_storage at;   /* its listener                             */
    socklen_t at_size;            /* bytes of `at`; 0: not known yet          */
    unsigned char nonce[DTN_SECRET_BYTES];    /* random, of who connects      */
    int attempts;                 /* connections that were closed before an   */
                                  /* answer came                              */
    int probe;                    /* socket of a connection attempt; -1: none */
    int64_t probe_next_ns;        /* time of the next attempt                 */
    int64_t probe_pause_ns;       /* pause before it                          */

    /* Sending. */
    uint64_t sent;                /* signals sent, ever                       */
    uint64_t acked;               /* of them, consumed by the peer            */
    uint64_t credited;            /* `consumed`, as last sent to the peer     */
    size_t window_used;           /* kept data not consumed by the peer       */
    uint32_t sent_data[DTN_QUEUE_DEPTH];  /* its bytes of each signal         */
    size_t out_begin, out_end;    /* unsent bytes of out[]                    */
    unsigned char out[DTN_TCP_OUT_BYTES];     /* to be sent first             */
    const char *rest;             /* of a PUT, to be sent after out[]         */
    size_t rest_left;             /* its bytes                                */
    size_t after_begin, after_end;    /* unsent bytes of after[]              */
    unsigned char after[DTN_TCP_AFTER_BYTES];     /* to be sent after `rest`  */

    /* Receiving. */
    struct dtn_signal queue[DTN_QUEUE_DEPTH]; /* by number modulo its length  */
    uint64_t received;            /* signals received, ever                   */
    uint64_t consumed;            /* of them, consumed                        */
    uint64_t put_key;             /* region of the PUT that is received       */
    unsigned char *put_to;        /* destination of its next byte             */
    size_t put_left;              /* its bytes that have not come yet         */
    bool arriving;                /* they are kept data of the next signal,   */
                                  /* not of a PUT                             */
    struct dtn_tcp_kept {         /* of a signal:                             */
        uint32_t at;              /* place of its data in `kept`              */
        uint32_t size;            /* bytes; 0: none are kept                  */
    } data[DTN_QUEUE_DEPTH];      /* as in `queue`                            */
    size_t kept_used;             /* bytes of all of them                     */
    size_t kept_end;              /* where the next may begin                 */
    struct dtn_tcp_wanted {       /* the signal that is awaited next          */
        unsigned char *dst;       /* where its data may go; NULL: none is     */
        uint64_t fingerprint;     /* of it                                    */
        uint32_t tag, len;        /* of it                                    */
        bool found;               /* its data are there, or arrive there      */
    } wanted;
    size_t kept_owed;             /* bytes consumed since `credited` was sent */
    unsigned char kept[DTN_TCP_KEPT_BYTES];   /* ring of data                 */
    size_t begun;                 /* bytes of `frame`                         */
    unsigned char frame[sizeof(struct dtn_tcp_frame) + DTN_TCP_SIGNAL_BYTES];
                                  /* a frame whose head is not complete       */

    bool abort_sent;              /* this rank has told it that it gives up   */
    bool aborted;                 /* it has told that it gives up             */
    int abort_culprit;            /* if so, the rank that it blames           */
    int abort_code;               /* and why, DTENSOR_E...                    */
    struct dtn_tcp_peer *next_owed;   /* in tcp->owed                         */
    bool owed;                    /* it is in tcp->owed                       */
};

/* Memory that peers may write.  The key of its name is its index and, in the
 * upper half, `uses`; so a key that is no longer valid reaches nothing.
 */
struct dtn_tcp_region {
    unsigned char *mem;           /* begin                                    */
    size_t size;                  /* bytes                                    */
    uint32_t uses;                /* times it was registered or unregistered, */
                                  /* in 31 bits; odd: it is registered        */
    int next_free;                /* index of the next free region, or -1     */
};

/* A connection whose hello has not come. */
struct dtn_tcp_guest {
    int fd;                       /* its socket                               */
    int64_t since_ns;             /* when it was accepted                     */
};
#define DTN_TCP_GUESTS 64

/* The last PUT, not sent yet: it goes with the signal that comes next. */
struct dtn_tcp_held {
    struct dtn_tcp_peer *peer;    /* whose it is; NULL: there is none         */
    struct dtn_remote dst;        /* its destination                          */
    const void *src;              /* its bytes; they do not change            */
    size_t size;                  /* at most DTN_TCP_PUT_MAX                  */
};

struct dtn_tcp {
    struct dtn_transport base;    /* the table's part                         */
    struct dtn_log *log;          /* where messages go                        */
    int nranks;                   /* of the world                             */
    int rank;                     /* this rank                                */
    int listener;                 /* socket; -1: closed                       */
    int epoll;                    /* of the connected sockets                 */
    struct sockaddr_storage address;  /* of the listener                      */
    socklen_t address_size;       /* bytes of `address`                       */
    unsigned char key[DTN_SECRET_BYTES];  /* for hellos to this rank          */
    int nguests;                  /* guests in use                            */
    struct dtn_tcp_guest guests[DTN_TCP_GUESTS];  /* [nguests]                */
    int nregions, first_free;     /* length of `regions`; its first free      */
                                  /* index, or -1                             */
    struct dtn_tcp_region *regions;   /* [nregions]                           */
    struct dtn_tcp_held held;     /* the put that waits for a signal          */
    unsigned char stage[DTN_TCP_STAGE_BYTES]; /* what one read took beside    */
                                  /* the rest of a PUT or of data             */
    struct dtn_tcp_peer *owed;    /* list of peers that do not know what this */
                                  /* rank consumed                            */
    bool owes_half;               /* one of them is owed half of its credit   */
    int idle_turns;               /* calls of progress() without events       */
    const struct dtn_transport_conf *conf;    /* of the cluster file          */
    int64_t dead_after_ms;        /* silence after which a peer is given up   */
    struct dtn_tcp_peer **peers;  /* [nranks] sparse; NULL until connect()    */
};

static inline struct dtn_tcp *dtn_tcp_of(const struct dtn_transport *tp)
{
    return (struct dtn_tcp *)(uintptr_t)tp;
}

/* "10.0.0.1:4711", in buf of DTN_TCP_NAME_MAX bytes: tcp/address.c */
const char *dtn_tcp_address_name(const struct sockaddr_storage *at, char *buf);

/* Close the listener and the connections without a hello: tcp/connect.c.  Who
 * connects from now on is refused at once.
 */
void dtn_tcp_deafen(struct dtn_tcp *tcp);

/* The first regions: tcp/region.c; false: out of memory. */
bool dtn_tcp_regions_make(struct dtn_tcp *tcp);

/* ------------------------------------------------------- tcp/probe.c --- */

/* Does the listener of a peer that has not connected refuse connections?  It
 * tries when it is time to.
 */
bool dtn_tcp_probe_refused(struct dtn_tcp_peer *p);

/* End an attempt. */
void dtn_tcp_probe_close(struct dtn_tcp_peer *p);

/* Has this connected peer acknowledged nothing for dead_after, although bytes
 * were sent to it again and again?
 */
bool dtn_tcp_probe_silent(const struct dtn_tcp *tcp,
                          const struct dtn_tcp_peer *p);

/* Does errno say nothing about the connection?  Then try again later. */
static inline bool dtn_tcp_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
           errno == ENOBUFS || errno == ENOMEM;
}

/* ------------------------------------------------------------- streams --- */

/* The peer is connected: watch its socket.   Errors: ESYS */
int dtn_tcp_stream_start(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* Close the socket.  Signals that were received can still be peeked. */
void dtn_tcp_stream_kill(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* Can bytes be sent to it? */
bool dtn_tcp_stream_is_open(const struct dtn_tcp_peer *p);

/* Watch until the socket takes more bytes, or no longer. */
void dtn_tcp_stream_want_write(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                               bool want);

/* Read and execute what has come. */
void dtn_tcp_stream_receive(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* Send all that is unsent of signals and puts: 0, EAGAIN or EPEER. */
int dtn_tcp_stream_push(struct dtn_tcp *tcp, struct dtn_tcp_peer *p);

/* What is unsent of this peer's puts has been sent, or never will be. */
static inline void dtn_tcp_stream_release(struct dtn_tcp *tcp,
                                          struct dtn_tcp_peer *p)
{
    p->rest_left = 0;
    p->after_begin = p->after_end = 0;
    if (tcp->held.peer == p)
        tcp->held.peer = NULL;
}

/* Wait, at most a second, until living peers have what was sent to them. */
void dtn_tcp_stream_linger(struct dtn_tcp *tcp);

/* Send ABORT, best effort, also to a peer whose hello is awaited. */
void dtn_tcp_stream_abort(struct dtn_tcp *tcp, struct dtn_tcp_peer *p,
                          int culprit, int code);

/* Send CREDIT to the peers of tcp->owed that are owed so many quarters of all
 * their credit, or more.  The others stay, and those that cannot take it.
 */
void dtn_tcp_credit_all(struct dtn_tcp *tcp, unsigned quarters);

/* Entries of the table. */
int dtn_tcp_connect(struct dtn_transport *tp, int peer,
                    const struct dtn_blob *blob, struct dtensor_error *err);
int dtn_tcp_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                const void *src, size_t size, size_t *done);
int dtn_tcp_flush(struct dtn_transport *tp, int peer);
int dtn_tcp_reg(struct dtn_transport *tp, void *mem, size_t size,
                struct dtn_remote *remote);
void dtn_tcp_unreg(struct dtn_transport *tp, struct dtn_remote remote);
int dtn_tcp_signal(struct dtn_transport *tp, int peer,
                   const struct dtn_signal *signal,
                   const struct dtn_eager *data);
const struct dtn_signal *dtn_tcp_peek(struct dtn_transport *tp, int peer);
const void *dtn_tcp_kept(struct dtn_transport *tp, int peer);
void dtn_tcp_expect(struct dtn_transport *tp, int peer,
                    const struct dtn_signal *signal, void *dst);
void dtn_tcp_consume(struct dtn_transport *tp, int peer);
int dtn_tcp_progress(struct dtn_transport *tp);

#endif
