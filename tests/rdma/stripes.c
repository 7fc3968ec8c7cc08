/* stripes.c - which bytes go by which rail
 *
 * Two ranks have two rails, and each rail counts its bytes.  Large puts must go
 * by both in proportion to their rates.  Small puts, and puts to names whose
 * keys have not arrived, must go by the first.
 */
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/keys.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/queue.h"
#include "dtensor.h"
#include "tests/support/wire.h"

#include <string.h>

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

struct stripes {
    struct wire w;
    int peer;
    unsigned char *mem;           /* rank 0 sends from it, rank 1 receives    */
    struct dtn_remote mine;       /* its name                                 */
    uint32_t number;              /* of the last signal                       */
};

/* Exchange signals, and with them the rows of keys. */
static void stripes_tell(struct stripes *s)
{
    wire_signal(&s->w, s->peer, 1, ++s->number);
    wire_await(&s->w, s->peer, 1, s->number);
}

/* Register `mem`; returns what the peer registered. */
static struct dtn_remote stripes_name(struct stripes *s, size_t size)
{
    struct dtn_remote mine[2], there[2];

    s->mine = mine[s->peer] = wire_reg(&s->w, s->mem, size);
    wire_swap(&s->w, mine, there);
    return there[s->peer];
}

/* Rank 0 puts `size` bytes and signals; rank 1 checks them.  `first` bytes,
 * more or less a page, must go by rail 0.
 */
static void stripes_put(struct stripes *s, struct dtn_remote there, size_t size,
                        size_t first, const char *what)
{
    struct dtn_verbs *verbs = dtn_verbs_of(s->w.tp);
    unsigned char fill = (unsigned char)(s->number * 7 + 1);
    uint64_t before[2] = { verbs->rail[0].put_bytes, verbs->rail[1].put_bytes };
    uint64_t by[2];

    memset(s->mem, s->w.rank == 0 ? fill : 0, size);
    wire_barrier(&s->w);
    s->number++;
    if (s->w.rank == 0) {
        wire_put(&s->w, 1, there, s->mem, size);
        wire_signal(&s->w, 1, 1, s->number);
        wire_flush(&s->w, 1);
        for (int k = 0; k < 2; k++)
            by[k] = verbs->rail[k].put_bytes - before[k];
        need(by[0] + by[1] == size && by[0] + PAGE >= first
             && by[0] <= first + PAGE, "%s: %zu bytes by rail 0, %zu by rail 1",
             what, (size_t)by[0], (size_t)by[1]);
    } else {
        wire_await(&s->w, 0, 1, s->number);
        for (size_t i = 0; i < size; i++)
            need(s->mem[i] == fill, "%s: byte %zu of %zu is wrong", what, i,
                 size);
    }
    wire_barrier(&s->w);
}

/* Register and forget so many regions that the oldest are deregistered; those
 * that a peer still has a name of stay.
 */
static void stripes_churn(struct stripes *s)
{
    const struct dtn_verbs_memory *memory = &dtn_verbs_of(s->w.tp)->memory;
    struct dtn_remote name;

    for (size_t i = 0; i < DTN_VERBS_REGIONS + 100; i++) {
        name = wire_reg(&s->w, s->w.arena.backing.base + 8 * MIB + i * PAGE,
                        PAGE);
        s->w.tp->ops->unreg(s->w.tp, name);
    }
    need(memory->n == DTN_VERBS_REGIONS, "%d regions", memory->n);
}

static void stripes_rank(int rank, int n, void *arg)
{
    struct stripes s = { .peer = !rank };
    struct dtn_verbs_queue *queue;
    struct dtn_remote there;

    wire_open(&s.w, arg, rank, n);
    wire_connect_all(&s.w);
    s.mem = wire_alloc(&s.w, 4 * MIB);
    there = stripes_name(&s, 2 * MIB);
    stripes_put(&s, there, MIB, MIB, "a name that came without its keys");
    stripes_tell(&s);
    stripes_put(&s, there, MIB, MIB / 2, "1 MiB over equal rails");
    stripes_put(&s, there, 64 << 10, 32 << 10, "the least that is cut");
    stripes_put(&s, there, (64 << 10) - 1, (64 << 10) - 1, "a byte less");
    stripes_put(&s, there, 100, 100, "100 bytes");
    queue = dtn_verbs_peer(s.w.tp, s.peer)->queue;
    queue[0].share = 300;
    queue[1].share = 100;
    stripes_put(&s, there, MIB, MIB / 4 * 3, "1 MiB over unequal rails");
    stripes_churn(&s);
    stripes_put(&s, there, MIB, MIB / 4 * 3, "a name that is still good");
    s.w.tp->ops->unreg(s.w.tp, s.mine);
    stripes_churn(&s);
    need(!dtn_verbs_memory_open(&dtn_verbs_of(s.w.tp)->memory, s.mem, 1,
                                (uint32_t)s.mine.key), "a region for ever");
    there = stripes_name(&s, 4 * MIB);
    stripes_tell(&s);
    stripes_put(&s, there, 4 * MIB, 3 * MIB,
                "a name of which the row was used");
    wire_close(&s.w);
}

/* Two ranks with different numbers of rails refuse each other. */
static void unlike_rank(int rank, int n, void *arg)
{
    struct dtensor_error err = { 0 };
    struct wire w;
    int rc;

    if (rank == 1)
        unsetenv("DTN_TEST_HCA");
    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    rc = w.tp->ops->connect(w.tp, !rank, &w.blobs[!rank], &err);
    need(rc == DTENSOR_EMISMATCH && err.rank == !rank
         && strstr(err.text, rank ? "rank 0 has 2 rails, this rank 1"
                                  : "rank 1 has 1 rails, this rank 2"),
         "%s: %s", dtensor_errname(rc), err.text);
    wire_close_blobs(&w);
    wire_barrier(&w);
    wire_close(&w);
}

int main(void)
{
    struct wire_kind kind = { .label = "rc", .ops = &dtn_verbs_ops };

    if (!getenv("DTN_TEST_HCA")) {
        puts("1..0 # SKIP DTN_TEST_HCA does not name two rails");
        return 0;
    }
    wire_prepare();
    ok(ranks_run(2, 60, stripes_rank, &kind, NULL) == 0,
       "rc over two rails: each carries its share, and every byte is right");
    wire_cleanup();
    wire_prepare();
    ok(ranks_run(2, 60, unlike_rank, &kind, NULL) == 0,
       "rc: ranks with unlike numbers of rails do not connect");
    return done();
}
