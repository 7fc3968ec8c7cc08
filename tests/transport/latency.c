/* latency.c - how long a signal takes from one rank to another */
#include "base/wait.h"
#include "tests/transport/latency.h"

#include <sched.h>
#include <stdint.h>

/* One signal there and back. */
static void latency_turn(struct wire *w)
{
    struct dtn_signal s = { .len = 8 };
    int peer = w->rank ^ 1;

    if (w->rank == 0)
        w->tp->ops->signal(w->tp, peer, &s, NULL);
    for (unsigned turn = 1; !w->tp->ops->peek(w->tp, peer); turn++) {
        w->tp->ops->progress(w->tp);
        if (turn % 10000 == 0)
            sched_yield();
    }
    w->tp->ops->consume(w->tp, peer);
    if (w->rank == 1)
        w->tp->ops->signal(w->tp, peer, &s, NULL);
}

void latency_rank(int rank, int n, void *arg)
{
    int64_t best = INT64_MAX, took;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    for (int run = 0; run < 100; run++) {
        took = -dtn_now_ns();
        for (int i = 0; i < 100; i++)
            latency_turn(&w);
        took += dtn_now_ns();
        best = took < best ? took : best;
    }
    if (rank == 0)
        note("a signal over %s takes %.3f us one way", w.kind->label,
             (double)best / 200e3);
    wire_barrier(&w);
    wire_close(&w);
}
