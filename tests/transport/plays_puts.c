/* plays_puts.c - scenarios about puts that wait for a signal, and of rows */
#include "base/compiler.h"
#include "base/wait.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/transport/plays.h"
#include "tests/transport/windows.h"

#include <stdbool.h>
#include <string.h>

#define SHARE ((size_t)128 << 10) /* of the bytes to put, for each peer       */
#define PIECES_MAX 4

/* The piece that begins at *at; *at moves to its end. */
static size_t piece_take(int round, int piece, size_t *at)
{
    static const size_t sizes[] = { 1, 2048, 70000, 64, 33000, 8192, 700 };
    const size_t size = sizes[(round + piece * 2) % (int)DTN_COUNT(sizes)];
    const size_t left = SHARE - *at, taken = size < left ? size : left;

    *at += taken;
    return taken;
}

static int pieces_of(int round)
{
    return 1 + round / 2 % PIECES_MAX;
}

static size_t pieces_bytes(int round)
{
    size_t at = 0;

    for (int i = 0; i < pieces_of(round); i++)
        piece_take(round, i, &at);
    return at;
}

static void pieces_put(struct wire *w, struct windows *win, int peer, int round,
                       int piece)
{
    struct dtn_remote dst = win->theirs[peer];
    size_t at = 0, size = 0;

    for (int i = 0; i <= piece; i++)
        size = piece_take(round, i, &at);
    dst.addr += at - size;
    wire_put(w, peer, dst, win->out + SHARE * (size_t)peer + at - size, size);
}

/* Either all pieces of a peer and its signal, then the next peer; or the first
 * piece of each peer, then the second, ..., and then the signals.
 */
static void pieces_send(struct wire *w, struct windows *win, int round)
{
    const bool mixed = round % 2 != 0;
    const int n = w->n, pieces = pieces_of(round);

    for (int i = 0; i < n * pieces; i++) {
        const int peer = mixed ? i % n : i / pieces;
        const int piece = mixed ? i / n : i % pieces;

        if (peer == w->rank)
            continue;
        pieces_put(w, win, peer, round, piece);
        if (!mixed && piece == pieces - 1)
            wire_signal(w, peer, 1, (uint32_t)round);
    }
    for (int peer = 0; mixed && peer < n; peer++)
        if (peer != w->rank)
            wire_signal(w, peer, 1, (uint32_t)round);
}

static void pieces_receive(struct wire *w, const struct windows *win, int peer,
                           int round)
{
    const size_t size = pieces_bytes(round);
    size_t bad;

    wire_await(w, peer, 1, (uint32_t)round);
    bad = wire_differs(win->in[peer], size, wire_seed(peer, w->rank, round));
    need(bad == size, "round %d: byte %zu of %zu from rank %d is not the one "
         "put before the signal", round, bad, size, peer);
    wire_signal(w, peer, 2, (uint32_t)round);
}

void play_puts(struct wire *w)
{
    struct windows win = { 0 };

    windows_open(w, &win, SHARE * (size_t)w->n);
    for (int round = 0; round < rounds_of(w->kind->plan ? 40 : 150); round++) {
        for (int r = 0; r < w->n; r++) {
            if (r == w->rank)
                continue;
            wire_flush(w, r);
            wire_fill(win.out + SHARE * (size_t)r, pieces_bytes(round),
                      wire_seed(w->rank, r, round));
        }
        pieces_send(w, &win, round);
        for (int r = 0; r < w->n; r++)
            if (r != w->rank)
                pieces_receive(w, &win, r, round);
        for (int r = 0; r < w->n; r++)
            if (r != w->rank)
                wire_await(w, r, 2, (uint32_t)round);
    }
    windows_close(w, &win);
}

/* --------------------------------------------------------- strided rows --- */

#define STRIDED ((size_t)512 << 10)  /* bytes of a window                     */

/* Rows that fit in a window on both sides. */
static struct dtn_strided strided_of(int round, const unsigned char *src)
{
    static const size_t bytes[] = { 2048, 8, 300, 4096, 3000, 17000, 9000 };
    static const size_t apart[] = { 0, 2048, 8 };
    struct dtn_strided strided = { .src = src, .bytes = bytes[round % 7] };
    size_t most;

    strided.src_step = (ptrdiff_t)(strided.bytes + apart[round % 3]);
    strided.dst_step = (ptrdiff_t)(strided.bytes + apart[round / 2 % 3]);
    most = STRIDED / (strided.bytes + 2048);
    strided.n = round % 5 == 0 ? 1 : 1 + most * (size_t)(round % 4) / 4;
    return strided;
}

/* Rows that the transport does not take together are put one by one. */
static void strided_put(struct wire *w, int peer, struct dtn_remote dst,
                        struct dtn_strided strided)
{
    struct dtn_wait wait = wire_patience(w);
    size_t done;
    int rc = 0;

    for (; strided.n > 0; strided.n -= done) {
        done = 0;
        if (rc != DTENSOR_EINVAL)
            rc = w->tp->ops->put_rows(w->tp, peer, dst, &strided, &done);
        if (rc == DTENSOR_EAGAIN)
            wire_turn(w, &wait, "rows to be taken");
        if (rc == DTENSOR_EINVAL) {
            wire_put(w, peer, dst, strided.src, strided.bytes);
            done = 1;
        }
        need(rc == 0 || rc == DTENSOR_EAGAIN || rc == DTENSOR_EINVAL,
             "rows: %s", dtensor_errname(rc));
        strided.src += (ptrdiff_t)done * strided.src_step;
        dst.addr += (uint64_t)((ptrdiff_t)done * strided.dst_step);
    }
}

/* Every byte of a row is the peer's, and none between rows has changed. */
static void strided_check(const unsigned char *in, const unsigned char *theirs,
                          const struct dtn_strided *strided, int round)
{
    const size_t step = (size_t)strided->dst_step;

    for (size_t i = 0; i < STRIDED; i++) {
        const size_t row = i / step, at = i % step;
        const bool inside = row < strided->n && at < strided->bytes;
        const size_t from = row * (size_t)strided->src_step + at;

        need(in[i] == (inside ? theirs[from] : 0x77), "rows %d: byte %zu of "
             "row %zu is wrong", round, at, row);
    }
}

void play_strided(struct wire *w)
{
    static unsigned char theirs[STRIDED];
    const int peer = w->rank ^ 1;
    struct windows win = { 0 };

    windows_open(w, &win, STRIDED);
    for (int round = 0; w->tp->ops->put_rows && round < 60; round++) {
        struct dtn_strided strided = strided_of(round, win.out);

        if (peer < w->n) {
            memset(win.in[peer], 0x77, STRIDED);
            wire_fill(win.out, STRIDED, wire_seed(w->rank, peer, round));
            wire_fill(theirs, STRIDED, wire_seed(peer, w->rank, round));
        }
        wire_barrier(w);
        if (peer < w->n) {
            strided_put(w, peer, win.theirs[peer], strided);
            wire_signal(w, peer, 1, (uint32_t)round);
            wire_await(w, peer, 1, (uint32_t)round);
            strided_check(win.in[peer], theirs, &strided, round);
            wire_flush(w, peer);
        }
        wire_barrier(w);
    }
    windows_close(w, &win);
}
