/* doorbells.c - how many requests and calls of the device some work takes
 *
 * Posting is a system call on a soft device and a store across PCIe on others.
 * So a put and its signal should be one request, and the rows of a box few.
 */
#include "base/compiler.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "tests/support/wire.h"

#include <stdbool.h>
#include <string.h>

enum { MEM_BYTES = 1 << 20 };

struct counts {
    unsigned long posts, doorbells;
};

static struct counts counts_of(const struct wire *w)
{
    const struct dtn_verbs *verbs = dtn_verbs_of(w->tp);

    return (struct counts){ verbs->posts, verbs->doorbells };
}

/* Rank 0 puts `size` bytes `n` times and signals; rank 1 checks the bytes.
 * They are `step` bytes apart at rank 0 and `step_there` at rank 1.
 */
struct puts {
    int n;
    size_t size, step, step_there;
};

static void expect(struct wire *w, unsigned char *mem, struct dtn_remote there,
                   struct puts puts, struct counts want, const char *what)
{
    static uint32_t number;
    unsigned char fill = (unsigned char)++number;
    struct counts before, after;
    size_t step = w->rank == 0 ? puts.step : puts.step_there;

    memset(mem, 0, MEM_BYTES);
    for (int i = 0; i < puts.n && w->rank == 0; i++)
        memset(mem + (size_t)i * step, fill + i, puts.size);
    wire_barrier(w);
    before = counts_of(w);
    for (int i = 0; i < puts.n && w->rank == 0; i++) {
        struct dtn_remote to = there;

        to.addr += (size_t)i * puts.step_there;
        wire_put(w, 1, to, mem + (size_t)i * step, puts.size);
    }
    if (w->rank == 0)
        wire_signal(w, 1, 1, number);
    after = counts_of(w);
    if (w->rank == 1) {
        wire_await(w, 0, 1, number);
        for (size_t i = 0; i < MEM_BYTES; i++) {
            size_t put = step > 0 ? i / step : 0;
            bool inside = step > 0 && put < (size_t)puts.n
                       && i % step < puts.size;

            need(mem[i] == (inside ? (unsigned char)(fill + put) : 0),
                 "%s: byte %zu is wrong", what, i);
        }
    } else {
        need(after.posts - before.posts == want.posts
             && after.doorbells - before.doorbells == want.doorbells,
             "%s: %lu requests in %lu calls", what, after.posts - before.posts,
             after.doorbells - before.doorbells);
        wire_flush(w, 1);
    }
    wire_barrier(w);
}

static const struct {
    struct puts puts;
    struct counts want;
    const char *what;
} expected[] = {
    { { 0, 0, 0, 0 }, { 1, 1 }, "a signal" },
    { { 1, 512, 512, 512 }, { 1, 1 }, "512 bytes and a signal" },
    { { 1, 4096, 4096, 4096 }, { 1, 1 }, "4096 bytes and a signal" },
    { { 1, 5000, 5000, 5000 }, { 2, 1 }, "5000 bytes and a signal" },
    { { 16, 3000, 3000, 3008 }, { 16, 1 }, "16 rows that lie apart there" },
    { { 16, 3000, 6000, 3000 }, { 3, 1 }, "16 rows that lie together there" },
    { { 15, 3000, 3000, 3000 }, { 2, 1 }, "15 that lie together here, too" },
    { { 226, 300, 700, 300 }, { 18, 2 }, "225 short rows and a signal's" },
    { { 32, 64, 64, 64 }, { 32, 2 }, "32 rows of 64 bytes and a signal" },
    { { 1, MEM_BYTES, MEM_BYTES, MEM_BYTES }, { 2, 2 },
      "1 MiB, which leaves at once, and a signal" },
};

static void doorbells_rank(int rank, int n, void *arg)
{
    struct dtn_remote mine[2], there[2];
    unsigned char *mem;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    mem = wire_alloc(&w, MEM_BYTES);
    mine[!rank] = wire_reg(&w, mem, MEM_BYTES);
    wire_swap(&w, mine, there);
    for (size_t i = 0; i < DTN_COUNT(expected); i++)
        expect(&w, mem, there[!rank], expected[i].puts, expected[i].want,
               expected[i].what);
    wire_close(&w);
}

int main(void)
{
    struct wire_kind kind = { .label = "rc", .ops = &dtn_verbs_ops };

    wire_prepare();
    ok(ranks_run(2, 60, doorbells_rank, &kind, NULL) == 0,
       "rc: as few requests and calls of the device as the work takes");
    return done();
}
