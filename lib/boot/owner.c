/* owner.c - find the process that has our port
 *
 * Two jobs that start at the same time with one cluster file need the same port
 * on the first host.  The second one knocks at that port, as a child does.  A
 * rank of another job says so, "rank 0 on n0 of job "17.0"", which the error
 * shows.  A process that is no rank has 0.2 s to answer, and its answer
 * is ignored.
 *
 * The other job closes the port when all its ranks have joined, usually some
 * milliseconds later.  So we retry for a time that depends on the job's name:
 * if each of two jobs has a port that the other needs, one of them gives up
 * first.
 */
#include "boot/owner.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/fail.h"
#include "boot/frame.h"
#include "boot/knock.h"
#include "boot/link.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "boot/words.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Wait until the socket can be read or written, at most until then. */
static bool owner_wait(int fd, short events, int64_t until_ns)
{
    int64_t left = until_ns - dtn_now_ns();
    struct pollfd p = { fd, events, 0 };

    return left > 0 && poll(&p, 1, (int)(left / DTN_BOOT_MS) + 1) == 1;
}

static bool owner_connect(int fd, const struct dtn_boot_addr *at,
                          int64_t until_ns)
{
    if (connect(fd, (const struct sockaddr *)&at->u, at->len) == 0)
        return true;
    return errno == EINPROGRESS && owner_wait(fd, POLLOUT, until_ns) &&
           dtn_boot_socket_connected(fd) == 0;
}

/* The next frame. */
static bool owner_hear(struct dtn_frame_stream *io, int64_t until_ns,
                       struct dtn_frame *frame)
{
    enum dtn_frame_got got = DTN_FRAME_MORE;

    if (dtn_frame_flush(io) != DTN_FRAME_READY)
        return false;
    while (got == DTN_FRAME_MORE && owner_wait(io->fd, POLLIN, until_ns))
        got = dtn_frame_recv(io, frame);
    return got == DTN_FRAME_READY;
}

/* Send HELLO and read the answer, FAIL or WELCOME. */
static bool owner_hello(const struct dtn_boot *boot,
                        struct dtn_frame_stream *io, int64_t until_ns,
                        struct dtn_frame *answer)
{
    unsigned char
        body[DTN_FRAME_HELLO_BYTES + DTN_HOST_MAX + DTN_FRAME_JOB_MAX];
    struct dtn_frame hello = { .type = DTN_FRAME_HELLO, .body = body };

    hello.size = (uint32_t)dtn_boot_link_hello(boot, true, body);
    io->accepts =
        DTN_FRAME_BIT(DTN_FRAME_WELCOME) | DTN_FRAME_BIT(DTN_FRAME_FAIL);
    return dtn_frame_post(io, &hello, false) &&
           owner_hear(io, until_ns, answer);
}

/* Two hosts of this job have one address.  Send that to the rank there, because
 * it believes that this connection is a child that joins.
 */
static void owner_is_own(const struct dtn_boot *boot,
                         struct dtn_frame_stream *io, char *buf, size_t size)
{
    struct dtensor_error error;
    char name[DTN_HOST_MAX + 32];

    dtn_boot_rank_name(boot, boot->rank, name, sizeof name);
    snprintf(buf, size, "another host of this job has the address of %s (give "
             "each host its own with [nodes] addresses)", name);
    dtn_fail_rank(&error, DTENSOR_ESYS, boot->rank, "boot: %s", buf);
    dtn_boot_fail_post(io, boot->seq, &error);
    dtn_frame_flush(io);
}

/* Without "boot: ", for a message that begins with it. */
static void owner_words(const struct dtensor_error *error, char *buf,
                        size_t size)
{
    snprintf(buf, size, "%s",
             error->text + (strncmp(error->text, "boot: ", 6) == 0 ? 6 : 0));
}

static enum dtn_boot_owner owner_judge(const struct dtn_boot *boot,
                                       struct dtn_frame_stream *io,
                                       const struct dtn_frame *answer,
                                       char *buf, size_t size)
{
    struct dtensor_error error;

    if (answer->type == DTN_FRAME_WELCOME) {
        owner_is_own(boot, io, buf, size);
        return DTN_OWNER_THIS_JOB;
    }
    if (!dtn_boot_fail_parse(answer, &error))
        return DTN_OWNER_STRANGER;
    owner_words(&error, buf, size);
    return DTN_OWNER_THIS_JOB;
}

static enum dtn_boot_owner owner_ask(struct dtn_boot *boot,
                                     struct dtn_boot_link *link,
                                     int64_t until_ns, char *buf, size_t size)
{
    struct dtensor_error error;
    struct dtn_frame answer;
    bool foreign;

    if (!dtn_boot_knock(boot, link) ||
        !owner_hear(&link->io, until_ns, &answer) ||
        answer.type != DTN_FRAME_KNOCK)
        return DTN_OWNER_STRANGER;
    if (dtn_boot_knock_prove(boot, link, &answer, &foreign, &error) != 0) {
        owner_words(&error, buf, size);
        return foreign ? DTN_OWNER_OTHER_JOB : DTN_OWNER_STRANGER;
    }
    if (!owner_hello(boot, &link->io, until_ns, &answer))
        return DTN_OWNER_STRANGER;
    return owner_judge(boot, &link->io, &answer, buf, size);
}

enum dtn_boot_owner dtn_boot_owner_find(struct dtn_boot *boot,
                                        const struct dtn_boot_addr *at,
                                        char *buf, size_t size)
{
    int64_t until_ns = dtn_now_ns() + DTN_BOOT_OWNER_NS;
    enum dtn_boot_owner owner = DTN_OWNER_STRANGER;
    struct dtn_boot_link link = { .rank = boot->rank };

    buf[0] = '\0';
    dtn_frame_init(&link.io, socket(at->family, SOCK_STREAM | SOCK_CLOEXEC |
                                    SOCK_NONBLOCK, 0), false);
    if (link.io.fd >= 0 && owner_connect(link.io.fd, at, until_ns))
        owner = owner_ask(boot, &link, until_ns, buf, size);
    dtn_frame_close(&link.io);
    return owner;
}
