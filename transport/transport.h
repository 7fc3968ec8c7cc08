/* transport.h - the narrow waist */
#ifndef DTN_TRANSPORT_TRANSPORT_H
#define DTN_TRANSPORT_TRANSPORT_H

#include "base/compiler.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_log;
struct dtn_transport_conf;

#define DTN_PAYLOAD_MAX 44        /* bytes of payload in a signal              */
#define DTN_EAGER_MAX 4096        /* bytes that may go beside one: job/eager.c */
#define DTN_QUEUE_DEPTH 16        /* signals a peer may be behind              */
#define DTN_BLOB_MAX 1024         /* bytes of an address                       */

/* A place in a peer's memory.  What the two words mean is the transport's
 * business: for shm an arena offset; for tcp an address and a region number;
 * for verbs an address and an rkey, and which row of keys is its on several
 * rails.  {0, 0} is nowhere.
 */
struct dtn_remote {
    uint64_t addr;
    uint64_t key;
};

/* In the key of a name: memory of a device, which no CPU loads or stores.  It is
 * not mapped nor fetched, and a put reaches it only where a card writes there:
 * EINVAL elsewhere.
 */
#define DTN_KEY_DEVICE (UINT64_C(1) << 63)

/* One signal: exactly one cache line.  Its number stands last, where a write
 * that lands in order lands last.
 */
struct dtn_signal {
    _Alignas(DTN_CACHE_LINE) unsigned char payload[DTN_PAYLOAD_MAX];
    uint16_t tag;                 /* what it says: enum dtn_tag of coll.h      */
    uint16_t len;                 /* bytes of payload, here or beside it       */
    uint64_t fingerprint;         /* of the call it belongs to                 */
    _Atomic uint64_t seq;         /* set by the transport                      */
};
#define DTN_SIGNAL_BODY offsetof(struct dtn_signal, seq)   /* all before it   */
_Static_assert(sizeof(struct dtn_signal) == DTN_CACHE_LINE, "one line");

/* A transport's address, sent to every peer at start: bytes, and a file
 * descriptor or -1.  The descriptor reaches ranks of the same host only.
 */
struct dtn_blob {
    size_t size;
    int fd;
    unsigned char bytes[DTN_BLOB_MAX];
};

/* ------------------------------------------------------------- the table --- */

/* Where a rank is, as far as transports care. */
struct dtn_place {
    int rank;
    int host;                     /* index in the cluster                      */
    const char *address;          /* of its host, for the network              */
};

/* What a transport is opened with; everything is borrowed until close. */
struct dtn_open_args {
    int nranks;
    int rank;
    const struct dtn_place *places;           /* [nranks]                      */
    const bool *reached;                      /* [nranks] peers it is to serve */
    struct dtn_arena *arena;
    const struct dtn_transport_conf *conf;
    struct dtn_log *log;
    const char *device;           /* "mlx5_0:1+mlx5_1:1", NULL: find one       */
    int gid_index;                /* -1: find one                              */
};

/* An open transport: each implementation's own struct begins with this. */
struct dtn_transport {
    const struct dtn_transport_ops *ops;
    uint64_t copied_bytes;        /* by this CPU on their way to a peer: staged*/
    size_t row_bytes;             /* least size of a put that pays, against    */
                                  /* copying as much at both ends; the same on */
                                  /* every rank; 0: as of a network card       */
    bool fetches;                 /* memory from outside the arena is fetched  */
                                  /* by peers, at the price of a system call   */
                                  /* a run                                     */
    size_t along_bytes;           /* a put of at most so many goes along with  */
                                  /* the signal right behind it, and its       */
                                  /* source is free then                       */
};

/* Return codes only where no `err` is taken: 0, EAGAIN (ask again, after
 * progress), EPEER (see health), or another code, after which the transport
 * is of no more use.  No entry blocks, unless it says so.
 */
struct dtn_transport_ops {
    const char *name;

    /* Can it carry bytes between these two different ranks?  From static
     * facts only, so that both sides get the same answer.
     */
    bool (*reaches)(const struct dtn_place *a, const struct dtn_place *b);

    /* Make it ready to be connected to.  On failure *tpp is untouched and
     * nothing is left behind.   Blocks: while a host name is looked up.
     * Errors: ESYS, ENOMEM, ENODEV
     */
    int (*open)(const struct dtn_open_args *args, struct dtn_transport **tpp,
                struct dtensor_error *err);

    /* Free everything.  Legal at any time, peers dead or alive.   Blocks: at
     * most a second, while a living peer has not taken what was sent to it.
     */
    void (*close)(struct dtn_transport *tp);

    /* Write the address that peers connect to.  blob->fd stays the
     * transport's (or the arena's).
     */
    void (*address)(const struct dtn_transport *tp, struct dtn_blob *blob);

    /* Work toward a connection to `peer`, whose address is `blob` (its fd, if
     * any, stays the caller's).  0: connected; EAGAIN: call again - both
     * sides must keep calling.  Needed once before anything below names the
     * peer.   Errors: EPEER, ESYS, ENOMEM
     */
    int (*connect)(struct dtn_transport *tp, int peer,
                   const struct dtn_blob *blob, struct dtensor_error *err);

