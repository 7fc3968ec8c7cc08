/* test_transport.c - one suite that every transport must pass
 *
 * Each claim is a scenario that all ranks play, over every transport, also
 * with many EAGAIN, for 1 to 7 ranks.  Without this test, a transport could
 * break the contract of transport.h.
 */
#include "config.h"

#include "base/compiler.h"
#include "base/wait.h"
#include "transport/arena.h"
#include "transport/fault.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/rdma.h"
#include "tests/transport/latency.h"
#include "tests/transport/plays.h"
#include "tests/transport/windows.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define WINDOW ((size_t)1 << 20)

static const struct dtn_fault_plan nagging = { .again_every = 3 };
static const struct dtn_fault_plan nagging_tcp = { .again_every = 2,
                                                   .delay_us = 1 };
static const struct wire_kind kinds[] = {
    { "shm", &dtn_shm_ops, NULL },
    { "tcp", &dtn_tcp_ops, NULL },
    { "shm that nags", &dtn_shm_ops, &nagging },
    { "tcp that nags", &dtn_tcp_ops, &nagging_tcp },
#ifdef HAVE_VERBS
    { "rc", &dtn_verbs_ops, NULL },
    { "rc that nags", &dtn_verbs_ops, &nagging_tcp },
#endif
};

/* Why this transport cannot run here, or NULL. */
static const char *kind_absent(const struct wire_kind *kind)
{
    return strncmp(kind->label, "rc", 2) == 0 ? rdma_absent() : NULL;
}

/* -------------------------------------------- bytes before their signal --- */

static size_t round_size(int round)
{
    static const size_t sizes[] = { 0, 1, 7, 64, 4097, 63, 65536, 12345 };

    return round % 128 == 100 ? WINDOW : sizes[round % 8];
}

/* Register and forget memory of all sizes, as a busy program does. */
static void churn(struct wire *w, int round)
{
    struct dtn_remote kept[24];
    int n = round % 24;

    for (int i = 0; i < n; i++)
        kept[i] = wire_reg(w, w->arena.backing.base + 64 * i, (size_t)i);
    for (int i = 0; i < n; i++)
        w->tp->ops->unreg(w->tp, kept[round % 2 ? i : n - 1 - i]);
}

static void bytes_round(struct wire *w, struct windows *win, int round,
                        bool busy)
{
    size_t size = round_size(round), at = (size_t)(round * 13 % MARGIN), bad;
    struct dtn_remote dst;

    for (int r = 0; r < w->n; r++) {
        if (r == w->rank)
            continue;
        wire_flush(w, r);
        wire_fill(win->out + at / 2, size, wire_seed(w->rank, r, round));
        dst = win->theirs[r];
        dst.addr += at;
        wire_put(w, r, dst, win->out + at / 2, size);
        wire_flush(w, r);
        wire_signal(w, r, 1, (uint32_t)round);
    }
    if (busy)
        churn(w, round);
    for (int r = 0; r < w->n; r++) {
        if (r == w->rank)
            continue;
        wire_await(w, r, 1, (uint32_t)round);
        bad = wire_differs(win->in[r] + at, size, wire_seed(r, w->rank, round));
        need(bad == size, "round %d: byte %zu of %zu from rank %d is not the "
             "one put before the signal", round, bad, size, r);
        wire_signal(w, r, 2, (uint32_t)round);
    }
    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            wire_await(w, r, 2, (uint32_t)round);
}

static void bytes_rounds(struct wire *w, int rounds, bool busy)
{
    struct windows win = { 0 };

    windows_open(w, &win, WINDOW);
    for (int round = 0; round < rounds; round++)
        bytes_round(w, &win, round, busy);
    windows_close(w, &win);
}

static void play_bytes(struct wire *w)
{
    int usual = w->kind->plan ? 128 : w->n <= 2 ? 1000 : 150;

    bytes_rounds(w, rounds_of(usual), false);
}

static void play_churn(struct wire *w)
{
    bytes_rounds(w, rounds_of(128), true);
}

/* -------------------------------------------------------------- signals --- */

