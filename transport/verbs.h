/* verbs.h - private to the verbs transport
 *
 * verbs_look.c    the devices there are, as facts (device.h)
 * verbs_device.c  open the one that device.c chose, and say so
 * verbs_rail.c    the devices of this rank, each with what hangs on it
 * verbs_limits.c  what the machine allows: locked memory, queue pairs, MTU
 * verbs_fail.c    what the device refused, with the limit that explains it
 * verbs_events.c  messages of the device itself, as words
 * verbs_memory.c  memory regions, registered once
 * verbs_keys.c    keys of a region on all rails, told to peers
 * verbs_meet.c    two ranks meet: queue pair numbers by datagram
 * verbs_probe.c   does the way carry packets as long as both ports say?
 * verbs_queue.c   queue pairs, posting in chains, completions
 * verbs_lane.c    the memory in which two ranks signal to each other
 * verbs_words.c   completion statuses as words
 * verbs_put.c     puts: over which rails, from where, until when
 * verbs_signal.c  signals: their room, and what orders them behind puts
 * verbs.c         the table
 */
#ifndef DTN_VERBS_H
#define DTN_VERBS_H

#include "base/compiler.h"
#include "cluster/cluster.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_transport_conf;
struct dtn_verbs_datagrams;

/* -------------------------------------------------------------- devices --- */

struct dtn_verbs;

/* What the device has said of itself so far. */
struct dtn_verbs_events {
    int number;                   /* of its messages                           */
    bool any;                     /* `last` is one that matters                */
    enum ibv_event_type last;     /* the worst of them                         */
    int rank;                     /* whose queue pair it is about, or -1       */
    int64_t at_ns;
    bool port_down;               /* PORT_ERR, and no PORT_ACTIVE since        */
    int64_t gid_gone_ns;          /* since when our GID was missing; 0: is not */
};

struct dtn_verbs_device {
    struct ibv_context *context;
    char name[IBV_SYSFS_NAME_MAX];
    int port;
    bool ethernet;                /* RoCE: addressed by GID; else by LID       */
    uint16_t lid;
    uint16_t pkey_index;
    int gid_index;                /* -1: LID only                              */
    union ibv_gid gid;
    enum ibv_mtu mtu;             /* active                                    */
    int rate_mbps;                /* 0: not known                              */
    int max_inline;               /* learnt from the first queue pair          */
    int max_pieces;               /* of one write's source                     */
    int max_cqe;
    int max_qp;
    bool one_packet;              /* repeats longer requests wrongly           */
    struct dtn_verbs_events events;
};

/* Open the device and port `name`, and the GID and partition that args and the
 * cluster file name, or the best there are, and log the choice.
 * Errors: ENODEV, ENOMEM, ESYS
 */
int dtn_verbs_device_open(const struct dtn_open_args *args, const char *name,
                          struct dtn_verbs_device *device,
                          struct dtensor_error *err);
void dtn_verbs_device_close(struct dtn_verbs_device *device);

/* Will what this machine allows do for `verbs`, whose devices are open?  ENOMEM
 * when it cannot; what may become narrow later is logged.
 */
int dtn_verbs_limits_check(const struct dtn_verbs *verbs,
                           struct dtensor_error *err);

/* May `size` bytes more be locked?   Errors: ENOMEM, with both numbers */
int dtn_verbs_limits_more(const struct dtn_verbs *verbs, size_t size,
                          struct dtensor_error *err);

/* Word that registering `size` bytes failed with `sys_errno`. */
int dtn_verbs_fail_register(const struct dtn_verbs_device *device, size_t size,
                            int sys_errno, struct dtensor_error *err);

/* "fe80::1" or "10.1.2.3" of a GID. */
char *dtn_verbs_gid_text(const union ibv_gid *gid, char *buf, size_t size);

/* ---------------------------------------------------------------- rails --- */

/* A device that carries bytes of this rank, and what hangs on it.  Rail k of
 * one rank talks to rail k of another; what has no size to speak of, signals
 * above all, goes by rail 0.
 */
struct dtn_verbs_rail {
    int number;
    struct dtn_verbs_device device;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    int cqe;                      /* completions it holds                      */
    int outstanding;              /* requests that may yet complete            */
    unsigned signalled_every;     /* so many ask for a completion              */
    uint64_t put_bytes;           /* counter: puts posted on it                */
};

