/* ready.c - which descriptors are ready, and when the next one will be */
#include "tests/sim/kernel.h"
#include "tests/sim/memory.h"
#include "tests/sim/open.h"
#include "tests/sim/sim.h"
#include "tests/sim/sockets.h"

#include <errno.h>
#include <poll.h>

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static short listener_ready(const struct sim_open *file)
{
    for (const struct sim_open *one = file->backlog; one; one = one->next)
        if (one->up_at <= sim_now())
            return POLLIN;
    return 0;
}

static short socket_ready(const struct sim_open *file)
{
    const int64_t now = sim_now();
    const bool ended = file->ends_at <= now;
    const bool room = !file->peer || file->peer->queued < file->peer->capacity;
    short ready = 0;

    if (file->up_at > now)
        return 0;
    if (file->error)
        return POLLIN | POLLOUT | POLLERR | POLLHUP;
    if ((file->head && file->head->at <= now) || ended)
        ready |= POLLIN;
    if (ended && !file->peer)
        ready |= POLLHUP;
    if (room)
        ready |= POLLOUT;
    return ready;
}

static short open_ready(const struct sim_open *file)
{
    switch (file->kind) {
    case SIM_LISTENER:
        return listener_ready(file);
    case SIM_SOCKET:
        return socket_ready(file);
    case SIM_PIDFD:
        return (file->of->state == SIM_ENDED || file->of->state == SIM_DEAD)
            && file->of->gone_at <= sim_now() ? POLLIN : 0;
    default:
        return 0;
    }
}

bool sim_ready(int fd, short events, short *revents)
{
    struct sim_open *file = sim_open_of(fd);

    *revents = file ? (short)(open_ready(file)
                              & (events | POLLERR | POLLHUP))
                    : POLLNVAL;
    if (file && file->kind == SIM_SOCKET && events & POLLOUT
        && !(*revents & POLLOUT) && file->peer)
        file->peer->wants_room = true;
    return *revents != 0;
}

/* After now: what is there already comes no more. */
static int64_t open_next(const struct sim_open *file)
{
    const int64_t now = sim_now();
    int64_t next = SIM_NEVER;

    if (file->up_at > now)
        next = file->up_at;
    if (file->head && file->head->at > now)
        next = earlier(next, file->head->at);
    if (file->ends_at > now)
        next = earlier(next, file->ends_at);
    for (const struct sim_open *one = file->backlog; one; one = one->next)
        if (one->up_at > now)
            next = earlier(next, one->up_at);
    return next;
}

int64_t sim_ready_next(int fd)
{
    const struct sim_open *file = sim_open_of(fd);

    return file ? open_next(file) : SIM_NEVER;
}

int64_t sim_files_next(const struct sim_process *process)
{
    int64_t next = SIM_NEVER;

    for (const struct sim_file *d = process->files; d; d = d->next)
        next = earlier(next, open_next(d->file));
    return next;
}

/* ---------------------------------------------------------------- epoll --- */

int sim_epoll(void)
{
    return sim_open_as(sim_open_make(SIM_EPOLL));
}

int sim_epoll_change(int epoll, int op, int fd,
                     const struct epoll_event *event)
{
    struct sim_watch **list = &sim_open_of(epoll)->watches, *watch;

    while (*list && (*list)->fd != fd)
        list = &(*list)->next;
    watch = *list;
    if (op == EPOLL_CTL_DEL && watch) {
        *list = watch->next;
        __real_free(watch);
    } else if (op == EPOLL_CTL_MOD && watch) {
        watch->event = *event;
    } else if (op == EPOLL_CTL_ADD && !watch) {
        *list = watch = __real_calloc(1, sizeof *watch);
        watch->fd = fd;
        watch->event = *event;
    } else {
        errno = watch ? EEXIST : ENOENT;
        return -1;
    }
    return 0;
}

/* In an order of the seed. */
int sim_epoll_look(int epoll, struct epoll_event events[], int n)
{
    int got = 0, at;
    short revents;

    for (const struct sim_watch *w = sim_open_of(epoll)->watches; w && got < n;
         w = w->next)
        if (sim_open_of(w->fd)
            && sim_ready(w->fd, (short)w->event.events, &revents)) {
            at = (int)sim_random((uint64_t)got + 1);
            events[got] = events[at];
            events[at] = w->event;
            events[at].events = (uint32_t)revents;
            got++;
        }
    return got;
}