/* Everybody sends as fast as the queues take it and reads when it likes. */
static void play_order(struct wire *w)
{
    uint32_t sent[WIRE_MAX] = { 0 }, seen[WIRE_MAX] = { 0 };
    uint32_t total = (uint32_t)rounds_of(1500);
    struct dtn_wait wait = wire_patience(w);
    const struct dtn_signal *s;
    unsigned dice = (unsigned)w->rank + 1;
    bool busy = true;

    while (busy) {
        busy = false;
        for (int r = 0; r < w->n; r++) {
            if (r == w->rank)
                continue;
            dice = dice * 1103515245 + 12345;
            for (unsigned i = dice >> 27; i > 0 && sent[r] < total; i--) {
                struct dtn_signal signal = { .fingerprint = sent[r],
                                             .len = DTN_PAYLOAD_MAX };

                for (int b = 0; b < DTN_PAYLOAD_MAX; b++)
                    signal.payload[b] =
                        (unsigned char)(sent[r] * 3 + (uint32_t)b);
                if (w->tp->ops->signal(w->tp, r, &signal, NULL) != 0)
                    break;
                sent[r]++;
            }
            for (unsigned i = dice >> 26 & 31; i > 0; i--) {
                s = w->tp->ops->peek(w->tp, r);
                if (!s)
                    break;
                wire_check(w, r, s, 0, seen[r]++);
            }
            busy |= sent[r] < total || seen[r] < total;
        }
        if (busy)
            wire_turn(w, &wait, "signals");
    }
}

/* How many signals does the queue take while the peer takes none?  Room made
 * earlier may still have to be told, so keep asking; then ask some more.
 */
static int fill_queue(struct wire *w, int peer)
{
    struct dtn_wait wait = wire_patience(w);
    struct dtn_signal s = { .len = 0 };
    int taken = 0;

    for (int extra = 0; extra < 100; extra += taken >= DTN_QUEUE_DEPTH) {
        s.fingerprint = (uint32_t)taken;
        if (w->tp->ops->signal(w->tp, peer, &s, NULL) == 0)
            taken++;
        wire_turn(w, &wait, "a queue to fill");
    }
    return taken;
}

static void drain_queue(struct wire *w, int peer, int expected)
{
    struct dtn_wait wait = wire_patience(w);
    const struct dtn_signal *s;

    for (int i = 0; i < expected; i++) {
        while ((s = w->tp->ops->peek(w->tp, peer)) == NULL)
            wire_turn(w, &wait, "a queued signal");
        need(s->fingerprint == (uint32_t)i && s->len == 0,
             "signal %d of a full queue is lost", i);
        w->tp->ops->consume(w->tp, peer);
    }
    need(w->tp->ops->peek(w->tp, peer) == NULL, "a signal too many");
}

static void play_full(struct wire *w)
{
    int taken;

    for (int round = 0; round < 5; round++) {
        for (int r = 0; r < w->n; r++) {
            if (r == w->rank)
                continue;
            taken = fill_queue(w, r);
            need(taken == DTN_QUEUE_DEPTH, "round %d: the queue to %d took %d "
                 "signals instead of %d", round, r, taken, DTN_QUEUE_DEPTH);
        }
        wire_barrier(w);
        for (int r = 0; r < w->n; r++)
            if (r != w->rank)
                drain_queue(w, r, DTN_QUEUE_DEPTH);
        wire_barrier(w);
    }
}

/* One freed place is told even if nothing else happens: 16 are sent, one is
 * consumed, then the 17th must find room while the reader only progresses.
 */
static void play_one_place(struct wire *w)
{
    int to = (w->rank + 1) % w->n, from = (w->rank + w->n - 1) % w->n;

    if (w->n == 1)
        return;
    for (uint32_t i = 0; i < DTN_QUEUE_DEPTH; i++)
        wire_signal(w, to, 3, i);
    wire_barrier(w);
    wire_await(w, from, 3, 0);
    wire_signal(w, to, 3, DTN_QUEUE_DEPTH);
    wire_barrier(w);
    for (uint32_t i = 1; i <= DTN_QUEUE_DEPTH; i++)
        wire_await(w, from, 3, i);
}

/* ------------------------------------------------------------- big puts --- */

/* Both sides of every neighbouring pair push 4 MiB before either reads; over
 * shm so much that it is stored past the caches.
 */