/* Open the devices that args name, and say so; close what there is. */
int dtn_verbs_rails_open(struct dtn_verbs *verbs, struct dtensor_error *err);
void dtn_verbs_rails_close(struct dtn_verbs *verbs);

/* --------------------------------------------------------------- memory --- */

#define DTN_VERBS_ADOPTED UINT64_MAX /* the user's: stays until disowned */

/* A range that the devices know. */
struct dtn_verbs_region {
    unsigned char *start;
    size_t size;
    struct ibv_mr *mr[DTN_MAX_RAILS];
    int row;                      /* of its keys: see verbs_keys.c; -1: none   */
    int names;                    /* given out and not taken back              */
    uint64_t used;            /* clock of the last use, or DTN_VERBS_ADOPTED */
};

/* The keys of regions on all rails, a row for each, as peers are told. */
struct dtn_verbs_keys {
    int nrails;
    uint32_t *key;            /* [DTN_VERBS_REGIONS][nrails]; NULL: one rail */
    struct ibv_mr *mr;            /* of that, on rail 0                        */
    uint64_t version;             /* rows written, ever                        */
    uint64_t *written;        /* [DTN_VERBS_REGIONS] the version; 0: never */
    bool *taken;              /* [DTN_VERBS_REGIONS] */
};

struct dtn_verbs_memory {
    struct dtn_verbs_rail *rails;
    int nrails;
    struct dtn_arena *arena;
    uint64_t clock;
    int n, capacity;
    struct dtn_verbs_region
        *regions; /* sorted by start                           */
    uint64_t bytes;               /* in all regions, for each rail             */
    const struct dtn_verbs_rail *refused; /* by which registering failed */
    unsigned long registered;     /* counters, for the log and tests           */
    unsigned long hits;
    struct dtn_verbs_keys keys;
};

/* The region that holds [mem, mem + size); of the arena its block is registered
 * now if it is new.  NULL with errno EFAULT for other memory that was not
 * adopted, else why it failed.  Valid until the next call.
 */
struct dtn_verbs_region *dtn_verbs_memory_get(struct dtn_verbs_memory *memory,
                                              const void *mem, size_t size);

/* Register memory of the user's, until it is disowned; NULL with errno. */
struct dtn_verbs_region *dtn_verbs_memory_adopt(struct dtn_verbs_memory *memory,
                                                void *mem, size_t size);
void dtn_verbs_memory_disown(struct dtn_verbs_memory *memory, void *mem,
                             size_t size);
void dtn_verbs_memory_fini(struct dtn_verbs_memory *memory);

/* Make [mem, mem + size) known to all rails, for peers to write; false with
 * errno, and then to none.  Never with relaxed ordering: bytes could then come
 * after the signal that follows them, which is polled for.
 */
bool dtn_verbs_register(struct dtn_verbs_memory *memory, void *mem, size_t size,
                        struct ibv_mr *mr[DTN_MAX_RAILS]);
void dtn_verbs_deregister(struct dtn_verbs_memory *memory,
                          struct ibv_mr *mr[DTN_MAX_RAILS]);

/* A name that was given out is not used any more. */
void dtn_verbs_memory_forget(struct dtn_verbs_memory *memory,
                             struct dtn_remote name);

/* May peers write there with that key? */
bool dtn_verbs_memory_open(const struct dtn_verbs_memory *memory,
                           const void *mem, size_t size, uint32_t key);

/* The table of keys, empty where there is one rail.   Errors: ENOMEM */
int dtn_verbs_keys_init(struct dtn_verbs_memory *memory,
                        struct dtensor_error *err);
void dtn_verbs_keys_fini(struct dtn_verbs_memory *memory);

/* A row for a region whose keys these are; -1: there is none free. */
int dtn_verbs_keys_take(struct dtn_verbs_keys *keys, struct ibv_mr *const mr[]);
void dtn_verbs_keys_drop(struct dtn_verbs_keys *keys, int row);

/* The key word of a name: the key on rail 0 and, above it, the row. */
uint64_t dtn_verbs_keys_name(const struct dtn_verbs_region *region);

/* ------------------------------------------------------------- transport --- */

