/* shm.c - ranks of one host, by loads and stores
 *
 * A rank maps the arenas of its peers, so that a put is a memcpy and a peer's
 * memory has an address.  What remains is to say "the bytes are there".  Each
 * rank keeps, in its own arena, one lane for each other rank of the host: 16
 * lines of 64 bytes that only this peer writes, and a counter that only the
 * owner writes.
 *
 *      sender   fills line n % 16, then stores seq = n with release order
 *      receiver loads seq with acquire order until it is n, reads the line
 *               and all that was put before it, then stores consumed = n
 *
 * Sequence numbers start at 1 and never fall back, so a line needs no
 * clearing: line 3 shows 3, then 19, then 35.  The sender reads `consumed`
 * only when its last look at it says that the lane is full, once in 16
 * signals or less.  A signal thus moves one cache line from core to core,
 * 60 ns when they share a cache, with no lock and no system call.
 *
 * A dead peer leaves its memory behind, valid and silent: health() asks the
 * kernel, through a pidfd, whether the process still is.
 *
 * Memory from outside the arena has no address at the peers.  From 32 KiB on,
 * where the kernel lets them, they may fetch it (process.c); else, and what is
 * smaller, the caller copies into the arena.  Each rank tries when it connects
 * whether it may read the other's memory, and writes into its lane there that it
 * may.  The kernel finds that memory by the number of the process, which may be
 * another's soon after the peer's death.  A number is not given away before its
 * process is seen to be dead, so bytes are the peer's if health() finds it alive
 * after they were read; and none are written before it was found alive.
 */
#include "base/compiler.h"
#include "base/copy.h"
#include "base/error.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/process.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHM_MAGIC UINT64_C(0x6474656e73686d32)   /* "dtenshm2" */
#define SHM_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define SHM_KEY 1                /* of the arena: {0, 0} is nowhere    */
#define SHM_KEY_PRIVATE 2        /* addr is one of the process         */
#define SHM_FETCH_BYTES ((size_t)32 << 10)   /* from here on it pays   */
#define SHM_PAST_BYTES ((size_t)8 << 20)     /* stored past the caches */
#define SHM_ABORT_SET (UINT64_C(1) << 63)
#define SHM_LEFT (UINT64_C(1) << 62)

/* What one peer says to the owner, and what the owner answers.  Processors
 * fetch lines in pairs, so a line apart keeps the two sides out of each
 * other's way.
 */
struct shm_lane {
    struct dtn_signal line[DTN_QUEUE_DEPTH];
    _Alignas(DTN_CACHE_LINE) _Atomic uint32_t fetches;   /* it reads our      */
                                                         /* private memory    */
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t consumed;
    unsigned char apart_too[DTN_CACHE_LINE];
};

/* What a rank shows to the others, in its arena. */
struct shm_control {
    _Alignas(DTN_CACHE_LINE) uint64_t magic;
    uint64_t nlanes;
    _Atomic uint64_t aborted;     /* SHM_ABORT_SET | code << 32 | culprit,    */
                                  /* SHM_LEFT when its owner has closed it    */
    struct shm_lane lane[];       /* [nlanes], by position on the host        */
};

/* The address: where to find the control block in the arena sent along. */
struct shm_address {
    uint64_t magic;
    uint64_t size;                /* of the arena                             */
    uint64_t control;             /* its offset                               */
    uint64_t nlanes;
    uint64_t control_addr;        /* where it is in its process               */
    struct dtn_process process;
};

struct shm_peer {
    struct dtn_signal *out;       /* its lines for us to write                */
    const _Atomic uint64_t *acked;    /* what it has consumed of them         */
    uint64_t sent;
    uint64_t acked_seen;
    struct shm_lane *in;          /* our lane for it                          */
    uint64_t consumed;
    unsigned char *base;          /* its arena, NULL until connected          */
    size_t size;
    struct shm_control *control;
    struct shm_lane *lane;        /* of that: for us                          */
    struct dtn_process process;
    bool watched;                 /* its process is one we can see            */
    int pidfd;                    /* or -1                                    */
};

