/* transport.h - the table of functions that move all bytes between two ranks
 *
 * A rank writes into the memory of another with put(), and tells it with
 * signal(): a queue of 16 cache lines for each ordered pair of ranks.
 */
#ifndef DTN_TRANSPORT_TRANSPORT_H
#define DTN_TRANSPORT_TRANSPORT_H

#include "base/compiler.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_exporter;
struct dtn_log;
struct dtn_transport_conf;

#define DTN_PAYLOAD_MAX 44        /* bytes of payload in a signal             */
#define DTN_EAGER_MAX 4096        /* bytes of data that go with a signal      */
#define DTN_KEPT_MAX 65536        /* the same, of data that are kept, where   */
                                  /* most are: kept_max                       */
#define DTN_QUEUE_DEPTH 16        /* signals sent and not yet consumed        */
#define DTN_BLOB_MAX 1024         /* bytes of an address                      */

/* A place in a peer's memory.  Only the transport knows what the two words
 * mean.  shm: an offset in the arena, and the kind of memory.  tcp: an address
 * and the number of a region.  verbs: an address, and an rkey with the row of
 * the keys on the other rails.  No place has both words 0.
 */
struct dtn_remote {
    uint64_t addr;                /* changes with the place, byte for byte    */
    uint64_t key;                 /* of the registered memory                 */
};

/* This bit of the key says that the memory is on a device.  No CPU can load or
 * store there, so it is not fetched, and where it is mapped only a device can
 * use the pointer.  A put needs a network card that can write there; a put
 * without one fails with EINVAL.
 */
#define DTN_KEY_DEVICE (UINT64_C(1) << 63)

/* A signal is exactly one cache line.  Its number is the last field: where a
 * device writes in ascending order, the whole line is there once the number is.
 */
struct dtn_signal {
    _Alignas(DTN_CACHE_LINE) unsigned char payload[DTN_PAYLOAD_MAX];
                                  /* `len` bytes, if they fit                 */
    union {
        struct {
            uint32_t tag : 12;    /* kind of message, known to the callers    */
            uint32_t len : 20;    /* bytes of payload, in the line or beside  */
                                  /* it                                       */
        };
        uint32_t kind;            /* both: dtn_signal_kind()                  */
    };
    uint64_t fingerprint;         /* of the call that it belongs to           */
    _Atomic uint64_t seq;         /* number of the signal, from 1; the        */
                                  /* transport sets it                        */
};
#define DTN_SIGNAL_BODY offsetof(struct dtn_signal, seq)  /* bytes before it  */
_Static_assert(sizeof(struct dtn_signal) == DTN_CACHE_LINE, "one line");

#define DTN_TAG_MAX 4095          /* of `tag`                                 */

/* Tag and length as one word, where time counts.  Set one after the other they
 * are stores of two and of four bytes, and the second has to load the word
 * first: a CPU waits with that until the first store has left it.
 */
static inline uint32_t dtn_signal_kind(uint32_t tag, uint32_t len)
{
    return tag | len << 12;
}

/* Data that go with a signal: at most DTN_EAGER_MAX bytes, to be written to the
 * peer's memory before the signal is seen.  Or the peer's transport keeps them
 * until the signal is consumed: at most kept_max bytes, see kept().
 */
struct dtn_eager {
    struct dtn_remote dst;        /* where the peer gets them; both words 0:  */
                                  /* its transport keeps them                 */
    const void *src;              /* any memory that the CPU can read         */
    size_t size;                  /* bytes, at least 1                        */
};

/* Strided rows: of one length, here and at a peer at one distance each. */
struct dtn_strided {
    const unsigned char *src;     /* the first row here                       */
    size_t bytes;                 /* of a row, at least 1                     */
    size_t n;                     /* rows, at least 1                         */
    ptrdiff_t src_step;           /* from one row to the next here, in bytes  */
    ptrdiff_t dst_step;           /* the same at the peer                     */
};

/* A transport's address, which every peer gets when the job starts. */
struct dtn_blob {
    size_t size;                  /* bytes in use                             */
    int fd;                       /* a descriptor for ranks of the same host, */
                                  /* or -1                                    */
    unsigned char bytes[DTN_BLOB_MAX];  /* [size], known to the transport     */
};

/* ------------------------------------------------------------ the table --- */

