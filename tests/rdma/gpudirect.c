/* gpudirect.c - memory that no CPU may touch, over verbs
 *
 *     gpudirect direct | refused
 *
 * The memory of a pretend GPU is a memfd.  Its addresses are a range without
 * access, so that a load or store ends the process, and /dev/udmabuf exports it
 * to the device.  An alias elsewhere shows what arrived.  `direct` needs the
 * module rxe_dmabuf.c; without it the device refuses such memory, and `refused`
 * sees to it that the caller is told to stage it.
 *
 * Without this test, a CPU could read or write the memory of a GPU on the way,
 * or a signal could be shown before the card has read that memory back.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/backing.h"
#include "transport/exporter.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/memory.h"
#include "dtensor.h"
#include "tests/support/ranks.h"
#include "tests/support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
#define ARENA (8 * MIB)                   /* of the GPU's memory              */
#define OWN MIB                           /* and what the program allocated   */
#define EDGE 0xee

static const size_t sizes[] = { 1, 8, 200, 4096, (64 << 10) - 3, MIB + 5 };

/* ------------------------------------------------------ the pretend GPU --- */

struct gpu {
    struct dtn_exporter exporter;
    struct dtn_arena arena;
    int memfd;
    unsigned char *base;          /* no access                                */
    unsigned char *alias;         /* the same memory                          */
    bool exports;
};

static struct gpu gpu;

static bool gpu_holds(const struct dtn_exporter *exporter, const void *mem,
                      size_t size)
{
    const unsigned char *at = mem;

    return exporter == &gpu.exporter && at >= gpu.base
        && at + size <= gpu.base + ARENA + OWN;
}

static int gpu_dmabuf(const struct dtn_exporter *exporter, const void *mem,
                      size_t size, struct dtn_dmabuf *dmabuf)
{
    const size_t at = (size_t)((const unsigned char *)mem - gpu.base);
    const size_t first = at / PAGE * PAGE;
    struct udmabuf_create create = { .memfd = (uint32_t)gpu.memfd,
        .flags = UDMABUF_FLAGS_CLOEXEC, .offset = first,
        .size = (at + size - first + PAGE - 1) / PAGE * PAGE };
    int dev, fd;

    need(gpu_holds(exporter, mem, size), "not of the GPU");
    if (!gpu.exports)
        return DTENSOR_EINVAL;
    dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    fd = ioctl(dev, UDMABUF_CREATE, &create);
    need(dev >= 0 && fd >= 0, "udmabuf: %s", strerror(errno));
    close(dev);
    *dmabuf = (struct dtn_dmabuf){ fd, at - first };
    return 0;
}

static const char *gpu_why(const struct dtn_exporter *exporter)
{
    return exporter->name;
}

static bool gpu_touch(struct dtn_backing *backing, size_t offset, size_t size)
{
    need(offset + size <= backing->size, "past the end");
    return true;
}

static void gpu_release(struct dtn_backing *backing, size_t offset, size_t size)
{
    need(offset + size <= backing->size, "past the end");
}

static void gpu_close(struct dtn_backing *backing)
{
    munmap(backing->base, ARENA + OWN);
}