enum {
    DTN_VERBS_DEPTH = 128,     /* work requests of a queue pair */
    DTN_VERBS_QUEUES_MAX = 16, /* queue pairs to one peer, of all rails */
    DTN_VERBS_REGIONS = 1024,  /* registered at a time */
    DTN_VERBS_INLINE = 220,    /* what fits into 256 bytes of a mlx5 queue, */
    DTN_VERBS_PIECES = 14,     /* and as many pieces of a source do */
    DTN_VERBS_SIGNALLED_EVERY = 16,
    DTN_VERBS_HOPS = 64,             /* routers that a packet may pass */
    DTN_VERBS_CHAIN = 16,            /* requests posted at once */
    DTN_VERBS_CHAIN_BYTES = 1 << 14, /* a put from here on is posted at once */
    DTN_VERBS_ALONG = 4096,          /* bytes of a put that go with a signal */
    DTN_VERBS_STAGE_BYTES = 1 << 20,
    DTN_VERBS_STRIPE_BYTES =
        1 << 16, /* puts from here on use all rails           */
    DTN_VERBS_MESSAGE_MAX = 1 << 23,
    DTN_VERBS_ROCE_HEADERS = 96 /* what the kernel keeps of an Ethernet MTU */
};

/* A signal on its way: up to 64 bytes, each four of them beside the low half of
 * the signal's number.  A device writes eight bytes at once, so a reader that
 * finds the number in all words has the whole line, whatever the order in which
 * it came.  Where the device promises order, the plain form: the bytes and then
 * the number.  Of a payload of 8 bytes only the last 28 of the 64 are written,
 * unless something stands in front of them.
 */
struct dtn_verbs_content {
    unsigned char payload[DTN_PAYLOAD_MAX];      /* it ends at the end         */
    uint16_t tag;
    uint16_t len;
    uint64_t fingerprint;
    uint32_t consumed;            /* of the receiver's signals, by the sender  */
    uint16_t stripes;             /* what every other queue must have shown    */
    uint16_t along;               /* bytes of a put that came with it          */
};
union dtn_verbs_line {
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t word[16];
    struct {
        struct dtn_verbs_content content;
        _Atomic uint64_t seq;
    } plain;
};
_Static_assert(sizeof(struct dtn_verbs_content) == 64,
               "sixteen times four bytes");

/* Where the bytes of a put that came with a signal belong.  It stands right in
 * front of the whole line, the bytes in front of it: one write.  Where the device
 * does not promise order, the hash tells that all of it has landed.
 */
struct dtn_verbs_along {
    uint64_t addr;
    uint32_t key;
    uint32_t size;
    uint64_t hash;                /* of the bytes and of what stands above     */
};
struct dtn_verbs_place {
    _Alignas(
        DTN_CACHE_LINE) unsigned char room[DTN_VERBS_ALONG + DTN_CACHE_LINE -
                                           sizeof(struct dtn_verbs_along)];
    struct dtn_verbs_along along;
    union dtn_verbs_line line;
};
#define DTN_VERBS_AROUND                                                       \
    (sizeof(struct dtn_verbs_along) + sizeof(union dtn_verbs_line))
_Static_assert(offsetof(struct dtn_verbs_place, line)
               == offsetof(struct dtn_verbs_place, along)
                  + sizeof(struct dtn_verbs_along), "no gap before the line");

/* What one peer writes into our memory, and what we write to it from. */
struct dtn_verbs_lane {
    struct dtn_verbs_place place[DTN_QUEUE_DEPTH];
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t acked;    /* of our signals     */
    _Atomic uint64_t aborted; /* DTN_VERBS_ABORT_SET | code << 32 | culprit */
    _Atomic uint64_t beat;        /* a sign that writes arrive; never read     */
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t stripes[DTN_VERBS_QUEUES_MAX];
    struct dtn_verbs_place out[DTN_QUEUE_DEPTH];
    uint64_t out_acked, out_aborted, out_beat;
    uint64_t out_stripes[DTN_QUEUE_DEPTH];    /* none changes before it left  */
    _Atomic uint32_t keys[];  /* [DTN_VERBS_REGIONS][nrails] the peer's */
};
#define DTN_VERBS_ABORT_SET (UINT64_C(1) << 63)

/* The port of a rail, as its peers must know it. */
struct dtn_verbs_end {
    union ibv_gid gid;
    uint32_t rate_mbps;
    uint16_t lid;
    uint8_t mtu;
    uint8_t ethernet;
    char device[IBV_SYSFS_NAME_MAX];
};