static void play_large(struct wire *w)
{
    bool shm = strncmp(w->kind->label, "shm", 3) == 0;
    size_t size = shm ? ((size_t)9 << 20) + 13 : (size_t)4 << 20, bad;
    struct windows win = { 0 };
    int right = (w->rank + 1) % w->n, left = (w->rank + w->n - 1) % w->n;

    if (w->n == 1)
        return;
    windows_open(w, &win, size);
    wire_fill(win.out, size, (uint32_t)w->rank);
    wire_put(w, right, win.theirs[right], win.out, size);
    if (left != right)
        wire_put(w, left, win.theirs[left], win.out, size);
    wire_signal(w, right, 4, 1);
    if (left != right)
        wire_signal(w, left, 4, 1);
    wire_await(w, left, 4, 1);
    if (left != right)
        wire_await(w, right, 4, 1);
    bad = wire_differs(win.in[left], size, (uint32_t)left);
    need(bad == size, "byte %zu from %d is wrong", bad, left);
    bad = wire_differs(win.in[right], size, (uint32_t)right);
    need(bad == size, "byte %zu from %d is wrong", bad, right);
    wire_flush(w, left);
    wire_flush(w, right);
    windows_close(w, &win);
}

/* --------------------------------------------------------- abort, close --- */

static void play_abort(struct wire *w)
{
    int culprit = -5, code = 0, rc;

    if (w->rank == 0) {
        for (int r = 1; r < w->n; r++)
            need(w->tp->ops->health(w->tp, r, &culprit, &code) == 0,
                 "a good peer is not healthy");
        w->tp->ops->abort(w->tp, w->n - 1, DTENSOR_ETIME);
        w->tp->ops->abort(w->tp, w->n - 1, DTENSOR_ETIME);
        wire_barrier(w);
        return;
    }
    rc = wire_health(w, 0, &culprit, &code);
    need(rc == DTENSOR_EABORT, "health: %s", dtensor_errname(rc));
    need(culprit == w->n - 1 && code == DTENSOR_ETIME,
         "it blames %d for %d", culprit, code);
    wire_barrier(w);
}

/* The last words of a rank that closes at once are still heard. */
static void play_last_words(struct wire *w)
{
    size_t size = 200000;
    struct windows win = { 0 };

    windows_open(w, &win, WINDOW);
    if (w->rank == 0) {
        wire_fill(win.out, size, 77);
        for (int r = 1; r < w->n; r++)
            wire_put(w, r, win.theirs[r], win.out, size);
        for (int r = 1; r < w->n; r++) {
            wire_flush(w, r);
            wire_signal(w, r, 6, 1);
            wire_flush(w, r);
        }
        return;
    }
    wire_signal(w, 0, 6, 0);          /* which it will never read */
    wire_await(w, 0, 6, 1);
    need(wire_differs(win.in[0], size, 77) == size, "last bytes are lost");
}

/* Rank 0 closes while the others keep writing: codes, never a signal. */
static void play_close(struct wire *w)
{
    struct windows win = { 0 };
    struct dtn_signal s = { .len = 0 };
    int culprit, code, rc;
    size_t done;

    windows_open(w, &win, WINDOW);
    if (w->rank == 0)
        return;
    for (int i = 0; i < 200; i++) {
        rc = w->tp->ops->put(w->tp, 0, win.theirs[0], win.out, 50000, &done);
        need(rc == 0 || rc == DTENSOR_EAGAIN || rc == DTENSOR_EPEER,
             "put: %s", dtensor_errname(rc));
        rc = w->tp->ops->signal(w->tp, 0, &s, NULL);
        need(rc == 0 || rc == DTENSOR_EAGAIN || rc == DTENSOR_EPEER,
             "signal: %s", dtensor_errname(rc));
        w->tp->ops->progress(w->tp);
        w->tp->ops->health(w->tp, 0, &culprit, &code);
    }
}

/* Ranks that leave while nobody reads what they sent: one after the other. */
static void play_leave(struct wire *w)
{
    const struct timespec later = { 0, 300000000 };

    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            wire_signal(w, r, 6, 1);
    if (w->rank > 0)
        nanosleep(&later, NULL);
}

/* ------------------------------------------------------------ the suite --- */