static void gpu_open(bool ordered)
{
    static const struct dtn_backing_ops ops = { gpu_touch, gpu_release,
                                                gpu_close };
    struct dtn_backing backing = { .ops = &ops, .size = ARENA,
                                   .page_bytes = PAGE, .fd = -1 };
    struct dtensor_error err = { 0 };

    gpu.memfd = memfd_create("gpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    need(gpu.memfd >= 0 && ftruncate(gpu.memfd, ARENA + OWN) == 0
         && fcntl(gpu.memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "memfd: %s",
         strerror(errno));
    gpu.base = mmap(NULL, ARENA + OWN, PROT_NONE, MAP_SHARED, gpu.memfd, 0);
    gpu.alias = mmap(NULL, ARENA + OWN, PROT_READ | PROT_WRITE, MAP_SHARED,
                     gpu.memfd, 0);
    need(gpu.base != MAP_FAILED && gpu.alias != MAP_FAILED, "mmap");
    backing.base = gpu.base;
    need(dtn_arena_init_on(&gpu.arena, &backing, &err) == 0, "%s", err.text);
    gpu.exports = true;
    gpu.exporter = (struct dtn_exporter){
        .name = "a pretend GPU", .arena = &gpu.arena, .ordered = ordered,
        .holds = gpu_holds, .dmabuf = gpu_dmabuf, .why = gpu_why };
}

static void gpu_shut(void)
{
    dtn_arena_fini(&gpu.arena);
    munmap(gpu.alias, ARENA + OWN);
    close(gpu.memfd);
}

/* Memory of either kind, as the CPU sees it. */
static unsigned char *seen(unsigned char *mem)
{
    return gpu_holds(&gpu.exporter, mem, 1) ? gpu.alias + (mem - gpu.base)
                                            : mem;
}

/* ---------------------------------------------------------------- plays --- */

struct play {
    struct wire w;
    int peer;
    struct dtn_verbs *verbs;
    uint32_t number;              /* of the last signal                       */
};

static void play_open(struct play *play, struct wire_kind *kind, int rank,
                      int n)
{
    play->peer = !rank;
    play->number = 0;
    wire_open(&play->w, kind, rank, n);
    play->verbs = dtn_verbs_of(play->w.tp);
    gpu_open(false);
    play->w.tp->ops->attach(play->w.tp, &gpu.exporter);
    wire_connect_all(&play->w);
}

static void play_close(struct play *play)
{
    wire_close(&play->w);
    gpu_shut();
}

/* Name `mem`; what the peer named. */
static struct dtn_remote play_names(struct play *play, unsigned char *mem,
                                    size_t size, struct dtn_remote *mine)
{
    struct dtn_remote ours[2], theirs[2];

    ours[play->peer] = *mine = wire_reg(&play->w, mem, size);
    need(!(mine->key & DTN_KEY_DEVICE) == !gpu_holds(&gpu.exporter, mem, 1),
         "the name of %s memory", gpu_holds(&gpu.exporter, mem, 1) ? "device"
                                                                   : "host");
    wire_swap(&play->w, ours, theirs);
    return theirs[play->peer];
}

/* Send a signal after `size` bytes: those of a put or, if `eager`, its own. */
static void play_send(struct play *play, const unsigned char *from,
                      struct dtn_remote there, size_t size, bool eager)
{
    const struct dtn_eager data = { there, from, size };

    if (!eager)
        wire_put(&play->w, play->peer, there, from, size);
    wire_send(&play->w, play->peer, 1, ++play->number, eager ? &data : NULL);
}

/* Move `size` bytes of `from` to each other's `to`, with a byte on each side of
 * them that must stay; the signal behind them must come after `reads` READs.
 */
static void play_move(struct play *play, unsigned char *from,
                      unsigned char *to, struct dtn_remote there, size_t size,
                      bool eager, unsigned long reads)
{
    const unsigned long before = play->verbs->readbacks;
    unsigned char *source = seen(from), *target = seen(to);

    there.addr++;
    memset(target, EDGE, size + 2);
    for (size_t i = 0; i < size; i++)
        source[i] = (unsigned char)(i * 31 + size + (size_t)play->w.rank);
    wire_barrier(&play->w);
    play_send(play, from, there, size, eager);
    wire_await(&play->w, play->peer, 1, play->number);
    need(target[0] == EDGE && target[size + 1] == EDGE, "%zu: the edges", size);
    for (size_t i = 0; i < size; i++)
        need(target[i + 1] == (unsigned char)(i * 31 + size
                                              + (size_t)play->peer),
             "byte %zu of %zu is wrong", i, size);
    need(play->verbs->readbacks - before == reads, "%zu bytes: %lu READs",
         size, play->verbs->readbacks - before);
    wire_flush(&play->w, play->peer);
    wire_barrier(&play->w);
}

static void play_put(struct play *play, unsigned char *from, unsigned char *to,
                     struct dtn_remote there, size_t size, unsigned long reads)
{
    play_move(play, from, to, there, size, false, reads);
}

/* All sizes between memory of two kinds; from the host, also by signals. */
static void play_sizes(struct play *play, unsigned char *from,
                       unsigned char *to, unsigned long reads)
{
    struct dtn_remote mine, there = play_names(play, to, MIB + PAGE, &mine);

    for (size_t i = 0; i < DTN_COUNT(sizes); i++)
        play_put(play, from, to, there, sizes[i], reads);
    for (size_t i = 0; sizes[i] <= DTN_EAGER_MAX; i++)
        if (seen(from) == from)
            play_move(play, from, to, there, sizes[i], true, reads);
    play->w.tp->ops->unreg(play->w.tp, mine);
    wire_barrier(&play->w);
}

static void direct_rank(int rank, int n, void *arg)
{
    unsigned char *device[2], *host[2];
    const unsigned long reads = wire_settings ? 0 : 1;
    struct play play;

    play_open(&play, arg, rank, n);
    for (int i = 0; i < 2; i++) {
        device[i] = dtn_arena_alloc(&gpu.arena, 2 * MIB);
        host[i] = wire_alloc(&play.w, 2 * MIB);
    }
    play_sizes(&play, host[0], device[1], reads);
    play_sizes(&play, device[0], host[1], 0);
    play_sizes(&play, device[0] + 64, device[1] + 128, reads);
    play_sizes(&play, host[0], host[1], 0);
    play_close(&play);
}

/* Memory that the program allocated on the GPU, and registered. */
static void own_rank(int rank, int n, void *arg)
{
    struct dtensor_error err = { 0 };
    struct dtn_remote mine, there;
    struct play play;
    unsigned char *own, *device;

    play_open(&play, arg, rank, n);
    own = gpu.base + ARENA;
    device = dtn_arena_alloc(&gpu.arena, MIB);
    need(play.w.tp->ops->reg(play.w.tp, own, OWN, &mine) == DTENSOR_EINVAL,
         "it is reached without adopt()");
    need(play.w.tp->ops->adopt(play.w.tp, own, OWN, &err) == 0, "%s", err.text);
    there = play_names(&play, own, OWN, &mine);
    for (size_t i = 0; sizes[i] < MIB; i++)
        play_put(&play, device, own, there, sizes[i], 1);
    play.w.tp->ops->unreg(play.w.tp, mine);
    wire_barrier(&play.w);
    play.w.tp->ops->disown(play.w.tp, own, OWN);
    play_close(&play);
}

/* With two rails the bytes of both are read back, where both carried some. */
static void rails_rank(int rank, int n, void *arg)
{
    struct dtn_remote mine, there;
    unsigned char *device[2];
    struct play play;

    play_open(&play, arg, rank, n);
    for (int i = 0; i < 2; i++)
        device[i] = dtn_arena_alloc(&gpu.arena, 2 * MIB);
    there = play_names(&play, device[1], 2 * MIB, &mine);
    play_put(&play, device[0], device[1], there, 8, 1);
    play_put(&play, device[0], device[1], there, MIB, 2);
    need(play.verbs->rail[1].put_bytes > 0, "rail 1 carried nothing");
    play_put(&play, device[0], device[1], there, 8, 1);
    play_close(&play);
}

/* A device that refuses: reg() and put() say so, and host memory is as ever. */
static void refused_rank(int rank, int n, void *arg)
{
    unsigned char *device, *host[2];
    struct dtn_remote mine = { 0, 0 }, there;
    struct play play;
    size_t done = 1;

    play_open(&play, arg, rank, n);
    device = dtn_arena_alloc(&gpu.arena, MIB);
    for (int i = 0; i < 2; i++)
        host[i] = wire_alloc(&play.w, 2 * MIB);
    for (int exports = 1; exports >= 0; exports--) {
        gpu.exports = exports != 0;
        need(play.w.tp->ops->reg(play.w.tp, device, MIB, &mine)
             == DTENSOR_EINVAL && mine.key == 0, "reg() takes it");
    }
    need(play.verbs->memory.device_refused, "nothing was logged");
    there = play_names(&play, host[1], MIB, &mine);
    for (size_t size = 8; size <= MIB; size *= 512)
        need(play.w.tp->ops->put(play.w.tp, play.peer, there, device, size,
                                 &done) == DTENSOR_EINVAL && done == 0,
             "a put of %zu bytes from it", size);
    play_put(&play, host[0], host[1], there, 512, 0);
    play_close(&play);
}

static void never(struct dtn_transport_conf *conf)
{
    conf->gpu_flush = DTN_FLUSH_NEVER;
}

static void run(rank_main_f *rank, const char *what)
{
    static struct wire_kind kind = { "rc", &dtn_verbs_ops, NULL };

    wire_prepare();
    ok(ranks_run(2, 60, rank, &kind, NULL) == 0, "%s", what);
    wire_cleanup();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "refused") == 0) {
        run(refused_rank, "a device without dma-bufs refuses memory of a GPU, "
            "and the CPU does not touch it");
        return done();
    }
    run(direct_rank, "puts to and from memory of a GPU, each read back before "
        "the signal is shown");
    wire_settings = never;
    run(direct_rank, "gpu_flush = never: the same without READs");
    wire_settings = NULL;
    run(own_rank, "memory of a GPU that is not of the arena, registered");
    setenv("DTN_TEST_HCA", "rxe0+rxe1", 1);
    run(rails_rank, "two rails: each that carried bytes reads them back");
    return done();
}
