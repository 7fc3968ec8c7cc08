/* shm.h - private to the shm transport: a rank, its peers, and their lanes
 *
 *     shm.c         the table: open, close, health, abort
 *     shm/peer.c    connecting: the arena and the process of a peer
 *     shm/memory.c  reg, map, put, fetch
 *     shm/device.c  the same for memory of devices
 *     shm/signal.c  signal, peek, consume
 */
#ifndef DTN_TRANSPORT_SHM_H
#define DTN_TRANSPORT_SHM_H

#include "base/compiler.h"
#include "transport/process.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_exporter;
struct dtn_log;

#define DTN_SHM_MAGIC UINT64_C(0x6474656e73686d32)   /* "dtenshm2"            */

#define DTN_SHM_KEY 1            /* key of arena memory; addr is its offset   */

/* The lane of a peer: its signals to the owner, and how many the owner has
 * consumed.  A processor fetches cache lines in pairs.  An unused line keeps
 * what the peer writes and what the owner writes in different pairs.
 */
struct dtn_shm_lane {
    struct dtn_signal line[DTN_QUEUE_DEPTH];  /* the peer writes them         */
    _Alignas(DTN_CACHE_LINE) _Atomic uint32_t fetches;  /* 1: the peer can    */
                                  /* read the owner's private memory          */
    _Atomic uint32_t maps;        /* 1: the peer can map the owner's device   */
                                  /* memory; 2: it cannot; 0: not tried yet   */
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t consumed; /* signals, ever; the */
                                  /* owner writes it                          */
    unsigned char unused[DTN_CACHE_LINE];     /* between this lane's counter  */
                                              /* and the next lane            */
};

/* The control block, in the arena of its owner. */
struct dtn_shm_control {
    _Alignas(DTN_CACHE_LINE) uint64_t magic;  /* DTN_SHM_MAGIC                */
    uint64_t nlanes;              /* ranks of the host                        */
    _Atomic uint64_t aborted;     /* 0, or of the DTN_SHM_ bits below         */
    _Atomic uint64_t pieces;      /* offset of a struct dtn_shm_pieces in the */
                                  /* arena; 0: there is none                  */
    struct dtn_shm_lane lane[];   /* [nlanes], by position on the host        */
};

/* The pieces of its owner's device memory that peers may map. */
enum { DTN_SHM_PIECES = 1024 };
struct dtn_shm_pieces {
    uint64_t bytes;               /* of all that can be there                 */
    uint64_t piece_bytes;         /* of a piece                               */
    _Atomic uint32_t n;           /* in the table; it only grows              */
    struct {
        uint32_t number;          /* of the piece, from the start             */
        int32_t fd;               /* its file, of the owner's process         */
    } piece[DTN_SHM_PIECES];      /* [n]                                      */
};
#define DTN_SHM_ABORTED (UINT64_C(1) << 63)   /* with -code << 32 | culprit   */
#define DTN_SHM_LEFT (UINT64_C(1) << 62)      /* the owner has closed it      */

/* The bytes of a blob. */
struct dtn_shm_address {
    uint64_t magic;               /* DTN_SHM_MAGIC                            */
    uint64_t size;                /* of the arena, bytes                      */
    uint64_t control;             /* offset of the control block in the arena */
    uint64_t nlanes;              /* of the control block                     */
    uint64_t control_addr;        /* its address in the owner's process       */
    struct dtn_process process;   /* of the owner                             */
};

/* A rank of the host. */
struct dtn_shm_peer {
    struct dtn_signal *out;       /* [DTN_QUEUE_DEPTH] where we write signals */
    const _Atomic uint64_t *acked;            /* signals that it has consumed */
    uint64_t sent;                /* signals sent to it, ever                 */
    uint64_t acked_seen;          /* *acked when we last read it              */
    struct dtn_shm_lane *in;      /* our lane for it                          */
    uint64_t consumed;            /* signals consumed from it, ever           */
    unsigned char *base;          /* its arena; NULL: not connected           */
    size_t size;                  /* of the arena, bytes                      */
    struct dtn_shm_control *control;          /* its control block            */
    struct dtn_shm_lane *lane;    /* there, for us                            */
    struct dtn_process process;   /* the process of the peer                  */
    bool watched;                 /* its process number is valid here         */
    int pidfd;                    /* of that process, or -1                   */
    bool tried;                   /* to map its device memory                 */
    unsigned char *device;        /* addresses of that memory; NULL: none     */
    size_t device_bytes;          /* of these addresses                       */
    size_t piece_bytes;           /* of a piece of it                         */
    unsigned joined;              /* pieces of its table that are mapped      */
    unsigned char has[DTN_SHM_PIECES / 8];    /* bit i: piece i is mapped     */
};

