/* test_shm_threads.c - the memory order of shm, for ThreadSanitizer
 *
 * Two threads are two ranks of one process.  ThreadSanitizer knows memory by
 * its address, so a second mapping of an arena would hide every race in it:
 * here mmap() of a memfd that is mapped already gives the first mapping.  Run
 * it in a build with CC=clang --enable-sanitizer=thread, which reports each of
 * the four orders in shm.c when it is weakened (gcc's does not see the copying
 * of a line); elsewhere it still checks the bytes.
 *
 * Without this test, a store that is seen too early would fail once in a
 * million messages, on other CPUs than ours.
 */
#include "base/log.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 20000
#define ENOUGH_NS INT64_C(20000000000)
#define BYTES 4096
#define ARENA_BYTES ((size_t)8 << 20)

static struct dtn_arena arenas[2];

void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd,
                  off_t offset);
int __real_munmap(void *addr, size_t size);
int __wrap_munmap(void *addr, size_t size);

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd,
                  off_t offset)
{
    for (int r = 0; r < 2; r++)
        if (fd >= 0 && arenas[r].backing.base && arenas[r].backing.fd == fd)
            return arenas[r].backing.base;
    return __real_mmap(addr, size, prot, flags, fd, offset);
}

int __wrap_munmap(void *addr, size_t size)
{
    for (int r = 0; r < 2; r++)
        if (arenas[r].backing.base == addr)
            return 0;
    return __real_munmap(addr, size);
}

static struct dtn_transport_conf conf;
static struct dtn_log quiet = { DTN_LOG_OFF, -1, NULL, 0 };
static struct dtn_transport *tps[2];
static unsigned char *windows[2];
static struct dtn_remote remotes[2];

/* What a thread found wrong; 0: nothing. */
struct side {
    int rank;
    unsigned long wrong;
};

static unsigned char byte_of(int rank, unsigned round, size_t i)
{
    return (unsigned char)(round * 7 + i + (unsigned)rank * 100);
}

static const struct dtn_signal *await(struct dtn_transport *tp, int peer)
{
    const struct dtn_signal *s;

    for (unsigned turn = 1; !(s = tp->ops->peek(tp, peer)); turn++)
        if (turn % 64 == 0)
            sched_yield();
    return s;
}

static void tell(struct dtn_transport *tp, int peer, unsigned number)
{
    struct dtn_signal s = { .fingerprint = number, .len = DTN_PAYLOAD_MAX };

    memset(s.payload, (int)(number & 0xff), sizeof s.payload);
    while (tp->ops->signal(tp, peer, &s, NULL) == DTENSOR_EAGAIN)
        sched_yield();
}

/* Put a window to the other side and tell; take the other's; tell it is
 * free; and every 16th round flood the queue.
 */
static void side_round(struct side *side, unsigned round)
{
    struct dtn_transport *tp = tps[side->rank];
    int peer = !side->rank;
    unsigned char bytes[BYTES];
    size_t size = round % 8 == 0 ? BYTES : round % 200, done;
    unsigned extra = round % 16 == 0 ? 40 : 0;
    const struct dtn_signal *s;

    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_of(side->rank, round, i);
    side->wrong += tp->ops->put(tp, peer, remotes[peer], bytes, size, &done)
                   != 0;
    tell(tp, peer, round);
    s = await(tp, peer);
    side->wrong += s->fingerprint != round ||
                   s->payload[DTN_PAYLOAD_MAX - 1] != (round & 0xff);
    tp->ops->consume(tp, peer);
    for (size_t i = 0; i < size; i++)
        side->wrong += windows[side->rank][i] != byte_of(peer, round, i);
    tell(tp, peer, round + 1);
    side->wrong += await(tp, peer)->fingerprint != round + 1;
    tp->ops->consume(tp, peer);
    for (unsigned i = 0; i < extra && side->rank == 0; i++)
        tell(tp, peer, i);
    for (unsigned i = 0; i < extra && side->rank == 1; i++) {
        side->wrong += await(tp, peer)->fingerprint != i;
        tp->ops->consume(tp, peer);
    }
}

/* Fewer where others have the CPUs: a yield may then take 100 ms.  Side 0 says
 * so before its signals of the last round, and without an order of its own.
 */
static _Atomic unsigned rounds = ROUNDS;

static void *side_main(void *arg)
{
    const int64_t end = dtn_now_ns() + ENOUGH_NS;
    struct side *side = arg;

    for (unsigned round = 0;
         round < atomic_load_explicit(&rounds, memory_order_relaxed); round++) {
        if (side->rank == 0 && dtn_now_ns() > end)
            atomic_store_explicit(&rounds, round + 1, memory_order_relaxed);
        side_round(side, round);
    }
    return NULL;
}

static void open_both(void)
{
    struct dtn_blob blob[2];
    struct dtensor_error err = { 0 };
    int bad = 0;

    for (int r = 0; r < 2; r++) {
        struct dtn_open_args args = { 2, r, 0, 2, "a", &arenas[r],
                                      &conf, &quiet, NULL, -1 };

        bad += dtn_arena_init(&arenas[r], ARENA_BYTES, true, &err) != 0;
        bad += dtn_shm_ops.open(&args, &tps[r], &err) != 0;
        windows[r] = dtn_arena_alloc(&arenas[r], BYTES);
        bad += dtn_shm_ops.reg(tps[r], windows[r], BYTES, &remotes[r]) != 0;
        dtn_shm_ops.address(tps[r], &blob[r]);
    }
    for (int r = 0; r < 2; r++)
        bad += dtn_shm_ops.connect(tps[r], !r, &blob[!r], &err) != 0;
    ok(bad == 0, "two ranks in one process are connected %s", err.text);
    ok(dtn_shm_ops.map(tps[0], 1, remotes[1]) == windows[1],
       "and see each other's memory at the same address");
}

int main(void)
{
    struct side sides[2] = { { .rank = 0 }, { .rank = 1 } };
    pthread_t threads[2];
    int culprit, code;

    alarm(300);                       /* a lost signal is a failure */
    open_both();
    for (int r = 0; r < 2; r++)
        if (pthread_create(&threads[r], NULL, side_main, &sides[r]) != 0)
            return 1;
    for (int r = 0; r < 2; r++)
        pthread_join(threads[r], NULL);
    ok(sides[0].wrong == 0 && sides[1].wrong == 0, "%u rounds both ways: every "
       "byte and signal is right", atomic_load(&rounds));
    ok(dtn_shm_ops.health(tps[0], 1, &culprit, &code) == 0, "both live");
    dtn_shm_ops.abort(tps[1], 0, DTENSOR_ETIME);
    ok(dtn_shm_ops.health(tps[0], 1, &culprit, &code) == DTENSOR_EABORT &&
       culprit == 0 && code == DTENSOR_ETIME, "an abort is seen");
    for (int r = 0; r < 2; r++)
        dtn_shm_ops.close(tps[r]);
    return done();
}