/* Arguments of open().  The caller keeps all of it valid until close(). */
struct dtn_open_args {
    int nranks;                   /* of the world                             */
    int rank;                     /* this rank                                */
    int first, nlocal;            /* ranks of this host: `nlocal` from        */
                                  /* `first` on                               */
    const char *address;          /* of this host in the network              */
    struct dtn_arena *arena;      /* memory that peers may reach              */
    const struct dtn_transport_conf *conf;    /* [transport] of the cluster   */
    struct dtn_log *log;          /* where messages go                        */
    const char *device;           /* such as "mlx5_0:1+mlx5_1:1"; NULL: the   */
                                  /* transport chooses                        */
    int gid_index;                /* of the device; -1: the transport chooses */
};

/* An open transport.  The struct of each transport begins with this one. */
struct dtn_transport {
    const struct dtn_transport_ops *ops;      /* its functions                */
    uint64_t copied_bytes;        /* bytes that this CPU copied so that they  */
                                  /* could be sent                            */
    size_t row_bytes;             /* a shorter put is slower than copying its */
                                  /* bytes at both ends; the same on every    */
                                  /* rank; 0: no such limit                   */
    const char *unreached;        /* why reg() last refused memory of the     */
                                  /* attached device; NULL: it never did      */
};

/* Entries without `err` return 0, or EAGAIN (call again after progress), or
 * EPEER (see health), or another code, after which the transport is of no more
 * use.  No entry blocks unless its comment says so.  An entry may be NULL only
 * if its comment says what that means.
 */
struct dtn_transport_ops {
    const char *name;             /* as in the cluster file                   */

    /* Open the transport, so that peers can connect to it.  On failure *tpp is
     * unchanged and nothing is left behind.   Blocks: while a host name is
     * resolved.   Errors: ESYS, ENOMEM, ENODEV
     */
    int (*open)(const struct dtn_open_args *args, struct dtn_transport **tpp,
                struct dtensor_error *err);

    /* Free everything.  Legal at any time, whether peers live or not.
     * Blocks: at most a second, while a living peer has not received what was
     * sent to it.
     */
    void (*close)(struct dtn_transport *tp);

    /* Write the address to which peers connect.  blob->fd still belongs to the
     * transport or to the arena.
     */
    void (*address)(const struct dtn_transport *tp, struct dtn_blob *blob);

    /* Make progress with the connection to `peer`, whose address is `blob`.
     * 0: connected.  EAGAIN: call again; both sides must keep calling.  The
     * caller still owns blob->fd.  The entries below need a connected peer.
     * Errors: EPEER, ESYS, ENOMEM
     */
    int (*connect)(struct dtn_transport *tp, int peer,
                   const struct dtn_blob *blob, struct dtensor_error *err);

    /* Let connected peers access [mem, mem + size).  They need *remote.  Must
     * be cheap for memory of the arena.
     * Errors: EINVAL  peers cannot reach that memory; the caller stages it
     */
    int (*reg)(struct dtn_transport *tp, void *mem, size_t size,
               struct dtn_remote *remote);

    /* Undo one reg() that returned this. */
    void (*unreg)(struct dtn_transport *tp, struct dtn_remote remote);

    /* Register memory outside the arena, so that reg() and put() use it in
     * place.  On failure nothing has changed.  NULL: reg() and put() need no
     * such call.   Errors: ENOMEM, ESYS, with the remedy
     */
    int (*adopt)(struct dtn_transport *tp, void *mem, size_t size,
                 struct dtensor_error *err);

    /* Undo adopt().  NULL if and only if adopt is. */
    void (*disown)(struct dtn_transport *tp, void *mem, size_t size);

    /* From now on reg(), adopt() and put() also take memory of this device, if
     * its cards can register it, or peers can map it; reg() returns EINVAL
     * otherwise, and `unreached` says why.  Its names
     * have DTN_KEY_DEVICE.  The caller keeps *exporter until close().  NULL:
     * this transport never reaches such memory.
     */
    void (*attach)(struct dtn_transport *tp,
                   const struct dtn_exporter *exporter);

    /* A pointer for loads and stores in the peer's memory, valid until close();
     * of a name with DTN_KEY_DEVICE for the attached device only.  NULL: this
     * memory cannot be mapped.  NULL entry: no memory can be mapped.
     */
    void *(*map)(struct dtn_transport *tp, int peer, struct dtn_remote remote);