struct shm {
    struct dtn_transport base;
    struct dtn_arena *arena;
    int rank;
    int first, span;              /* local ranks lie in first..first+span-1   */
    int nconnected;               /* to so many of them                       */
    int nfetching;                /* so many were seen to fetch               */
    struct shm_control *control;
    struct dtn_process self;
    struct shm_peer peers[];      /* [span], by rank - first                  */
};

static struct shm *shm_of(const struct dtn_transport *tp)
{
    return (struct shm *)tp;
}

static struct shm_peer *shm_peer(const struct dtn_transport *tp, int peer)
{
    struct shm *shm = shm_of(tp);

    return &shm->peers[peer - shm->first];
}

/* ------------------------------------------------------ open and close --- */

static bool shm_reaches(const struct dtn_place *a, const struct dtn_place *b)
{
    return a->host == b->host;
}

/* Which ranks are on the host of `rank`: they lie in first..last. */
static void shm_neighbours(const struct dtn_open_args *args, int *first,
                           int *last, int *n)
{
    const struct dtn_place *here = &args->places[args->rank];

    *first = *last = args->rank;
    *n = 0;
    for (int r = 0; r < args->nranks; r++) {
        if (args->places[r].host != here->host)
            continue;
        *first = r < *first ? r : *first;
        *last = r;
        ++*n;
    }
}

static struct shm_control *shm_control_create(struct dtn_arena *arena, int n)
{
    size_t size = sizeof(struct shm_control) +
                  (size_t)n * sizeof(struct shm_lane);
    struct shm_control *control = dtn_arena_alloc(arena, size);

    if (!control)
        return NULL;
    memset(control, 0, size);
    control->magic = SHM_MAGIC;
    control->nlanes = (uint64_t)n;
    return control;
}

static int shm_create(const struct dtn_open_args *args,
                      struct dtn_transport **tpp, struct dtensor_error *err)
{
    struct shm *shm;
    int first, last, n;

    if (args->arena->backing.fd < 0)
        return dtn_fail(err, DTENSOR_ENODEV, "shm: the arena of rank %d cannot "
                        "be mapped by others (set [transport] intra_node = "
                        "tcp)", args->rank);
    shm_neighbours(args, &first, &last, &n);
    shm = calloc(1, sizeof *shm +
                 (size_t)(last - first + 1) * sizeof shm->peers[0]);
    if (!shm)
        return dtn_fail_nomem(err, "shm", sizeof *shm);
    shm->control = shm_control_create(args->arena, n);
    if (!shm->control) {
        free(shm);
        return dtn_arena_fail(args->arena, "shm",
                              (size_t)n * sizeof(struct shm_lane), err);
    }
    shm->base.ops = &dtn_shm_ops;
    shm->base.fetches = true;
    shm->arena = args->arena;
    shm->rank = args->rank;
    shm->first = first;
    shm->span = last - first + 1;
    shm->self = dtn_process_self();
    for (int r = first, index = 0; r <= last; r++) {
        shm->peers[r - first].pidfd = -1;
        if (args->places[r].host == args->places[args->rank].host)
            shm->peers[r - first].in = &shm->control->lane[index++];
    }
    *tpp = &shm->base;
    return 0;
}

static void shm_disconnect(struct shm_peer *p)
{
    if (p->base)
        munmap(p->base, p->size);
    if (p->pidfd >= 0)
        close(p->pidfd);
    p->base = NULL;
    p->pidfd = -1;
}

static void shm_close(struct dtn_transport *tp)
{
    struct shm *shm = shm_of(tp);

    /* The process may live on; peers that map this memory see that. */
    atomic_fetch_or_explicit(&shm->control->aborted, SHM_LEFT,
                             memory_order_release);
    for (int i = 0; i < shm->span; i++)
        shm_disconnect(&shm->peers[i]);
    dtn_arena_free(shm->arena, shm->control);
    free(shm);
}

static void shm_address(const struct dtn_transport *tp, struct dtn_blob *blob)
{
    const struct shm *shm = shm_of(tp);
    const struct shm_address address = {
        .magic = SHM_MAGIC,
        .size = shm->arena->backing.size,
        .control = (uint64_t)((unsigned char *)shm->control -
                              shm->arena->backing.base),
        .nlanes = shm->control->nlanes,
        .control_addr = (uintptr_t)shm->control,
        .process = shm->self,
    };

    memcpy(blob->bytes, &address, sizeof address);
    blob->size = sizeof address;
    blob->fd = shm->arena->backing.fd;
}

