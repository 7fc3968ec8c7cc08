/* streams.c - bytes between coroutines, as late as the seed says
 *
 * A socket has a list of what was sent to it, each piece with the time at which
 * it comes: after those before it, and up to latency_ns after it was sent.  So
 * a connection keeps its order, and connections overtake each other.  A receive
 * may get less than there is, a send may take less than it was given.
 */
#include "tests/sim/kernel.h"
#include "tests/sim/memory.h"
#include "tests/sim/open.h"
#include "tests/sim/sim.h"
#include "tests/sim/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Bytes [from, from + size) of the message. */
static struct sim_chunk *chunk_make(const struct msghdr *msg, size_t from,
                                    size_t size)
{
    struct sim_chunk *chunk = __real_malloc(sizeof *chunk + size);
    size_t part, to = 0;

    chunk->next = NULL;
    chunk->begin = 0;
    chunk->end = size;
    chunk->nfds = 0;
    for (const struct iovec *iov = msg->msg_iov; to < size; iov++) {
        const size_t skip = from < iov->iov_len ? from : iov->iov_len;

        part = iov->iov_len - skip;
        part = part < size - to ? part : size - to;
        memcpy(chunk->bytes + to, (const char *)iov->iov_base + skip, part);
        from -= skip;
        to += part;
    }
    return chunk;
}

static void chunk_take_fds(struct sim_chunk *chunk, const struct msghdr *msg)
{
    struct cmsghdr *c = msg->msg_control ? CMSG_FIRSTHDR(msg) : NULL;
    int fds[SIM_CHUNK_FDS];

    if (!c || c->cmsg_type != SCM_RIGHTS)
        return;
    chunk->nfds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(c), (size_t)chunk->nfds * sizeof(int));
    for (int i = 0; i < chunk->nfds; i++)
        chunk->fds[i] = __real_fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
}

/* Queue bytes [from, from + size) of the message as one piece. */
static struct sim_chunk *chunk_send(struct sim_open *peer,
                                    const struct msghdr *msg, size_t from,
                                    size_t size)
{
    struct sim_chunk *chunk = chunk_make(msg, from, size);
    const int64_t at = sim_travel(peer);

    peer->last_at = chunk->at = at > peer->last_at ? at : peer->last_at + 1;
    peer->queued += size;
    *peer->tail = chunk;
    peer->tail = &chunk->next;
    sim_alert(peer->process, chunk->at);
    return chunk;
}

/* 0: it can be sent; else errno. */
static int unable(const struct sim_open *file)
{
    if (file->up_at > sim_now())
        return EAGAIN;
    if (file->error || (!file->peer && file->ends_at <= sim_now())
        || (file->peer && file->peer->ends_at < SIM_NEVER))
        return EPIPE;
    if (!file->peer || file->peer->queued < file->peer->capacity)
        return 0;
    file->peer->wants_room = true;
    return EAGAIN;
}

ssize_t sim_send(int fd, const struct msghdr *msg)
{
    struct sim_open *file = sim_open_of(fd), *peer;
    size_t size = 0, first;

    if (!file)
        return -1;
    for (size_t i = 0; i < msg->msg_iovlen; i++)
        size += msg->msg_iov[i].iov_len;
    errno = unable(file);
    if (errno != 0)
        return -1;
    peer = file->peer;
    if (!peer)
        return (ssize_t)size;
    if (size > peer->capacity - peer->queued)
        size = peer->capacity - peer->queued;
    sim_self->process->use.sends++;
    sim_self->process->use.bytes += size;
    first = size > 1 && sim_random(8) == 0 ? 1 + sim_random(size - 1) : size;
    chunk_take_fds(chunk_send(peer, msg, 0, first), msg);
    if (first < size)
        chunk_send(peer, msg, first, size - first);
    return (ssize_t)size;
}

/* Give the descriptors of a piece to the receiver. */
static void chunk_give_fds(struct sim_chunk *chunk, struct msghdr *msg)
{
    const size_t bytes = (size_t)chunk->nfds * sizeof(int);
    struct cmsghdr *c;

    if (chunk->nfds == 0 || msg->msg_controllen < CMSG_SPACE(bytes)) {
        msg->msg_controllen = 0;
        return;
    }
    msg->msg_controllen = CMSG_SPACE(bytes);
    c = CMSG_FIRSTHDR(msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(c), chunk->fds, bytes);
    for (int i = 0; i < chunk->nfds; i++)
        sim_real_note(chunk->fds[i]);
    chunk->nfds = 0;
}

static bool arrived(const struct sim_open *file, const struct sim_chunk *chunk)
{
    return chunk && chunk->at <= sim_now()
        && (chunk == file->head || chunk->nfds == 0);
}

/* Copy up to `size` bytes of what has come, from `from` on. */
static size_t stream_copy(const struct sim_open *file, size_t from,
                          unsigned char *to, size_t size)
{
    size_t got = 0;

    for (const struct sim_chunk *c = file->head; arrived(file, c) && got < size;
         c = c->next) {
        const size_t have = c->end - c->begin;
        const size_t skip = from < have ? from : have;
        size_t part = have - skip;

        part = part < size - got ? part : size - got;
        memcpy(to + got, c->bytes + c->begin + skip, part);
        from -= skip;
        got += part;
    }
    return got;
}

static void stream_drop(struct sim_open *file, size_t size)
{
    struct sim_chunk *chunk;

    file->queued -= size;
    while (size > 0) {
        chunk = file->head;
        if (size < chunk->end - chunk->begin) {
            chunk->begin += size;
            break;
        }
        size -= chunk->end - chunk->begin;
        file->head = chunk->next;
        if (!file->head)
            file->tail = &file->head;
        sim_chunk_free(chunk);
    }
    if (file->wants_room && file->peer && file->queued < file->capacity) {
        file->wants_room = false;
        sim_alert(file->peer->process, sim_travel(file->peer));
    }
}

ssize_t sim_recv(int fd, struct msghdr *msg, int flags)
{
    struct sim_open *file = sim_open_of(fd);
    size_t got = 0;

    if (!file)
        return -1;
    msg->msg_flags = 0;
    if (!arrived(file, file->head)) {
        msg->msg_controllen = 0;
        errno = EAGAIN;
        return !file->head && file->ends_at <= sim_now() ? 0 : -1;
    }
    chunk_give_fds(file->head, msg);
    for (size_t i = 0; i < msg->msg_iovlen; i++)
        got += stream_copy(file, got, msg->msg_iov[i].iov_base,
                           msg->msg_iov[i].iov_len);
    if (!(flags & MSG_PEEK))
        stream_drop(file, got);
    return (ssize_t)got;
}

int sim_shutdown(int fd)
{
    struct sim_open *peer = sim_open_of(fd)->peer;
    int64_t at;

    if (peer && peer->ends_at == SIM_NEVER) {
        at = sim_travel(peer);
        peer->ends_at = at > peer->last_at ? at : peer->last_at + 1;
        sim_alert(peer->process, peer->ends_at);
    }
    return 0;
}

/* Bytes that have not come. */
int sim_unsent(int fd)
{
    const struct sim_open *file = sim_open_of(fd);

    return file->off_at < SIM_NEVER
        || (file->peer && file->peer->last_at > sim_now());
}