    /* Let peers connected by now reach [mem, mem+size): *remote is what they
     * need, good until as many unreg() of it.  EINVAL: this transport cannot
     * reach that memory where it is (no text: the caller stages it).  Must be
     * cheap for memory in the arena.
     */
    int (*reg)(struct dtn_transport *tp, void *mem, size_t size,
               struct dtn_remote *remote);
    void (*unreg)(struct dtn_transport *tp, struct dtn_remote remote);

    /* Take memory from outside the arena into use, until disown(): from now
     * on reg() and put() do with it where it stands whatever this transport
     * can.  On failure nothing has changed.
     * Errors: ENOMEM, ESYS, with the remedy
     */
    int (*adopt)(struct dtn_transport *tp, void *mem, size_t size,
                 struct dtensor_error *err);
    void (*disown)(struct dtn_transport *tp, void *mem, size_t size);

    /* A pointer through which loads and stores reach the peer's memory, valid
     * until close, or NULL when they cannot.
     */
    void *(*map)(struct dtn_transport *tp, int peer, struct dtn_remote remote);

    /* Read `size` bytes of the peer's memory into dst, from where no pointer
     * reaches though a transport that maps took it: when it returns they are
     * there.  They are the peer's, and not those of a process that was given its
     * number, if health() is 0 after that.
     * Errors: EINVAL  no such memory, EPEER, ESYS
     */
    int (*fetch)(struct dtn_transport *tp, int peer, void *dst,
                 struct dtn_remote src, size_t size);

    /* Write `size` bytes into the peer's memory.  After 0 the source must
     * stay as it is until flush(peer) has returned 0; EAGAIN: nothing was
     * taken, progress and ask again.  May move fewer bytes than asked: *done
     * says how many (all of them on most transports).  A transport may hold a
     * put back until the next signal, flush or progress.
     */
    int (*put)(struct dtn_transport *tp, int peer, struct dtn_remote dst,
               const void *src, size_t size, size_t *done);

    /* 0: the sources of all earlier puts to this peer may be reused; also
     * when it has received them, finished and left since.
     */
    int (*flush)(struct dtn_transport *tp, int peer);

    /* Append a signal (seq is filled in here) to the peer's queue, after the
     * bytes of earlier puts.  EAGAIN: its queue is full.
     */
    int (*signal)(struct dtn_transport *tp, int peer,
                  const struct dtn_signal *signal);

    /* Would signal() take one now?  Then the peer has consumed the one that was
     * sent DTN_QUEUE_DEPTH before it, and what goes with it may be put.
     */
    bool (*room)(struct dtn_transport *tp, int peer);

    /* The oldest signal from this peer that was not consumed, or NULL.  Valid
     * until consume().  The bytes put before it may be read once it is seen.
     */
    const struct dtn_signal *(*peek)(struct dtn_transport *tp, int peer);
    void (*consume)(struct dtn_transport *tp, int peer);

    /* Move whatever can be moved.  A no-op where the hardware does it. */
    int (*progress)(struct dtn_transport *tp);

    /* 0: as far as can be told the peer lives and its context is good.
     * EPEER: it died.  EABORT: it gave up; *culprit is the rank it blames,
     * *code why.  May take a system call: for slow paths.  What the peer
     * signalled before can still be peeked: look again before giving up.
     */
    int (*health)(struct dtn_transport *tp, int peer, int *culprit, int *code);

    /* Tell every connected peer that this rank gives up on account of
     * `culprit` for reason `code`.  Best effort, never blocks.
     */
    void (*abort)(struct dtn_transport *tp, int culprit, int code);

    /* Words about a peer that is gone, whoever told: what was seen, or else
     * how it was reached, on which device, what to look at; "" when there is
     * nothing to add.  Legal for every peer, met or not.
     */
    void (*why)(const struct dtn_transport *tp, int peer, char *buf,
                size_t size);
};

/* ----------------------------------------------------------- transport.c --- */

/* The transports of this build, preferred first, NULL-terminated. */
extern const struct dtn_transport_ops *const dtn_transports[];

extern const struct dtn_transport_ops dtn_shm_ops;         /* shm.c          */
extern const struct dtn_transport_ops dtn_tcp_ops;         /* tcp.c          */
extern const struct dtn_transport_ops dtn_verbs_ops;       /* verbs.c        */

/* defaults.c: adopt() and disown() of transports whose puts reach any memory. */
int dtn_adopt_any(struct dtn_transport *tp, void *mem, size_t size,
                  struct dtensor_error *err);
void dtn_disown_any(struct dtn_transport *tp, void *mem, size_t size);

/* fetch() where nothing is mapped, and so nothing asked for. */
int dtn_fetch_none(struct dtn_transport *tp, int peer, void *dst,
                   struct dtn_remote src, size_t size);

/* The transport of that name, or NULL. */
const struct dtn_transport_ops *dtn_transport_find(const char *name);

#endif