struct dtn_shm {
    struct dtn_transport base;    /* the table's part                         */
    struct dtn_arena *arena;      /* of this rank                             */
    int rank;                     /* this rank                                */
    int first, nlocal;            /* ranks of the host: `nlocal` from `first` */
                                  /* on                                       */
    int nconnected;               /* peers that are connected                 */
    int nfetching;                /* of them, known to read private memory    */
    int nmapping;                 /* of them, known to map device memory      */
    const struct dtn_exporter *exporter;      /* of the device; NULL: none    */
    struct dtn_shm_pieces *pieces;            /* of the device                */
    bool shown[DTN_SHM_PIECES];   /* pieces that are in that table            */
    char why[320];                /* device memory is not mapped, in words    */
    struct dtn_log *log;          /* where messages go                        */
    struct dtn_shm_control *control;          /* of this rank                 */
    struct dtn_process self;      /* this process                             */
    struct dtn_shm_peer peers[];  /* [nlocal], by rank - first              */
};

static inline struct dtn_shm *dtn_shm_of(const struct dtn_transport *tp)
{
    return (struct dtn_shm *)(uintptr_t)tp;
}

static inline struct dtn_shm_peer *
dtn_shm_peer(const struct dtn_transport *tp, int peer)
{
    struct dtn_shm *shm = dtn_shm_of(tp);

    return &shm->peers[peer - shm->first];
}

/* Is the peer's process dead?  False if that cannot be known. */
bool dtn_shm_is_dead(const struct dtn_shm_peer *peer);

/* Undo connect(), as far as it got. */
void dtn_shm_disconnect(struct dtn_shm_peer *peer);

/* Memory of devices.  try: map what the peer shows, and tell it; leave: undo
 * that.  detach: free the table of this rank.
 */
void dtn_shm_try_device(struct dtn_shm *shm, struct dtn_shm_peer *p);
void dtn_shm_leave_device(struct dtn_shm *shm, struct dtn_shm_peer *p);
void dtn_shm_detach(struct dtn_shm *shm);
int dtn_shm_reg_device(struct dtn_shm *shm, const void *mem, size_t size,
                       struct dtn_remote *remote);
void *dtn_shm_map_device(struct dtn_shm *shm, struct dtn_shm_peer *p,
                         struct dtn_remote remote);

/* Entries of the table. */
void dtn_shm_attach(struct dtn_transport *tp,
                    const struct dtn_exporter *exporter);
int dtn_shm_connect(struct dtn_transport *tp, int peer,
                    const struct dtn_blob *blob, struct dtensor_error *err);
int dtn_shm_reg(struct dtn_transport *tp, void *mem, size_t size,
                struct dtn_remote *remote);
void dtn_shm_unreg(struct dtn_transport *tp, struct dtn_remote remote);
void *dtn_shm_map(struct dtn_transport *tp, int peer, struct dtn_remote remote);
int dtn_shm_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                const void *src, size_t size, size_t *done);
int dtn_shm_fetch(struct dtn_transport *tp, int peer, void *dst,
                  struct dtn_remote src, size_t size);
int dtn_shm_flush(struct dtn_transport *tp, int peer);
int dtn_shm_signal(struct dtn_transport *tp, int peer,
                   const struct dtn_signal *signal,
                   const struct dtn_eager *data);
const struct dtn_signal *dtn_shm_peek(struct dtn_transport *tp, int peer);
void dtn_shm_consume(struct dtn_transport *tp, int peer);
int dtn_shm_progress(struct dtn_transport *tp);

#endif