/* -------------------------------------------------------------- connect --- */

/* Is this file what the address says, and will it stay so?  Mapping one that
 * can shrink would let anybody kill this process.
 */
static bool shm_file_ok(int fd, const struct shm_address *address)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & SHM_SEALS) == SHM_SEALS &&
           fstat(fd, &st) == 0 && (uint64_t)st.st_size == address->size;
}

static bool shm_address_ok(const struct shm *shm, const struct dtn_blob *blob,
                           const struct shm_address *address)
{
    uint64_t need = sizeof(struct shm_control) +
                    shm->control->nlanes * sizeof(struct shm_lane);

    return blob->size == sizeof *address && address->magic == SHM_MAGIC &&
           address->nlanes == shm->control->nlanes &&
           address->control % DTN_CACHE_LINE == 0 &&
           need <= address->size &&
           address->control <= address->size - need &&
           shm_file_ok(blob->fd, address);
}

/* Map the peer's arena and find our lane in it. */
static int shm_map_peer(struct shm *shm, int peer, struct shm_peer *p,
                        const struct dtn_blob *blob,
                        const struct shm_address *address,
                        struct dtensor_error *err)
{
    const struct shm_lane *mine = shm->peers[shm->rank - shm->first].in;
    void *base = mmap(NULL, address->size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, blob->fd, 0);

    if (base == MAP_FAILED)
        return dtn_fail_sys(err, errno, "shm: cannot map the arena of rank %d:"
                            " %m (see ulimit -v, or lower [transport] arena)",
                            peer);
    madvise(base, address->size, MADV_DONTDUMP);  /* in its own core file     */
    p->base = base;
    p->size = address->size;
    p->control = (struct shm_control *)(p->base + address->control);
    /* We are at the same position of the host for everyone on it. */
    p->lane = &p->control->lane[mine - shm->control->lane];
    p->out = p->lane->line;
    p->acked = &p->lane->consumed;
    return 0;
}

/* Hold on to the peer's process.  In another pid namespace its number means
 * somebody else here: then there is no watching it, and deadlines must do.  A
 * process that is dead already is watched by number: its last words, in the
 * memory it left, are still to be read.
 */
static void shm_watch(const struct shm *shm, struct shm_peer *p)
{
    const struct dtn_process *self = &shm->self;

    p->watched = self->start != 0 && p->process.start != 0 &&
                 self->pid_space == p->process.pid_space;
    if (!p->watched)
        return;
    /* First hold, then compare, so that it cannot be replaced in between. */
    p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)p->process.pid, 0);
    if (p->pidfd >= 0 && dtn_process_is_dead(&p->process)) {
        close(p->pidfd);
        p->pidfd = -1;
    }
}

static bool shm_is_dead(const struct shm_peer *p)
{
    return p->watched && (p->pidfd >= 0 ? dtn_pidfd_is_dead(p->pidfd)
                                        : dtn_process_is_dead(&p->process));
}

/* May we read its memory?  If so tell it, and it need not stage any for us. */
static void shm_try_fetch(struct shm_peer *p, uint64_t control_addr)
{
    uint64_t magic = 0;

    if (p->watched && dtn_process_read(&p->process, &magic, control_addr,
                                       sizeof magic) == 0
        && magic == SHM_MAGIC && !shm_is_dead(p))
        atomic_store_explicit(&p->lane->fetches, 1, memory_order_release);
}

static int shm_refuse(int peer, struct dtensor_error *err)
{
    return dtn_fail_rank(err, DTENSOR_ESYS, peer, "shm: the address of rank "
                         "%d is not that of a sealed arena (is it of the same "
                         "version?)", peer);
}

