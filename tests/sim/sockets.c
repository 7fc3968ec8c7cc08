/* sockets.c - connections between coroutines */
#include "tests/sim/kernel.h"
#include "tests/sim/memory.h"
#include "tests/sim/open.h"
#include "tests/sim/sim.h"
#include "tests/sim/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/un.h>

enum { PORT_FIRST = 20000, NPORTS = 40000 };

static int next_port;

static struct sim_open **listeners_of(const struct sockaddr *at, socklen_t size)
{
    const struct sockaddr_in *in = (const void *)at;
    unsigned hash = 0;

    if (at->sa_family == AF_INET)
        return &sim_listeners[ntohs(in->sin_port) % SIM_PORTS];
    for (socklen_t i = 0; i < size; i++)
        hash = hash * 31 + ((const unsigned char *)at)[i];
    return &sim_listeners[hash % SIM_PORTS];
}

static bool same(const struct sim_open *file, const struct sockaddr *at,
                 socklen_t size)
{
    const struct sockaddr_in *in = (const void *)at;
    const struct sockaddr_in *mine = (const void *)&file->local;

    if (at->sa_family == AF_INET)
        return mine->sin_family == AF_INET && mine->sin_port == in->sin_port
            && mine->sin_addr.s_addr == in->sin_addr.s_addr;
    return file->local_size == size && memcmp(&file->local, at, size) == 0;
}

static struct sim_open *listener_find(const struct sockaddr *at, socklen_t size)
{
    struct sim_open *file = *listeners_of(at, size);

    while (file && !same(file, at, size))
        file = file->next;
    return file;
}

int sim_socket(int family)
{
    struct sim_open *file = sim_open_make(SIM_SOCKET);

    file->family = family;
    file->capacity = (size_t)2048 << sim_random(7);
    return sim_open_as(file);
}

int sim_bind(int fd, const struct sockaddr *at, socklen_t size)
{
    struct sim_open *file = sim_open_of(fd);
    struct sockaddr_in *in = (void *)&file->local;

    memcpy(&file->local, at, size);
    file->local_size = size;
    if (at->sa_family == AF_INET && in->sin_port == 0)
        in->sin_port = htons((uint16_t)(PORT_FIRST + next_port++ % NPORTS));
    if (!listener_find((struct sockaddr *)&file->local, size))
        return 0;
    errno = EADDRINUSE;
    return -1;
}

int sim_listen(int fd)
{
    struct sim_open *file = sim_open_of(fd);
    struct sim_open **list;

    list = listeners_of((struct sockaddr *)&file->local, file->local_size);
    if (file->kind == SIM_LISTENER)
        return 0;
    file->kind = SIM_LISTENER;
    file->next = *list;
    *list = file;
    return 0;
}

/* Put the other side of a connection into the backlog. */
static void arrive(struct sim_open *file, struct sim_open *listener)
{
    struct sim_open *other = sim_open_make(SIM_SOCKET);
    struct sim_open **end = &listener->backlog;

    other->process = listener->process;
    other->family = file->family;
    other->capacity = (size_t)2048 << sim_random(7);
    other->peer = file;
    other->of = file->process;
    other->up_at = file->up_at;
    other->local = listener->local;
    other->local_size = listener->local_size;
    other->remote_size = sizeof(struct sockaddr_in);
    file->peer = other;
    file->of = listener->process;
    while (*end)
        end = &(*end)->next;
    *end = other;
    sim_alert(listener->process, file->up_at);
}

static bool host_is_off(const struct sockaddr *to)
{
    const struct sockaddr_in *in = (const void *)to;
    const int host = (int)(ntohl(in->sin_addr.s_addr) & 0xffff) - 1;

    const struct sim_process *process;
    bool off = false;

    for (int r = host * sim_options->ranks_per_host;
         (process = sim_process(r)) && process->host == host; r++)
        off = off || (process->state == SIM_DEAD
                      && process->gone_at == SIM_NEVER);
    return off;
}

int sim_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    struct sim_open *file = sim_open_of(fd);
    struct sim_open *listener = listener_find(to, size);
    const bool local = file->family == AF_UNIX;

    memcpy(&file->remote, to, size);
    file->remote_size = size;
    file->up_at = local ? sim_now() : sim_travel(file);
    file->error = listener ? 0 : ECONNREFUSED;
    if (listener)
        arrive(file, listener);
    else if (!local && host_is_off(to))
        file->up_at = SIM_NEVER;
    if (local && listener)
        return 0;
    errno = local ? ECONNREFUSED : EINPROGRESS;
    return -1;
}

int sim_accept(int fd)
{
    struct sim_open *listener = sim_open_of(fd);
    struct sim_open **one = &listener->backlog, *file;

    while (*one && (*one)->up_at > sim_now())
        one = &(*one)->next;
    file = *one;
    if (!file) {
        errno = EAGAIN;
        return -1;
    }
    *one = file->next;
    file->next = NULL;
    return sim_open_as(file);
}

int sim_name(int fd, bool peer, struct sockaddr *at, socklen_t *size)
{
    const struct sim_open *file = sim_open_of(fd);
    const socklen_t have = peer ? file->remote_size : file->local_size;

    memcpy(at, peer ? &file->remote : &file->local,
           have < *size ? have : *size);
    *size = have;
    return 0;
}

int sim_error(int fd)
{
    return sim_open_of(fd)->error;
}

uint32_t sim_peer_pid(int fd)
{
    return (uint32_t)sim_pid(sim_open_of(fd)->of);
}

/* A host that is on acknowledges what is sent to it. */
void sim_tcp_info(int fd, struct tcp_info *info)
{
    const struct sim_open *file = sim_open_of(fd);

    memset(info, 0, sizeof *info);
    if (file->off_at > sim_now())
        return;
    info->tcpi_unacked = info->tcpi_retransmits = 1;
    info->tcpi_last_ack_recv = (uint32_t)((sim_now() - file->off_at) / 1000000);
}