static const struct scenario {
    const char *claim;
    void (*play)(struct wire *w);
    int least;                        /* ranks                               */
    int close_ms;                     /* a close takes less; 0: any time     */
} scenarios[] = {
    { "bytes are there before their signal is seen", play_bytes, 1, 0 },
    { "puts without a flush are there, too", play_puts, 1, 0 },
    { "nor is one of many strided rows missing", play_strided, 2, 0 },
    { "signals arrive once, in order, with their payload", play_order, 1, 0 },
    { "a full queue says EAGAIN and loses nothing", play_full, 1, 0 },
    { "every place freed in a queue is told", play_one_place, 1, 0 },
    { "big puts both ways at once get on", play_large, 1, 0 },
    { "data of a signal are there when it is seen", play_eager, 1, 0 },
    { "a full queue takes no data either", play_eager_full, 1, 0 },
    { "data that are kept stay until their signal is consumed", play_kept,
      1, 0 },
    { "a peer that keeps enough takes no more", play_kept_full, 2, 0 },
    { "memory comes and goes under load", play_churn, 1, 0 },
    { "map shows the peer's memory, or NULL", play_map, 1, 0 },
    { "reg takes what peers can reach", play_outside, 1, 0 },
    { "private memory is fetched, or refused", play_fetch, 1, 0 },
    { "a put outside of registered memory hurts nobody", play_stray, 2, 0 },
    { "nor do data of a signal", play_eager_stray, 2, 0 },
    { "abort tells who and why", play_abort, 1, 0 },
    { "the last words before close are heard", play_last_words, 2, 0 },
    { "a rank may close at any time", play_close, 2, 0 },
    { "and waits for no peer that has left", play_leave, 2, 900 },
};

struct play {
    const struct wire_kind *kind;
    const struct scenario *scenario;
};

static void rank_play(int rank, int n, void *arg)
{
    const struct play *play = arg;
    int fds = wire_count_fds();
    int64_t start_ns, took_ms;
    struct wire w;

    wire_open(&w, play->kind, rank, n);
    wire_connect_all(&w);
    play->scenario->play(&w);
    start_ns = dtn_now_ns();
    wire_close(&w);
    took_ms = (dtn_now_ns() - start_ns) / 1000000;
    need(play->scenario->close_ms == 0 || took_ms < play->scenario->close_ms,
         "it took %d ms to close", (int)took_ms);
    need(wire_count_fds() == fds, "%d descriptors leaked",
         wire_count_fds() - fds);
}

/* Arguments: only transports whose label begins so; at most so many ranks. */
int main(int argc, char **argv)
{
    static const int sizes[] = { 1, 2, 3, 4, 7 };    /* nagged: odd ones */
    const char *only = argc > 1 ? argv[1] : "";
    int most = argc > 2 ? atoi(argv[2]) : WIRE_MAX;

    ok(dtn_transport_find("shm") == &dtn_shm_ops &&
       dtn_transport_find("tcp") == &dtn_tcp_ops &&
       !dtn_transport_find("pigeon"), "transports are found by name");
    for (size_t k = 0; k < DTN_COUNT(kinds); k++) {
        for (size_t s = 0; s < DTN_COUNT(scenarios); s++) {
            struct play play = { &kinds[k], &scenarios[s] };
            const char *absent = kind_absent(&kinds[k]);
            int bad = 0;

            if (strncmp(kinds[k].label, only, strlen(only)) != 0)
                break;
            if (absent) {
                skip(kinds[k].label, absent);
                break;
            }

            for (size_t i = 0; i < DTN_COUNT(sizes); i++) {
                if (sizes[i] < scenarios[s].least || sizes[i] > most ||
                    (kinds[k].plan && sizes[i] % 2 == 0))
                    continue;
                wire_prepare();
                bad += ranks_run(sizes[i], 60, rank_play, &play, NULL);
                wire_cleanup();
            }
            ok(bad == 0, "%s: %s", kinds[k].label, scenarios[s].claim);
        }
    }
    for (size_t k = 0; k < DTN_COUNT(kinds); k++) {
        if (kinds[k].plan || kind_absent(&kinds[k])
            || strncmp(kinds[k].label, only, strlen(only)) != 0)
            continue;
        wire_prepare();
        ranks_run(2, 60, latency_rank, (void *)(uintptr_t)&kinds[k], NULL);
        wire_cleanup();
    }
    return done();
}