static int shm_connect(struct dtn_transport *tp, int peer,
                       const struct dtn_blob *blob, struct dtensor_error *err)
{
    struct shm *shm = shm_of(tp);
    struct shm_peer *p = shm_peer(tp, peer);
    struct shm_address address = { 0 };
    int rc;

    if (p->base)
        return 0;
    if (blob->size == sizeof address)
        memcpy(&address, blob->bytes, sizeof address);
    if (!shm_address_ok(shm, blob, &address))
        return shm_refuse(peer, err);
    rc = shm_map_peer(shm, peer, p, blob, &address, err);
    if (rc < 0)
        return rc;
    p->process = address.process;
    if (p->control->magic != SHM_MAGIC) {
        shm_disconnect(p);
        return shm_refuse(peer, err);
    }
    shm_watch(shm, p);
    shm_try_fetch(p, address.control_addr);
    shm->nconnected++;
    return 0;
}

/* --------------------------------------------------------------- memory --- */

/* Do all that are connected read the private memory of this rank? */
static bool shm_is_fetched(struct shm *shm)
{
    const struct shm_peer *p = shm->peers;

    if (shm->nfetching < shm->nconnected) {
        shm->nfetching = 0;
        for (int i = 0; i < shm->span; i++)
            shm->nfetching += p[i].base &&
                              atomic_load_explicit(&p[i].in->fetches,
                                                   memory_order_acquire);
    }
    return shm->nconnected > 0 && shm->nfetching == shm->nconnected;
}

static int shm_reg(struct dtn_transport *tp, void *mem, size_t size,
                   struct dtn_remote *remote)
{
    const struct dtn_arena *arena = shm_of(tp)->arena;
    bool near = (unsigned char *)mem + size > arena->backing.base &&
                (unsigned char *)mem < arena->backing.base + arena->backing.size;

    if (dtn_arena_contains(arena, mem, size)) {
        remote->addr = (uint64_t)((unsigned char *)mem - arena->backing.base);
        remote->key = SHM_KEY;
    } else if (size >= SHM_FETCH_BYTES && !near && shm_is_fetched(shm_of(tp))) {
        remote->addr = (uintptr_t)mem;
        remote->key = SHM_KEY_PRIVATE;
    } else {
        return DTENSOR_EINVAL;
    }
    return 0;
}

static void shm_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
}

static void *shm_map(struct dtn_transport *tp, int peer,
                     struct dtn_remote remote)
{
    const struct shm_peer *p = shm_peer(tp, peer);

    if (remote.key != SHM_KEY || remote.addr > p->size)
        return NULL;
    return p->base + remote.addr;
}

/* A store past the caches need not read the line that it overwrites, nor take it
 * from the CPU that read it last, but leaves nothing in a cache that they share.
 * In us, CPUs near and far: 1 MiB 24 and 46, past the caches 38 and 37; 8 MiB 327
 * and 628, past them 323 and 309; 16 MiB 1760 and 1590, past them 1100 and 990.
 */
static void shm_copy(void *to, const void *from, size_t size)
{
    if (size < SHM_PAST_BYTES) {
        memcpy(to, from, size);
        return;
    }
    dtn_copy_nt(to, from, size);
    dtn_copy_fence();
}

static int shm_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                   const void *src, size_t size, size_t *done)
{
    const struct shm_peer *p = shm_peer(tp, peer);
    int rc = 0;

    if (dst.key == SHM_KEY_PRIVATE)
        rc = shm_is_dead(p) ? DTENSOR_EPEER
           : dtn_process_write(&p->process, dst.addr, src, size);
    else if (dst.key == SHM_KEY && dst.addr <= p->size &&
             size <= p->size - dst.addr)
        shm_copy(p->base + dst.addr, src, size);
    else
        rc = DTENSOR_EINVAL;
    if (rc == 0)
        *done = size;
    return rc;
}

static int shm_fetch(struct dtn_transport *tp, int peer, void *dst,
                     struct dtn_remote src, size_t size)
{
    if (src.key != SHM_KEY_PRIVATE)
        return DTENSOR_EINVAL;
    return dtn_process_read(&shm_peer(tp, peer)->process, dst, src.addr, size);
}

static int shm_flush(struct dtn_transport *tp, int peer)
{
    return 0;
}

/* -------------------------------------------------------------- signals --- */