/* Where a rank is met: its address blob. */
struct dtn_verbs_address {
    uint64_t magic;
    uint64_t cookie;              /* datagrams to it must bear it              */
    uint32_t datagram_qpn;        /* on rail 0                                 */
    uint32_t nrails;
    struct dtn_verbs_end end[DTN_MAX_RAILS];
};
_Static_assert(sizeof(struct dtn_verbs_address) <= DTN_BLOB_MAX,
               "a blob holds it");

/* What one rank tells another so that their queue pairs can be joined. */
struct dtn_verbs_greeting {
    uint64_t magic;
    uint64_t cookie;              /* of the receiver                           */
    uint64_t lane;                /* address of the receiver's lane here       */
    uint32_t lane_key[DTN_MAX_RAILS];
    int32_t rank;
    uint32_t ready;               /* the sender's queue pairs can receive      */
    uint32_t seen;                /* it knows that the receiver's can          */
    uint32_t in_order;            /* its device promises order: plain lines    */
    uint32_t nqueues;
    uint32_t qpn[DTN_VERBS_QUEUES_MAX];
    uint32_t psn[DTN_VERBS_QUEUES_MAX];
};

/* One connection.  Requests are numbered from 1.  Queue q is of rail q modulo
 * their number; queue 0 carries the signals.
 */
struct dtn_verbs_queue {
    struct ibv_qp *qp;
    struct dtn_verbs_rail *rail;
    uint32_t psn;                 /* ours, random                              */
    uint32_t share;               /* of a striped put, against the others'     */
    size_t request_max;           /* bytes of one write                        */
    enum ibv_wc_status error;     /* first bad completion; 0: none             */
    uint64_t posted, completed;
    uint64_t last_put;            /* number of the newest put                  */
    uint64_t probe;               /* of the longest packet; 0: not sent yet    */
};

struct dtn_verbs_peer {
    int nqueues;                  /* 0: not made yet                           */
    struct dtn_verbs_queue queue[DTN_VERBS_QUEUES_MAX];
    struct ibv_ah *way;           /* for datagrams                             */
    struct dtn_verbs_address address;
    bool called;                  /* connect() was called for it               */
    bool greeted;                 /* its greeting is in `greeting`             */
    bool ready;                   /* our queue pairs are up                    */
    bool joined;                  /* and its are, too                          */
    bool plain;                   /* lines to it are plain                     */
    int64_t next_greeting_ns;
    struct dtn_verbs_greeting greeting;
    struct dtn_verbs_lane *lane;  /* ours, for it; NULL: not met yet */
    struct ibv_mr *lane_mr[DTN_MAX_RAILS];
    uint64_t keys_told;           /* version of our table that it has          */
    uint64_t sent;                /* signals                                   */
    uint64_t acked;               /* of them, as far as we know                */
    uint64_t consumed;            /* of its signals                            */
    uint64_t told;                /* of them, what we last told it             */
    bool arrived;                 /* the next one is in `incoming`             */
    struct dtn_signal incoming;
    bool striped;                 /* puts went by other queues since a signal  */
    uint16_t stripes;             /* times that happened                       */
    int64_t next_beat_ns;
    enum ibv_wc_status error;     /* first bad completion of any queue; 0:none */
    uint32_t vendor_error;
    int error_rail;               /* the number of its rail                    */
    bool narrow;                  /* only its longest packet was not answered  */
};

/* Requests to one queue that are yet to be posted, in one call. */
struct dtn_verbs_chain {
    struct dtn_verbs_queue *queue;
    int n;
    bool tells;                   /* the last one asks for a completion        */
    size_t last_bytes;            /* of the last request                       */
    struct ibv_send_wr wr[DTN_VERBS_CHAIN];
    struct ibv_sge sge[DTN_VERBS_CHAIN][DTN_VERBS_PIECES];
};

/* A small put that waits for the signal it may go along with. */
struct dtn_verbs_held {
    struct dtn_verbs_peer *peer;  /* NULL: there is none */
    struct dtn_remote dst;
    const void *src;
    size_t size;
};

struct dtn_verbs {
    struct dtn_transport base;
    struct dtn_open_args args;    /* pointers borrowed                         */
    int nrails;
    struct dtn_verbs_rail rail[DTN_MAX_RAILS];
    struct dtn_verbs_memory memory;
    struct ibv_qp *datagram;      /* on rail 0                                 */
    struct ibv_cq *datagram_cq;
    struct dtn_verbs_datagrams *datagrams;
    struct dtn_verbs_chain chain;
    struct dtn_verbs_held held;
    unsigned long posts;          /* counters, for tests: requests posted      */
    unsigned long doorbells;      /* and calls that it took                    */
    unsigned char *stage;         /* for sources outside the arena             */
    struct ibv_mr *stage_mr;
    struct dtn_verbs_peer *stage_user; /* whose put still reads it, or NULL */
    unsigned turns;
    int64_t next_ack_ns;
    uint64_t cookie;
    bool unlike_said;             /* a peer's MTU is another: warned once      */
    struct dtn_verbs_peer peers[]; /* [nranks] */
};

