/* test_kernel.c - the fuzzer's sockets and clock are as those of the kernel
 *
 * The same calls, drawn at random, are made on a pair of sockets in memory
 * (sockets.c) and on a pair of the kernel.  Each call must return the same,
 * with the same errno and the same bytes.  A sleep of an hour is over at once,
 * and the clock says that an hour has passed.
 *
 * Without this test, the fuzzer could try the library on a kernel that does not
 * exist, and miss what the real one does; or try 20 inputs a second only.
 */
#include "tests/fuzz/kernel.h"
#include "tests/support/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 300, CALLS = 60, MOST = 200 };

int __real_socketpair(int family, int type, int protocol, int fds[2]);

static uint64_t state;

/* splitmix64 */
static int below(int n)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

/* What a call said. */
struct answer {
    ssize_t rc;
    int code;                     /* errno, if rc is -1                       */
    unsigned char bytes[MOST];    /* received                                 */
};

static struct answer answer_of(ssize_t rc, struct answer answer)
{
    answer.rc = rc;
    answer.code = rc < 0 ? errno : 0;
    return answer;
}

static struct answer receive(int fd, int size, bool message)
{
    struct answer answer = { 0 };
    struct iovec iov[2] = { { answer.bytes, (size_t)size / 2 },
                            { answer.bytes + size / 2,
                              (size_t)(size - size / 2) } };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
    const ssize_t rc = message ? recvmsg(fd, &msg, MSG_DONTWAIT)
                               : readv(fd, iov, 2);

    return answer_of(rc, answer);
}

static struct answer give(int fd, const unsigned char *bytes, int size,
                          bool message)
{
    struct iovec iov = { (void *)(uintptr_t)bytes, (size_t)size };
    const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    const ssize_t rc = message ? sendmsg(fd, &msg, MSG_NOSIGNAL)
                               : send(fd, bytes, (size_t)size, MSG_NOSIGNAL);

    return answer_of(rc, (struct answer){ 0 });
}

static struct answer look(int fd)
{
    struct pollfd p = { fd, POLLIN | POLLOUT, 0 };

    poll(&p, 1, 0);
    return answer_of(p.revents, (struct answer){ 0 });
}

/* One call on an end that is open. */
static struct answer call(int kind, int fd, const unsigned char *bytes,
                          int size)
{
    switch (kind) {
    case 0: case 1:
        return give(fd, bytes, size, kind);
    case 2: case 3:
        return receive(fd, size, kind == 3);
    case 4:
        return answer_of(close(dup(fd)), (struct answer){ 0 });
    default:
        return look(fd);
    }
}

/* The calls of one round on both pairs; false: they differ. */
static bool round_run(int ours[2], int theirs[2])
{
    unsigned char bytes[MOST];
    bool open[2] = { true, true }, same = true;

    for (int i = 0; i < CALLS && same; i++) {
        const int end = below(2), kind = below(6), size = 1 + below(MOST);
        struct answer a, b;

        if (open[end] && below(40) == 0) {
            open[end] = false;
            close(ours[end]);
            close(theirs[end]);
        }
        if (!open[end])
            continue;
        memset(bytes, below(256), sizeof bytes);
        a = call(kind, ours[end], bytes, size);
        b = call(kind, theirs[end], bytes, size);
        same = a.rc == b.rc && a.code == b.code
            && memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
        if (!same)
            note("call %d on end %d: %zd, errno %d; the kernel: %zd, errno %d",
                 kind, end, a.rc, a.code, b.rc, b.code);
    }
    for (int end = 0; end < 2; end++)
        if (open[end]) {
            close(ours[end]);
            close(theirs[end]);
        }
    return same;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void test_clock(void)
{
    const int64_t hour_ns = INT64_C(3600000000000);
    const int64_t real_ns = clock_ns(CLOCK_REALTIME);
    const int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t slept_ns;

    nanosleep(&(struct timespec){ 3600, 0 }, NULL);
    slept_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
    ok(slept_ns >= hour_ns && slept_ns < hour_ns + hour_ns / 1000
       && clock_ns(CLOCK_REALTIME) - real_ns < hour_ns / 10,
       "a sleep of an hour moves the clock by %.3f s, and takes no time",
       (double)slept_ns / 1e9);
}

int main(void)
{
    const char *seed = getenv("DTN_TEST_SEED");
    int ours[2], theirs[2], rounds = 0;
    const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

    state = seed ? strtoull(seed, NULL, 0) : (uint64_t)getpid();
    note("DTN_TEST_SEED=%" PRIu64, state);
    for (; rounds < ROUNDS; rounds++)
        if (socketpair(AF_UNIX, type, 0, ours) != 0
            || ours[0] < FUZZ_SOCKET_FD
            || __real_socketpair(AF_UNIX, type, 0, theirs) != 0
            || !round_run(ours, theirs))
            break;
    test_clock();
    ok(rounds == ROUNDS, "%d rounds of calls: the same answers as the kernel's",
       rounds);
    return done();
}