static bool shm_room(struct dtn_transport *tp, int peer)
{
    struct shm_peer *p = shm_peer(tp, peer);

    if (p->sent - p->acked_seen < DTN_QUEUE_DEPTH)
        return true;
    /* Acquire: the peer has read the line that is to be written over. */
    p->acked_seen = atomic_load_explicit(p->acked, memory_order_acquire);
    return p->sent - p->acked_seen < DTN_QUEUE_DEPTH;
}

/* Have the line that is written next in this CPU's cache, and in no other, by
 * the time that it is.  Otherwise its first store would wait for it, and a peer
 * that polls would fetch it between that and the last.
 */
static void shm_own(struct dtn_signal *line)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*line));
#endif
}

static int shm_signal(struct dtn_transport *tp, int peer,
                      const struct dtn_signal *signal)
{
    struct shm_peer *p = shm_peer(tp, peer);
    struct dtn_signal *line = &p->out[p->sent % DTN_QUEUE_DEPTH];

    if (!shm_room(tp, peer))
        return DTENSOR_EAGAIN;
    memcpy(line, signal, DTN_SIGNAL_BODY);
    atomic_store_explicit(&line->seq, ++p->sent, memory_order_release);
    shm_own(&p->out[p->sent % DTN_QUEUE_DEPTH]);
    return 0;
}

static const struct dtn_signal *shm_peek(struct dtn_transport *tp, int peer)
{
    struct shm_peer *p = shm_peer(tp, peer);
    struct dtn_signal *line = &p->in->line[p->consumed % DTN_QUEUE_DEPTH];

    if (atomic_load_explicit(&line->seq, memory_order_acquire) !=
        p->consumed + 1)
        return NULL;
    return line;
}

static void shm_consume(struct dtn_transport *tp, int peer)
{
    struct shm_peer *p = shm_peer(tp, peer);

    atomic_store_explicit(&p->in->consumed, ++p->consumed,
                          memory_order_release);
}

static int shm_progress(struct dtn_transport *tp)
{
    return 0;
}

/* ------------------------------------------------------ death and abort --- */

static int shm_health(struct dtn_transport *tp, int peer, int *culprit,
                      int *code)
{
    struct shm_peer *p = shm_peer(tp, peer);
    bool dead = shm_is_dead(p);
    uint64_t word;

    if (!p->control)
        return 0;                 /* not connected: nothing is known          */
    /* Last, so that what it said before it died is heard. */
    word = atomic_load_explicit(&p->control->aborted, memory_order_acquire);
    if (word & SHM_ABORT_SET) {
        *culprit = (int)(uint32_t)word;
        *code = -(int)(word >> 32 & 0xff);
        return DTENSOR_EABORT;
    }
    return dead || word & SHM_LEFT ? DTENSOR_EPEER : 0;
}

static void shm_abort(struct dtn_transport *tp, int culprit, int code)
{
    uint64_t word = SHM_ABORT_SET | (uint64_t)(-code & 0xff) << 32 |
                    (uint32_t)culprit;

    atomic_store_explicit(&shm_of(tp)->control->aborted, word,
                          memory_order_release);
}

static void shm_why(const struct dtn_transport *tp, int peer, char *buf,
                    size_t size)
{
    const struct shm_peer *p = shm_peer(tp, peer);
    bool left;

    *buf = '\0';
    if (!p->control)
        return;
    left = atomic_load_explicit(&p->control->aborted, memory_order_relaxed)
         & SHM_LEFT;
    snprintf(buf, size, "pid %lld%s", (long long)p->process.pid,
             left ? " has closed its context"
             : shm_is_dead(p) ? " is gone" : "");
}

const struct dtn_transport_ops dtn_shm_ops = {
    .name = "shm",
    .reaches = shm_reaches,
    .open = shm_create,
    .close = shm_close,
    .address = shm_address,
    .connect = shm_connect,
    .reg = shm_reg,
    .unreg = shm_unreg,
    .adopt = dtn_adopt_any,
    .disown = dtn_disown_any,
    .map = shm_map,
    .fetch = shm_fetch,
    .put = shm_put,
    .flush = shm_flush,
    .signal = shm_signal,
    .room = shm_room,
    .peek = shm_peek,
    .consume = shm_consume,
    .progress = shm_progress,
    .health = shm_health,
    .abort = shm_abort,
    .why = shm_why,
};