static inline struct dtn_verbs *dtn_verbs_of(const struct dtn_transport *tp)
{
    return (struct dtn_verbs *)tp;
}

static inline struct dtn_verbs_peer *
dtn_verbs_peer(const struct dtn_transport *tp, int peer)
{
    return &dtn_verbs_of(tp)->peers[peer];
}

/* Datagrams: set up, keep meeting `peer` until both sides are joined (0, or
 * EAGAIN), answer whoever greets.
 */
int dtn_verbs_meet_open(struct dtn_verbs *verbs, struct dtensor_error *err);
void dtn_verbs_meet_close(struct dtn_verbs *verbs);
int dtn_verbs_meet(struct dtn_verbs *verbs, int peer,
                   struct dtensor_error *err);
int dtn_verbs_meet_progress(struct dtn_verbs *verbs);

/* On each rail, one write of 8 bytes and one of the path's MTU: both must be
 * answered before anything else goes that way.  Errors: EAGAIN, EPEER, ESYS
 */
int dtn_verbs_probe(struct dtn_verbs *verbs, int rank,
                    struct dtensor_error *err);

/* How packets get from a device to a peer's end, as the file has it. */
void dtn_verbs_path(const struct dtn_verbs *verbs,
                    const struct dtn_verbs_device *device,
                    const struct dtn_verbs_end *end, struct ibv_ah_attr *attr);

/* The MTU of the way from a device to a peer's end: the smallest of both
 * ports' and the file's.
 */
enum ibv_mtu dtn_verbs_path_mtu(const struct dtn_verbs *verbs,
                                const struct dtn_verbs_device *device,
                                const struct dtn_verbs_end *end);

/* Queue pairs to each peer on each of so many rails. */
int dtn_verbs_queues_wanted(const struct dtn_transport_conf *conf, int nrails);

/* Make our ends of the queue pairs for a peer; join them to what it greeted
 * with.
 */
int dtn_verbs_queues_create(struct dtn_verbs *verbs, int peer,
                            struct dtensor_error *err);
int dtn_verbs_queues_join(struct dtn_verbs *verbs, int peer,
                          struct dtensor_error *err);

/* Places left in a queue; takes completions when they get few. */
int dtn_verbs_room(struct dtn_verbs *verbs, struct dtn_verbs_queue *queue);

/* Append one write to the chain of queue `q` of a peer, inline where mr is
 * NULL, or make it one more piece of the last.  There must be room.
 * Errors: ESYS
 */
int dtn_verbs_post(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer, int q,
                   uint64_t to, uint32_t key, const void *from, size_t size,
                   const struct ibv_mr *mr);

/* The same for a put, whose source flush() waits for. */
int dtn_verbs_post_put(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                       int q, struct dtn_remote dst, const void *from,
                       size_t size, const struct ibv_mr *mr);

/* Post what is in the chain. */
int dtn_verbs_ring(struct dtn_verbs *verbs);

/* The held put becomes a write of its own in the chain; post that, too. */
int dtn_verbs_unhold(struct dtn_verbs *verbs);
int dtn_verbs_release(struct dtn_verbs *verbs);

/* Memory for what a peer will signal, and what we will; make it known to the
 * device.  close: legal at any time, after the queue pairs.
 */
int dtn_verbs_lane_open(struct dtn_verbs *verbs, int peer,
                        struct dtensor_error *err);
void dtn_verbs_lane_close(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer);

/* Bytes of a lane between ranks of so many rails. */
static inline size_t dtn_verbs_lane_bytes(int nrails)
{
    return sizeof(struct dtn_verbs_lane)
         + (nrails > 1 ? (size_t)DTN_VERBS_REGIONS * (size_t)nrails
                         * sizeof(uint32_t) : 0);
}

/* Write from our lane to the same peer's lane for us.  EAGAIN: no room. */
int dtn_verbs_lane_write(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                         int q, size_t offset, const void *from, size_t size);

