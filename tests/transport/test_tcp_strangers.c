/* test_tcp_strangers.c - tcp connects ranks of one job only, among strangers
 *
 * A thousand clients that say nothing, or nonsense, are at the port of a rank
 * before its peer.  A hello without a proof, of another job, or one that was
 * used before, connects nobody; nor does a listener that cannot answer for the
 * rank whose port it has.
 *
 * Without this test, a process that scans ports could delay the first
 * collective by half a minute, and one that knows the port could put bytes into
 * the memory of a job.
 */
#include "base/seal.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CROWD = 1000, HELLO_BYTES = 80 };

static const struct wire_kind tcp = { "tcp", &dtn_tcp_ops, NULL };

static struct dtn_tcp_address address_of(const struct wire *w, int rank)
{
    struct dtn_tcp_address address;

    memcpy(&address, w->blobs[rank].bytes, sizeof address);
    return address;
}

/* A connection to the port of that rank. */
static int call_rank(const struct wire *w, int rank)
{
    struct dtn_tcp_address address = address_of(w, rank);
    int fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    need(fd >= 0 && connect(fd, (struct sockaddr *)&address.at, address.size)
         == 0, "cannot connect: %s", strerror(errno));
    return fd;
}

static void open_files(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* -------------------------------------------------------------- a crowd --- */

/* Rank 1 brings a crowd to the port of rank 0, and then connects itself. */
static void crowd_rank(int rank, int n, void *arg)
{
    static int fds[CROWD];
    char noise[HELLO_BYTES + 20];
    struct wire w;
    int64_t start;

    memset(noise, 'x', sizeof noise);
    open_files();
    wire_open(&w, &tcp, rank, n);
    wire_meet(&w);
    for (int i = 0; rank == 1 && i < CROWD; i++) {
        fds[i] = call_rank(&w, 0);
        if (i % 4 > 0)            /* some say a little, some more than enough */
            send(fds[i], noise, i % 4 == 1 ? 7 : sizeof noise, MSG_NOSIGNAL);
    }
    wire_barrier(&w);
    start = dtn_now_ns();
    wire_connect(&w, 1 - rank);
    wire_signal(&w, 1 - rank, 1, 5);
    wire_await(&w, 1 - rank, 1, 5);
    /* With 64 places of 2 s each it took half a minute. */
    need(dtn_now_ns() - start < 10 * INT64_C(1000000000), "connected after "
         "%.1f s", (double)(dtn_now_ns() - start) / 1e9);
    if (rank == 0)
        printf("# connected among %d strangers after %.1f ms\n", CROWD,
               (double)(dtn_now_ns() - start) / 1e6);
    wire_barrier(&w);
    for (int i = 0; rank == 1 && i < CROWD; i++)
        close(fds[i]);
    wire_close(&w);
}

/* ------------------------------------------------------------- impostors -- */

/* What rank 1 said first: heard by a listener in front of rank 0's port. */
static size_t overhear(struct wire *w, unsigned char hello[HELLO_BYTES])
{
    struct dtn_tcp_address address = address_of(w, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), in;
    struct dtn_blob blob = w->blobs[0];
    struct sockaddr_storage at = address.at;
    struct dtensor_error err;
    size_t got = 0;
    int rc = DTENSOR_EAGAIN;

    ((struct sockaddr_in *)&at)->sin_port = 0;
    need(bind(fd, (struct sockaddr *)&at, address.size) == 0 &&
         listen(fd, 8) == 0 &&
         getsockname(fd, (struct sockaddr *)&at, &address.size) == 0,
         "no place to listen");
    address.at = at;
    memcpy(blob.bytes, &address, sizeof address);
    for (int i = 0; i < 1000 && got < HELLO_BYTES; i++) {
        rc = w->tp->ops->connect(w->tp, 0, &blob, &err);
        in = i == 0 ? accept(fd, NULL, NULL) : in;
        if (i > 0)
            got = (size_t)recv(in, hello, HELLO_BYTES, MSG_PEEK);
    }
    need(got == HELLO_BYTES, "heard %zu bytes", got);
    need(recv(in, hello, HELLO_BYTES, 0) == HELLO_BYTES, "not twice");
    need(rc == DTENSOR_EAGAIN, "no answer, and connected");
    /* Say the same back: it is no answer. */
    send(in, hello, HELLO_BYTES, MSG_NOSIGNAL);
    for (int i = 0; i < 5000 && rc == DTENSOR_EAGAIN; i++) {
        usleep(1000);
        rc = w->tp->ops->connect(w->tp, 0, &blob, &err);
    }
    need(rc == DTENSOR_EPEER && strstr(err.text, "does not prove that it is "
         "rank 0 (did another process take its port?)"), "rc %d: %s", rc,
         err.text);
    close(in);
    close(fd);
    return got;
}

/* Did rank 0, which waits for rank 2, close this connection without a byte? */
static bool closed(struct wire *w, int fd)
{
    struct dtensor_error err;
    char byte;
    ssize_t n = -1;

    for (int i = 0; i < 8000 && n < 0; i++) {
        w->tp->ops->connect(w->tp, 2, &w->blobs[2], &err);
        n = recv(fd, &byte, 1, MSG_DONTWAIT);
        usleep(1000);
    }
    close(fd);
    return n == 0;
}

/* Rank 1 overhears itself; rank 0 is told the same with every bit changed in
 * turn, then as it is, which connects, and then once more.
 */
static void impostor_rank(int rank, int n, void *arg)
{
    /* Without libsodium only the proof itself is compared. */
    const int first = dtn_seal_present() ? 0 : HELLO_BYTES - DTN_SECRET_BYTES;
    unsigned char *hello = arg;
    struct wire w;

    wire_open(&w, &tcp, rank, n);
    wire_meet(&w);
    w.tp->ops->address(w.tp, &w.blobs[rank]);
    if (rank == 1)
        overhear(&w, hello);
    wire_barrier(&w);
    for (int i = first; rank == 0 && i < HELLO_BYTES; i += 4) {
        unsigned char changed[HELLO_BYTES];
        int fd = call_rank(&w, 0);

        memcpy(changed, hello, sizeof changed);
        changed[i] ^= 1;
        send(fd, changed, sizeof changed, MSG_NOSIGNAL);
        need(closed(&w, fd), "byte %d of a hello was changed, and it was taken",
             i);
    }
    if (rank == 0) {
        struct dtensor_error err;
        int fd = call_rank(&w, 0), again = call_rank(&w, 0);

        send(fd, hello, HELLO_BYTES, MSG_NOSIGNAL);
        for (int i = 0; i < 5000; i++)
            if (w.tp->ops->connect(w.tp, 1, &w.blobs[1], &err) == 0)
                break;
        send(again, hello, HELLO_BYTES, MSG_NOSIGNAL);
        need(closed(&w, again), "a hello connected twice");
        close(fd);
    }
    wire_barrier(&w);
    wire_close(&w);
}

int main(void)
{
    unsigned char *hello = mmap(NULL, HELLO_BYTES, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    wire_prepare();
    if (limit.rlim_max < CROWD + 100)
        skip("a thousand strangers", "ulimit -n is too small");
    else
        ok(ranks_run(2, 60, crowd_rank, NULL, NULL) == 0,
           "two ranks connect among %d strangers", CROWD);
    wire_cleanup();
    wire_prepare();
    ok(ranks_run(3, 60, impostor_rank, hello, NULL) == 0, "who cannot prove "
       "that it is a rank of this job is not connected, on either side");
    wire_cleanup();
    return done();
}
