/* plays_eager.c - scenarios about data that go with a signal */
#include "base/compiler.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/transport/plays.h"
#include "tests/transport/windows.h"

#include <stdbool.h>
#include <string.h>

/* Small puts go behind the data. */
#define PUTS_AT ((size_t)DTN_QUEUE_DEPTH * DTN_EAGER_MAX)
#define PUT_BYTES ((size_t)200)

static size_t eager_size(int round)
{
    static const size_t sizes[] = { 45, 1, 1000, 64, 4096, 500, 2048, 4095, 8 };

    return sizes[round % (int)DTN_COUNT(sizes)];
}

/* Which rounds put something right before, which may wait for the signal. */
static bool eager_puts(int round)
{
    return round % 3 == 1;
}

/* The data leave from the arena or from private memory, which is overwritten at
 * once.
 */
static void eager_send(struct wire *w, struct windows *win, int r, int round)
{
    static unsigned char outside[DTN_EAGER_MAX];
    const size_t size = eager_size(round);
    const size_t slot = (size_t)round % DTN_QUEUE_DEPTH;
    unsigned char *src = round % 2 ? outside : win->out;
    struct dtn_remote put = win->theirs[r];
    struct dtn_eager data = { win->theirs[r], src, size };

    if (eager_puts(round)) {
        wire_flush(w, r);
        put.addr += PUTS_AT + slot * PUT_BYTES;
        wire_fill(win->out + PUTS_AT, PUT_BYTES,
                     wire_seed(w->rank, r, round + 1));
        wire_put(w, r, put, win->out + PUTS_AT, PUT_BYTES);
    }
    wire_fill(src, size, wire_seed(w->rank, r, round));
    data.dst.addr += slot * DTN_EAGER_MAX;
    wire_send(w, r, 1, (uint32_t)round, &data);
    memset(src, 0xee, size);
}

static void eager_receive(struct wire *w, struct windows *win, int r, int round)
{
    const size_t size = eager_size(round);
    const size_t slot = (size_t)round % DTN_QUEUE_DEPTH;
    struct dtn_wait wait = wire_patience(w);
    const struct dtn_signal *signal;
    size_t bad;

    while ((signal = w->tp->ops->peek(w->tp, r)) == NULL)
        wire_turn(w, &wait, "a signal with data");
    bad = wire_differs(win->in[r] + slot * DTN_EAGER_MAX, size,
                          wire_seed(r, w->rank, round));
    need(bad == size, "round %d: byte %zu of %zu from rank %d is not what went "
         "with the signal", round, bad, size, r);
    bad = wire_differs(win->in[r] + PUTS_AT + slot * PUT_BYTES, PUT_BYTES,
                          wire_seed(r, w->rank, round + 1));
    need(!eager_puts(round) || bad == PUT_BYTES, "round %d: byte %zu of the "
         "put before the signal is wrong", round, bad);
    wire_check(w, r, signal, 1, (uint32_t)round);
}

/* Each rank sends up to 16 signals before it reads. */
void play_eager(struct wire *w)
{
    const int rounds = rounds_of(w->n <= 2 ? 600 : 150), burst = 12;
    struct windows win = { 0 };

    windows_open(w, &win, PUTS_AT + DTN_QUEUE_DEPTH * PUT_BYTES);
    for (int round = 0; round < rounds; round += burst) {
        for (int i = 0; i < burst; i++)
            for (int r = 0; r < w->n; r++)
                if (r != w->rank)
                    eager_send(w, &win, r, round + i);
        for (int i = 0; i < burst; i++)
            for (int r = 0; r < w->n; r++)
                if (r != w->rank)
                    eager_receive(w, &win, r, round + i);
    }
    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            wire_flush(w, r);
    windows_close(w, &win);
}

/* To a full queue: EAGAIN, as often as it is asked, and nothing is written. */
static void eager_refused(struct wire *w, struct windows *win, int r)
{
    const struct dtn_signal signal = { .len = 100 };
    struct dtn_eager data = { win->theirs[r], win->out, 100 };
    struct dtn_wait wait = wire_patience(w);
    int rc;

    for (int i = 0; i < 100; i++) {
        rc = w->tp->ops->signal(w->tp, r, &signal, &data);
        need(rc == DTENSOR_EAGAIN, "a full queue says %s", dtensor_errname(rc));
        wire_turn(w, &wait, "a full queue");
    }
}

void play_eager_full(struct wire *w)
{
    struct windows win = { 0 };

    windows_open(w, &win, 4096);
    memset(win.out, 0xa5, 100);
    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            memset(win.in[r], 0x5a, 100);
    wire_barrier(w);
    for (int r = 0; r < w->n; r++)
        for (uint32_t i = 0; r != w->rank && i < DTN_QUEUE_DEPTH; i++)
            wire_signal(w, r, 2, i);
    wire_barrier(w);
    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            eager_refused(w, &win, r);
    wire_barrier(w);
    for (int r = 0; r < w->n; r++) {
        for (uint32_t i = 0; r != w->rank && i < DTN_QUEUE_DEPTH; i++)
            wire_await(w, r, 2, i);
        for (int i = 0; r != w->rank && i < 100; i++)
            need(win.in[r][i] == 0x5a, "byte %d was written", i);
    }
    windows_close(w, &win);
}

/* Data for memory that was not registered: refused, or the end of the
 * connection, but neither written nor announced.
 */
void play_eager_stray(struct wire *w)
{
    bool shm = strncmp(w->kind->label, "shm", 3) == 0;
    const struct dtn_signal signal = { .len = 300 };
    struct dtn_wait wait = wire_patience(w);
    int peer = w->rank ^ 1, culprit, code, rc = 0;
    struct windows win = { 0 };
    struct dtn_eager data;

    windows_open(w, &win, 4096);
    if (peer < w->n) {
        memset(win.in[peer], 0x5a, 4096 + 2 * MARGIN);
        wire_barrier(w);
        data = (struct dtn_eager){ win.theirs[peer], win.out, 300 };
        data.dst.addr += shm ? WIRE_ARENA - 100 : 4096 + 2 * MARGIN - 100;
        while ((rc = w->tp->ops->signal(w->tp, peer, &signal, &data))
               == DTENSOR_EAGAIN)
            wire_turn(w, &wait, "stray data");
        need(shm ? rc == DTENSOR_EINVAL : rc == 0 || rc == DTENSOR_EPEER,
             "stray data: %s", dtensor_errname(rc));
        for (rc = 0; !shm && rc == 0; wire_turn(w, &wait, "the end")) {
            need(!w->tp->ops->peek(w->tp, peer), "stray data are announced");
            rc = w->tp->ops->health(w->tp, peer, &culprit, &code);
        }
        need(shm || rc == DTENSOR_EPEER, "health after stray data: %s",
             dtensor_errname(rc));
        need(!w->tp->ops->peek(w->tp, peer), "stray data are announced");
        for (int i = 0; i < 4096 + 2 * MARGIN; i++)
            need(win.in[peer][i] == 0x5a, "stray data wrote byte %d", i);
    } else {
        wire_barrier(w);
    }
    windows_close(w, &win);
}