/* Write signal `seq`, and with it `put`, if any: a chain is begun. */
int dtn_verbs_line_send(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                        uint64_t seq, struct dtn_verbs_content *say,
                        const struct dtn_verbs_held *put);

/* Where in the content the payload of a signal with that `len` begins: what is
 * longer stands beside it.
 */
static inline size_t dtn_verbs_line_skip(uint16_t len)
{
    return len > DTN_PAYLOAD_MAX ? DTN_PAYLOAD_MAX
         : DTN_PAYLOAD_MAX - ((size_t)len + 3) / 4 * 4;
}

/* Take the content of line number `seq` if all of it is there. */
bool dtn_verbs_line_take(const struct dtn_verbs_peer *peer, uint64_t seq,
                         struct dtn_verbs_content *said);

/* What came along with it: to where it belongs, once it is all there.
 * EAGAIN: it is not; EINVAL: that place is not ours to be written.
 */
int dtn_verbs_along_take(struct dtn_verbs *verbs,
                         const struct dtn_verbs_peer *peer, uint64_t seq,
                         const struct dtn_verbs_content *said);

/* The rows of our keys that the peer does not have yet go to its lane, in the
 * chain of queue 0, in at most one write: verbs_lane.c.
 */
int dtn_verbs_keys_tell(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer);

/* The keys of memory that the peer named so; returns on how many rails it is
 * known to have one: all, or 1 where it has not told yet.
 */
int dtn_verbs_keys_find(const struct dtn_verbs *verbs,
                        const struct dtn_verbs_peer *peer, uint64_t name,
                        uint32_t key[DTN_MAX_RAILS]);

/* Entries of the table that deal with puts. */
int dtn_verbs_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                  const void *src, size_t size, size_t *done);
int dtn_verbs_flush(struct dtn_transport *tp, int peer);

/* Entries of the table that deal with signals. */
bool dtn_verbs_has_room(struct dtn_transport *tp, int peer);
int dtn_verbs_signal(struct dtn_transport *tp, int peer,
                     const struct dtn_signal *signal);
const struct dtn_signal *dtn_verbs_peek(struct dtn_transport *tp, int peer);
void dtn_verbs_consume(struct dtn_transport *tp, int peer);

/* Tell the peer how many of its signals were read, once `least` are new. */
void dtn_verbs_acknowledge(struct dtn_verbs *verbs, struct dtn_verbs_peer *p,
                           uint64_t least);

/* Take completions. */
int dtn_verbs_poll(struct dtn_verbs *verbs);

/* Word that no queue pair could be made for a rank. */
int dtn_verbs_fail_queue(const struct dtn_verbs *verbs,
                         const struct dtn_verbs_rail *rail, int rank,
                         int sys_errno, struct dtensor_error *err);

/* Note one message of the device. */
void dtn_verbs_events_take(struct dtn_verbs_device *device,
                           enum ibv_event_type type, int rank, int64_t now_ns);

/* Take what the device has to say, without waiting; a system call.  ENODEV: it
 * can no longer be used at all.
 */
int dtn_verbs_events_poll(struct dtn_verbs *verbs);

/* Is our GID no longer in its row? */
bool dtn_verbs_gid_gone(const struct dtn_verbs_device *device);

/* The worst it said, such as "port 1 of mlx5_0 went down 2.1 s ago (is the
 * cable in?)"; NULL when it said nothing of weight.  Written to buf.
 */
const char *dtn_verbs_events_words(const struct dtn_verbs_device *device,
                                   char *buf, size_t size);

/* Timeout of queue pairs, t of 4.096 us * 2^t; and after how long a silent peer
 * is given up, "1.88 s = 7 x 4.096 us x 2^16".
 */
int dtn_verbs_timeout(const struct dtn_transport_conf *conf);
char *dtn_verbs_give_up_text(const struct dtn_transport_conf *conf, char *buf,
                             size_t size);

/* Words for a peer: its bad completion, what it means and what to look at, or
 * else how it was reached; and what our own device said meanwhile.
 */
char *dtn_verbs_words(const struct dtn_verbs *verbs, int peer, char *buf,
                      size_t size);

/* "rxe0 GID 10.77.0.1 -> rxe0 GID 10.77.0.2" on that rail. */
char *dtn_verbs_way_text(const struct dtn_verbs *verbs, int peer, int rail,
                         char *buf, size_t size);

#endif
