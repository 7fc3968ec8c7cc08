/* plays_memory.c - scenarios about memory: registered, mapped, fetched */
#include "transport/arena.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/transport/plays.h"
#include "tests/transport/windows.h"

#include <stdbool.h>
#include <string.h>

/* Can a peer reach only the arena, or any memory? */
static bool kind_needs_arena(const struct wire_kind *kind)
{
    return kind->ops != &dtn_tcp_ops;
}

void play_map(struct wire *w)
{
    bool maps = strncmp(w->kind->label, "shm", 3) == 0;
    struct windows win = { 0 };
    struct dtn_remote far = { WIRE_ARENA * 2, 1 };
    const unsigned char *seen;

    windows_open(w, &win, 4096);
    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            wire_fill(win.in[r], 4096, wire_seed(w->rank, r, 0));
    wire_barrier(w);
    for (int r = 0; r < w->n; r++) {
        if (r == w->rank)
            continue;
        need(!w->tp->ops->map == !maps, "it has a map, or none");
        if (!maps)
            continue;
        seen = w->tp->ops->map(w->tp, r, win.theirs[r]);
        need(seen && wire_differs(seen, 4096, wire_seed(r, w->rank, 0)) == 4096,
             "the mapped pointer shows other bytes than the peer's");
        need(w->tp->ops->map(w->tp, r, far) == NULL, "mapped beyond the end");
        need(w->tp->ops->map(w->tp, r, (struct dtn_remote){ 0, 0 }) == NULL,
             "mapped nowhere");
    }
    windows_close(w, &win);
}

void play_outside(struct wire *w)
{
    static unsigned char elsewhere[100];
    const struct dtn_backing *backing = &w->arena.backing;
    bool arena = kind_needs_arena(w->kind);
    struct dtn_remote remote = { 7, 7 };
    int rc = w->tp->ops->reg(w->tp, elsewhere, sizeof elsewhere, &remote);

    need(rc == (arena ? DTENSOR_EINVAL : 0), "reg: %s", dtensor_errname(rc));
    need(!arena || (remote.addr == 7 && remote.key == 7),
         "output touched on failure");
    rc = w->tp->ops->reg(w->tp, backing->base + backing->size - 10, 11,
                         &remote);
    need(rc == (arena ? DTENSOR_EINVAL : 0), "half outside: %s",
         dtensor_errname(rc));
    need(w->tp->ops->reg(w->tp, backing->base, backing->size, &remote) == 0,
         "the whole arena cannot be registered");
}

/* Private memory that a transport which maps takes is fetched, and put into. */
void play_fetch(struct wire *w)
{
    static unsigned char mine[70000], got[70000];
    struct dtn_remote names[WIRE_MAX] = { { 0, 0 } }, theirs[WIRE_MAX];
    const size_t size = sizeof mine, part = size / WIRE_MAX;
    int rc;

    wire_fill(mine, size, wire_seed(w->rank, 0, 1));
    for (int r = 0; r < w->n; r++)    /* all have tried whom they can read */
        if (w->tp->ops->fetch && w->n > 1)
            w->tp->ops->reg(w->tp, mine, size, &names[r]);
    wire_swap(w, names, theirs);
    for (int r = 0; r < w->n; r++) {
        if (r == w->rank)
            continue;
        rc = w->tp->ops->fetch
           ? w->tp->ops->fetch(w->tp, r, got, theirs[r], size)
           : DTENSOR_EINVAL;
        need(rc == (theirs[r].key ? 0 : DTENSOR_EINVAL), "fetch from %d: %s",
             r, dtensor_errname(rc));
        need(rc != 0 || wire_differs(got, size, wire_seed(r, 0, 1)) == size,
             "%d: wrong bytes", r);
    }
    wire_barrier(w);
    for (int r = 0; r < w->n; r++) {
        theirs[r].addr += part * (size_t)w->rank;
        wire_fill(got, part, wire_seed(w->rank, r, 2));
        if (r != w->rank && theirs[r].key)
            wire_put(w, r, theirs[r], got, part);
    }
    wire_barrier(w);
    for (int r = 0; r < w->n; r++)
        need(r == w->rank || !names[r].key
             || wire_differs(mine + part * (size_t)r, part,
                        wire_seed(r, w->rank, 2)) == part, "put by %d", r);
}

/* A put past what was registered: refused, or the end of the connection. */
void play_stray(struct wire *w)
{
    bool shm = strncmp(w->kind->label, "shm", 3) == 0;
    int peer = w->rank ^ 1, culprit, code, rc;
    struct windows win = { 0 };
    struct dtn_remote dst;
    static unsigned char junk[300];
    size_t done;

    windows_open(w, &win, 4096);
    if (peer < w->n) {
        memset(win.in[peer], 0x5a, 4096 + 2 * MARGIN);
        wire_barrier(w);
        dst = win.theirs[peer];
        dst.addr += shm ? WIRE_ARENA - 100 : 4096 + 2 * MARGIN - 100;
        while ((rc = w->tp->ops->put(w->tp, peer, dst, junk, sizeof junk,
                                     &done)) == DTENSOR_EAGAIN)
            w->tp->ops->progress(w->tp);
        /* Over tcp the peer's own stray put may have ended it already. */
        need(shm ? rc == DTENSOR_EINVAL : rc == 0 || rc == DTENSOR_EPEER,
             "stray put: %s", dtensor_errname(rc));
        if (!shm) {
            rc = wire_health(w, peer, &culprit, &code);
            need(rc == DTENSOR_EPEER, "health after a stray put: %s",
                 dtensor_errname(rc));
            need(w->tp->ops->flush(w->tp, peer) != DTENSOR_EAGAIN,
                 "flush waits for the dead");
        }
        for (int i = 0; i < 4096 + 2 * MARGIN; i++)
            need(win.in[peer][i] == 0x5a, "a stray put wrote byte %d", i);
    } else {
        wire_barrier(w);
    }
    windows_close(w, &win);
}
