/* plays_puts.c - scenarios about puts that may wait for a signal */
#include "base/compiler.h"
#include "transport/transport.h"
#include "tests/transport/plays.h"
#include "tests/transport/windows.h"

#include <stdbool.h>

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