    /* Copy `size` bytes of the peer's private memory, which reg() took although
     * it cannot be mapped, to dst.  Done when it returns.  The process number
     * of a dead peer can be used again, so the bytes are the peer's only if
     * health() returns 0 afterwards.  NULL: reg() takes no such memory.  Costs
     * a system call.   Errors: EINVAL  no such memory, EPEER, ESYS
     */
    int (*fetch)(struct dtn_transport *tp, int peer, void *dst,
                 struct dtn_remote src, size_t size);

    /* Write to the peer's memory.  It may take fewer than `size` bytes; *done
     * is the number that it took.  After 0 the source must not change until
     * flush() returns 0.  EAGAIN: nothing was taken.  The put may wait for the
     * next signal(), flush() or progress().
     */
    int (*put)(struct dtn_transport *tp, int peer, struct dtn_remote dst,
               const void *src, size_t size, size_t *done);

    /* Write rows to the peer's memory, the first to dst; otherwise like put().
     * *done is the number of whole rows that it took.  EINVAL: none, because
     * these rows must be put one by one.  NULL: any rows must.
     */
    int (*put_rows)(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                    const struct dtn_strided *rows, size_t *done);

    /* 0: the sources of all earlier puts to this peer may change.  Also 0 if
     * the peer has received them and left since.
     */
    int (*flush)(struct dtn_transport *tp, int peer);

    /* Append a signal to the peer's queue, and write `data`, unless NULL, to
     * the peer's memory.  The peer sees the signal after the bytes of earlier
     * puts and of `data`.  After 0 the source of `data` may change at once.
     * EAGAIN: neither was taken, because the peer has not consumed the signal
     * DTN_QUEUE_DEPTH before this one, or for another reason.
     */
    int (*signal)(struct dtn_transport *tp, int peer,
                  const struct dtn_signal *signal,
                  const struct dtn_eager *data);

    /* The oldest signal of this peer that was not consumed, or NULL.  Valid
     * until consume().  The bytes that were put before it are there.
     */
    const struct dtn_signal *(*peek)(struct dtn_transport *tp, int peer);

    /* The data of that signal, if this transport keeps them, until consume().
     * It has room for a few messages of kept_max bytes for each peer; while
     * that is used up, the peer's signal() returns EAGAIN.  NULL: it keeps
     * none, so that data need a place.
     */
    const void *(*kept)(struct dtn_transport *tp, int peer);
    size_t kept_max;              /* most bytes of a signal's data that it    */
                                  /* keeps; 0: kept() is NULL                 */

    /* This rank awaits `signal` next from this peer, and has memory at `dst`
     * for its signal->len bytes of kept data: until consume() the transport
     * may keep them there, and kept() then returns `dst`.  NULL: it no longer
     * does, and nothing more is written to `dst`.  NULL entry: it keeps them
     * where they arrive, or none.
     */
    void (*expect)(struct dtn_transport *tp, int peer,
                   const struct dtn_signal *signal, void *dst);

    /* Remove that signal from the queue; the peer may send one more. */
    void (*consume)(struct dtn_transport *tp, int peer);

    /* Continue what could not be finished at once.  1: it received or sent
     * something, and who waits for more should not sleep.
     */
    int (*progress)(struct dtn_transport *tp);

    /* 0: as far as known the peer lives and its context is good.  EPEER: it
     * died.  EABORT: it gave up with *code and blames the rank *culprit.  For
     * slow paths, since it may take a system call.  Signals that the peer sent
     * before can still be peeked.
     */
    int (*health)(struct dtn_transport *tp, int peer, int *culprit, int *code);

    /* Tell every connected peer that this rank gives up because of `culprit`,
     * with `code`, which is -1 to -255.  Best effort.
     */
    void (*abort)(struct dtn_transport *tp, int culprit, int code);

    /* Words for the message about a peer that is gone: what was seen, or how
     * the peer was reached, on which device, and what to look at.  "": nothing
     * to add.  Legal for every peer, connected or not.
     */
    void (*why)(const struct dtn_transport *tp, int peer, char *buf,
                size_t size);
};

/* ---------------------------------------------------------- transport.c --- */

/* The transports of this build, preferred first, NULL-terminated. */
extern const struct dtn_transport_ops *const dtn_transports[];

extern const struct dtn_transport_ops dtn_shm_ops;         /* shm.c          */
extern const struct dtn_transport_ops dtn_tcp_ops;         /* tcp.c          */
extern const struct dtn_transport_ops dtn_verbs_ops;       /* verbs.c        */

/* The transport of that name, or NULL. */
const struct dtn_transport_ops *dtn_transport_find(const char *name);

#endif
