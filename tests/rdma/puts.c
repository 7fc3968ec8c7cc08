/* puts.c - what the transport alone can do, measured as perftest measures
 *
 * Latency as ib_write_lat: each of two ranks waits until the other's put of 8
 * bytes appears in its memory and answers with one; half of a turn counts.
 * Rate as ib_write_bw: 16 puts of 1 MiB and a flush, first one way, then by
 * both ranks at once, where the bytes of both count.  It prints a line for
 * each:
 *
 *     put_lat 6.91 7.02          microseconds, the best and the median
 *     put_bw 199.1 195.8         MB/s
 *     put_both 201.0 196.9
 *     signal_lat 7.40 7.55       a signal with 8 bytes, sent and consumed
 *     signal_both 14.8 15.2      by both ranks at once, as in a collective
 */
#include "base/wait.h"
#include "transport/transport.h"
#include "tests/support/wire.h"

#include <stdbool.h>
#include <string.h>

enum { TURNS = 2000, RUNS = 9, PUTS = 16, PUT_BYTES = 1 << 20 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* `us` are times; with `mb` they are printed as MB/s. */
static void print(const char *what, double us[], int n, double mb)
{
    qsort(us, (size_t)n, sizeof *us, compare);
    if (mb > 0)
        printf("%s %.1f %.1f\n", what, mb * 1e6 / us[0], mb * 1e6 / us[n / 2]);
    else
        printf("%s %.2f %.2f\n", what, us[0], us[n / 2]);
}

struct puts {
    struct wire w;
    _Atomic uint64_t *word;
    unsigned char *mem;           /* [2][PUT_BYTES] to send from, to put into */
    struct dtn_remote word_there[2], mem_there[2];       /* of the peer       */
};

static void answer_put(struct puts *p, uint64_t i)
{
    while (atomic_load_explicit(p->word, memory_order_acquire) != i)
        ;
}

static void latency_put(struct puts *p, double us[])
{
    int peer = !p->w.rank;
    int64_t start;

    for (uint64_t i = 1; i <= TURNS; i++) {
        start = dtn_now_ns();
        if (p->w.rank == 1)
            answer_put(p, i);
        wire_put(&p->w, peer, p->word_there[peer], &i, sizeof i);
        p->w.tp->ops->progress(p->w.tp);
        if (p->w.rank == 0)
            answer_put(p, i);
        us[i - 1] = (double)(dtn_now_ns() - start) / 2e3;
    }
    wire_flush(&p->w, peer);
}

static void latency_signal(struct puts *p, double us[])
{
    const struct dtn_transport_ops *ops = p->w.tp->ops;
    struct dtn_signal s = { .len = 8 };
    int peer = !p->w.rank;
    int64_t start;

    for (int i = 0; i < TURNS; i++) {
        start = dtn_now_ns();
        if (p->w.rank == 0)
            need(ops->signal(p->w.tp, peer, &s, NULL) == 0, "signal");
        while (!ops->peek(p->w.tp, peer))
            ;
        ops->consume(p->w.tp, peer);
        if (p->w.rank == 1)
            need(ops->signal(p->w.tp, peer, &s, NULL) == 0, "signal");
        us[i] = (double)(dtn_now_ns() - start) / 2e3;
    }
}

/* Each second exchange is timed: the one before it is the barrier. */
static void latency_both(struct puts *p, double us[])
{
    const struct dtn_transport_ops *ops = p->w.tp->ops;
    struct dtn_signal s = { .len = 8 };
    int peer = !p->w.rank;
    int64_t start = 0;

    for (int i = 0; i < 2 * TURNS; i++) {
        if (i % 2 != 0)
            start = dtn_now_ns();
        need(ops->signal(p->w.tp, peer, &s, NULL) == 0, "signal");
        while (!ops->peek(p->w.tp, peer))
            ;
        ops->consume(p->w.tp, peer);
        us[i / 2] = (double)(dtn_now_ns() - start) / 1e3;
    }
}

static void rate(struct puts *p, bool both, double us[])
{
    int peer = !p->w.rank;
    int64_t start;

    for (int run = 0; run < RUNS; run++) {
        wire_barrier(&p->w);
        start = dtn_now_ns();
        for (int i = 0; i < PUTS && (both || p->w.rank == 0); i++)
            wire_put(&p->w, peer, p->mem_there[peer], p->mem, PUT_BYTES);
        wire_flush(&p->w, peer);
        if (both)
            wire_barrier(&p->w);
        us[run] = (double)(dtn_now_ns() - start) / 1e3;
    }
    wire_barrier(&p->w);
}

static void puts_rank(int rank, int n, void *arg)
{
    static double us[TURNS];
    struct puts p;
    struct dtn_remote mine[2];
    double mb = PUTS * (double)PUT_BYTES / 1e6;

    wire_open(&p.w, arg, rank, n);
    wire_connect_all(&p.w);
    p.word = wire_alloc(&p.w, sizeof *p.word);
    p.mem = wire_alloc(&p.w, 2 * (size_t)PUT_BYTES);
    memset(p.mem, rank, 2 * (size_t)PUT_BYTES);
    atomic_store(p.word, 0);
    mine[!rank] = wire_reg(&p.w, (void *)p.word, sizeof *p.word);
    wire_swap(&p.w, mine, p.word_there);
    mine[!rank] = wire_reg(&p.w, p.mem + PUT_BYTES, PUT_BYTES);
    wire_swap(&p.w, mine, p.mem_there);
    latency_put(&p, us);
    if (rank == 0)
        print("put_lat", us, TURNS, 0);
    rate(&p, false, us);
    if (rank == 0)
        print("put_bw", us, RUNS, mb);
    rate(&p, true, us);
    if (rank == 0)
        print("put_both", us, RUNS, 2 * mb);
    latency_signal(&p, us);
    if (rank == 0)
        print("signal_lat", us, TURNS, 0);
    latency_both(&p, us);
    if (rank == 0)
        print("signal_both", us, TURNS, 0);
    wire_barrier(&p.w);
    wire_close(&p.w);
}

int main(int argc, char *argv[])
{
    struct wire_kind kind = { .label = argc > 1 ? argv[1] : "rc" };

    kind.ops = dtn_transport_find(kind.label);
    if (!kind.ops) {
        printf("no transport %s in this build\n", kind.label);
        return 77;
    }
    wire_prepare();
    return ranks_run(2, 60, puts_rank, &kind, NULL) != 0;
}
