/* doorbells.c - how many requests and calls of the device some work takes
 *
 * Posting is a system call on a soft device and a store across PCIe on others,
 * so a put and its signal should be one, and the rows of a box few.
 */
#include "config.h"
#include "tests/wire.h"

#ifdef HAVE_VERBS
#include "transport/verbs.h"

struct counts {
    unsigned long posts, doorbells;
};

static struct counts counts_of(const struct wire *w)
{
    const struct verbs *verbs = verbs_of(w->tp);

    return (struct counts){ verbs->posts, verbs->doorbells };
}

/* Rank 0 puts `n` times `size` bytes and signals; rank 1 looks. */
static void expect(struct wire *w, unsigned char *mem, struct dtn_remote there,
                   int n, size_t size, struct counts want, const char *what)
{
    static uint32_t number;
    unsigned char fill = (unsigned char)++number;
    struct counts before, after;

    memset(mem, w->rank == 0 ? fill : 0, (size_t)n * size);
    wire_barrier(w);
    before = counts_of(w);
    for (int i = 0; i < n && w->rank == 0; i++) {
        struct dtn_remote to = { there.addr + (size_t)i * size, there.key };

        wire_put(w, 1, to, mem + (size_t)i * size, size);
    }
    if (w->rank == 0)
        wire_signal(w, 1, 1, number);
    after = counts_of(w);
    if (w->rank == 1) {
        wire_await(w, 0, 1, number);
        for (size_t i = 0; i < (size_t)n * size; i++)
            need(mem[i] == fill, "%s: byte %zu is wrong", what, i);
    } else {
        need(after.posts - before.posts == want.posts
             && after.doorbells - before.doorbells == want.doorbells,
             "%s: %lu requests in %lu calls", what, after.posts - before.posts,
             after.doorbells - before.doorbells);
        wire_flush(w, 1);
    }
    wire_barrier(w);
}

static void doorbells_rank(int rank, int n, void *arg)
{
    struct dtn_remote mine[2], there[2];
    unsigned char *mem;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    mem = wire_alloc(&w, 1 << 20);
    mine[!rank] = wire_reg(&w, mem, 1 << 20);
    wire_swap(&w, mine, there);
    expect(&w, mem, there[!rank], 0, 0, (struct counts){ 1, 1 }, "a signal");
    expect(&w, mem, there[!rank], 1, 512, (struct counts){ 1, 1 },
           "512 bytes and a signal");
    expect(&w, mem, there[!rank], 1, 4096, (struct counts){ 2, 1 },
           "4096 bytes and a signal");
    expect(&w, mem, there[!rank], 15, 3000, (struct counts){ 16, 1 },
           "15 rows of 3000 bytes and a signal");
    expect(&w, mem, there[!rank], 32, 64, (struct counts){ 32, 2 },
           "32 rows of 64 bytes and a signal");
    expect(&w, mem, there[!rank], 1, 1 << 20, (struct counts){ 2, 2 },
           "1 MiB, which leaves at once, and a signal");
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
#else
int main(void)
{
    puts("1..0 # SKIP this build is without verbs");
    return 0;
}
#endif
