/* windows.c - memory of each rank for each other rank, and its contents */
#include "transport/arena.h"
#include "transport/transport.h"
#include "tests/transport/windows.h"

/* ------------------------------------------------------------- patterns --- */

void wire_fill(unsigned char *mem, size_t size, uint32_t seed)
{
    for (size_t i = 0; i < size; i++)
        mem[i] = (unsigned char)(seed * 37 + i * 7 + (i >> 8));
}

size_t wire_differs(const unsigned char *mem, size_t size, uint32_t seed)
{
    size_t i = 0;

    while (i < size && mem[i] ==
           (unsigned char)(seed * 37 + i * 7 + (i >> 8)))
        i++;
    return i;
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
