/* test_long_arrives.c - a rank does not sleep while its data arrive
 *
 * The receiver reads 2 KiB at a time, as from a slow link, so that a call takes
 * longer than the 2 ms after which a wait begins to sleep.  The test counts how
 * often it sleeps right after it has read something.
 *
 * Without this test, it could sleep 50 us after each part of a long message:
 * 16 MiB over tcp then took twice as long.
 */
#include "dtensor.h"
#include "tests/coll/long_ways.h"
#include "tests/support/tap.h"
#include "tests/support/world.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PART = 2 << 10, BYTES = 8 << 20 };

static unsigned char data[BYTES];
static _Thread_local bool has_read;   /* since it last found nothing          */
static _Thread_local int naps;        /* after it had                         */

ssize_t __real_readv(int fd, const struct iovec *iov, int n);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int n);
int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

ssize_t __wrap_readv(int fd, const struct iovec *iov, int n)
{
    struct iovec part = *iov;

    if (n < 2)
        return __real_readv(fd, iov, n);
    if (part.iov_len > PART)
        part.iov_len = PART;
    has_read = true;
    return __real_readv(fd, &part, 1);
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    const int found = __real_epoll_wait(fd, events, n, timeout);

    if (found == 0)
        has_read = false;
    return found;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    naps += has_read;
    return __real_nanosleep(time, left);
}

static void arrive(int rank, int n, void *arg)
{
    const struct long_way *way = arg;
    struct world world;

    (void)n;
    world_open(&world);
    memset(data, rank == 0, BYTES);
    need(way->call(&world, data, BYTES) == 0, "%s", world.err.text);
    need(data[0] == 1 && data[BYTES - 1] == 1, "wrong data");
    need(rank == 0 || naps == 0, "%d naps while data arrived", naps);
    dtensor_fini(world.ctx);
}

int main(void)
{
    const char *path = ranks_file("tcp", 2, NULL);

    setenv("DTN_CLUSTER", path, 1);
    for (int w = 0; w < LONG_WAYS; w++)
        ok(ranks_run(2, 30, arrive, (void *)(uintptr_t)&long_ways[w],
                     NULL) == 0, "%s: no sleep while data arrive",
           long_ways[w].name);
    unlink(path);
    return done();
}
