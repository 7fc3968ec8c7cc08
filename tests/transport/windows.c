/* windows.c - memory of each rank for each other rank, and its contents */
#include "transport/arena.h"
#include "transport/transport.h"
#include "tests/transport/windows.h"

#include <string.h>

/* ------------------------------------------------------------- patterns --- */

/* Bytes [at, at + size) of the pattern. */
static void pattern(unsigned char *mem, size_t at, size_t size, uint32_t seed)
{
    for (size_t i = at; i < at + size; i++)
        mem[i - at] = (unsigned char)(seed * 37 + i * 7 + (i >> 8));
}

void wire_fill(unsigned char *mem, size_t size, uint32_t seed)
{
    pattern(mem, 0, size, seed);
}

size_t wire_differs(const unsigned char *mem, size_t size, uint32_t seed)
{
    unsigned char want[1024];
    size_t n, i = 0;

    for (size_t at = 0; at < size; at += n) {
        n = size - at < sizeof want ? size - at : sizeof want;
        pattern(want, at, n, seed);
        if (memcmp(mem + at, want, n) == 0)
            continue;
        while (mem[at + i] == want[i])
            i++;
        return at + i;
    }
    return size;
}

uint32_t wire_seed(int from, int to, int round)
{
    return (uint32_t)(from * 131 + to * 17 + round * 3 + 1);
}

/* -------------------------------------------------------------- windows --- */

void windows_open(struct wire *w, struct windows *win, size_t size)
{
    win->out = wire_alloc(w, size + 2 * MARGIN);
    for (int r = 0; r < w->n; r++) {
        if (r == w->rank)
            continue;
        win->in[r] = wire_alloc(w, size + 2 * MARGIN);
        win->mine[r] = wire_reg(w, win->in[r], size + 2 * MARGIN);
    }
    wire_swap(w, win->mine, win->theirs);
}

void windows_close(struct wire *w, struct windows *win)
{
    wire_barrier(w);
    for (int r = 0; r < w->n; r++) {
        if (r == w->rank)
            continue;
        w->tp->ops->unreg(w->tp, win->mine[r]);
        dtn_arena_free(&w->arena, win->in[r]);
    }
    dtn_arena_free(&w->arena, win->out);
}
