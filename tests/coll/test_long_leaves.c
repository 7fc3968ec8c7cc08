/* test_long_leaves.c - long eager data leave before the call of their sender
 * ends
 *
 * The socket takes a part of what it is given, as one with a small buffer does.
 * After the call the sender makes no other; it waits, on a pipe, until the
 * receiver says that all has come.
 *
 * Without this test, the rest could wait for the next call of the sender, and a
 * rank that computes for an hour after a broadcast would hold up its peers.
 */
#include "dtensor.h"
#include "tests/coll/long_ways.h"
#include "tests/support/tap.h"
#include "tests/support/world.h"

#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PART = 10000, BYTES = 60000 };

static unsigned char data[BYTES];
static int news[2];               /* a pipe to the sender                     */

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    struct iovec piece[8];
    struct msghdr part = *msg;
    size_t left = PART;

    part.msg_iov = piece;
    for (size_t i = 0; i < msg->msg_iovlen && i < 8; i++) {
        piece[i] = msg->msg_iov[i];
        if (piece[i].iov_len > left)
            piece[i].iov_len = left;
        left -= piece[i].iov_len;
    }
    return __real_sendmsg(fd, &part, flags);
}

static void leave(int rank, int n, void *arg)
{
    const struct long_way *way = arg;
    struct pollfd told = { .fd = news[0], .events = POLLIN };
    struct world world;
    char byte = 0;

    (void)n;
    world_open(&world);
    for (int call = 1; call <= 3; call++) {
        memset(data, rank == 0 ? call : 0, BYTES);
        need(way->call(&world, data, BYTES) == 0, "%s", world.err.text);
        need(data[0] == call && data[BYTES - 1] == call, "wrong data");
        if (rank == 1)
            need(write(news[1], &byte, 1) == 1, "no pipe");
        else
            need(poll(&told, 1, 20000) == 1 && read(news[0], &byte, 1) == 1,
                 "call %d: the receiver still waits after 20 s", call);
    }
    dtensor_fini(world.ctx);
}

int main(void)
{
    const char *path = ranks_file("tcp", 2, NULL);

    setenv("DTN_CLUSTER", path, 1);
    if (pipe(news) != 0)
        return 99;
    for (int w = 0; w < LONG_WAYS; w++)
        ok(ranks_run(2, 30, leave, (void *)(uintptr_t)&long_ways[w],
                     NULL) == 0, "%s: all data have left when it returns",
           long_ways[w].name);
    unlink(path);
    return done();
}
