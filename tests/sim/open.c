/* open.c - descriptors of the simulated kernel
 *
 * A descriptor is a number of a process; what is behind it lives until its last
 * descriptor is closed.  The numbers begin at 100,000, so that real ones, such
 * as that of a memfd, can be told from them.
 */
#include "tests/sim/kernel.h"
#include "tests/sim/memory.h"
#include "tests/sim/open.h"
#include "tests/sim/sim.h"
#include "tests/sim/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sim_file **table;
static int ntable, first_free;
struct sim_open *sim_listeners[SIM_PORTS];

struct sim_open *sim_open_of(int fd)
{
    const int i = fd - SIM_FD_BASE;

    if (i >= 0 && i < ntable && table[i])
        return table[i]->file;
    errno = EBADF;
    return NULL;
}

int sim_open_as(struct sim_open *file)
{
    struct sim_file *d = __real_calloc(1, sizeof *d);
    int i = first_free;

    while (i < ntable && table[i])
        i++;
    if (i == ntable) {
        ntable = ntable ? 2 * ntable : 64;
        table = __real_realloc(table, (size_t)ntable * sizeof(void *));
        memset(table + i, 0, (size_t)(ntable - i) * sizeof(void *));
    }
    first_free = i + 1;
    table[i] = d;
    d->file = file;
    d->fd = SIM_FD_BASE + i;
    d->next = sim_self->process->files;
    d->link = &sim_self->process->files;
    if (d->next)
        d->next->link = &d->next;
    *d->link = d;
    file->refs++;
    file->process = sim_self->process;
    return d->fd;
}

struct sim_open *sim_open_make(enum sim_kind kind)
{
    struct sim_open *file = __real_calloc(1, sizeof *file);

    file->kind = kind;
    file->tail = &file->head;
    file->up_at = file->ends_at = file->off_at = SIM_NEVER;
    file->process = sim_self->process;
    return file;
}

void sim_chunk_free(struct sim_chunk *chunk)
{
    for (int i = 0; i < chunk->nfds; i++)
        __real_close(chunk->fds[i]);
    __real_free(chunk);
}

int64_t sim_travel(const struct sim_open *to)
{
    const int64_t most = to->family == AF_UNIX ? 20000
                                               : sim_options->latency_ns;

    return sim_now() + 1000 + (int64_t)sim_random((uint64_t)most);
}

/* The other side of a socket hears of its end after `ns`. */
static void end_tell(struct sim_open *file, int64_t ns)
{
    struct sim_open *peer = file->peer;
    int64_t at;

    if (!peer)
        return;
    file->peer = NULL;
    peer->peer = NULL;
    if (ns >= SIM_NEVER) {
        peer->off_at = sim_now();
        return;
    }
    at = sim_travel(peer) + ns;
    if (peer->ends_at == SIM_NEVER)
        peer->ends_at = at > peer->last_at ? at : peer->last_at + 1;
    sim_alert(peer->process, peer->ends_at);
}

static void file_end(struct sim_open *file, int64_t ns)
{
    struct sim_chunk *chunk;
    struct sim_watch *watch;
    struct sim_open *waiting, **list;

    end_tell(file, ns);
    while ((chunk = file->head)) {
        file->head = chunk->next;
        sim_chunk_free(chunk);
    }
    while ((watch = file->watches)) {
        file->watches = watch->next;
        __real_free(watch);
    }
    while ((waiting = file->backlog)) {
        file->backlog = waiting->next;
        file_end(waiting, ns);
    }
    for (int i = 0; file->kind == SIM_LISTENER && i < SIM_PORTS; i++)
        for (list = &sim_listeners[i]; *list; list = &(*list)->next)
            if (*list == file) {
                *list = file->next;
                i = SIM_PORTS;
                break;
            }
    __real_free(file);
}

static void descriptor_close(struct sim_file *d, int64_t ns)
{
    const int i = d->fd - SIM_FD_BASE;

    *d->link = d->next;
    if (d->next)
        d->next->link = d->link;
    table[i] = NULL;
    first_free = i < first_free ? i : first_free;
    if (--d->file->refs == 0)
        file_end(d->file, ns);
    __real_free(d);
}

int sim_close(int fd)
{
    if (!sim_open_of(fd))
        return -1;
    descriptor_close(table[fd - SIM_FD_BASE], 0);
    return 0;
}

int sim_duplicate(int fd)
{
    struct sim_open *file = sim_open_of(fd);

    return file ? sim_open_as(file) : -1;
}

void sim_files_close(struct sim_process *process, int64_t ns)
{
    while (process->files)
        descriptor_close(process->files, ns);
}

uint64_t sim_files_count(const struct sim_process *process)
{
    uint64_t n = 0;

    for (const struct sim_file *d = process->files; d; d = d->next)
        n++;
    return n;
}

void sim_files_end(void)
{
    first_free = 0;
}

int sim_pidfd(struct sim_process *process)
{
    struct sim_open *file = sim_open_make(SIM_PIDFD);

    file->of = process;
    return sim_open_as(file);
}

