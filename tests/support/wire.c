/* wire.c - a transport between forked ranks, without the rooms above it */
#include "cluster/defaults.h"
#include "transport/fault.h"
#include "tests/support/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

void (*wire_settings)(struct dtn_transport_conf *conf);
struct wire_page *wire_page;
static int wire_box[WIRE_MAX][2];         /* a datagram socket for each rank */

void wire_prepare(void)
{
    wire_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int r = 0; r < WIRE_MAX; r++)
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, wire_box[r]) < 0)
            abort();
}

void wire_cleanup(void)
{
    munmap(wire_page, 4096);
    for (int r = 0; r < WIRE_MAX; r++) {
        close(wire_box[r][0]);
        close(wire_box[r][1]);
    }
}

/* ------------------------------------------------------------- patience --- */

bool wire_turn(struct wire *w, struct dtn_wait *wait, const char *what)
{
    need(w->tp->ops->progress(w->tp) >= 0, "progress failed");
    need(dtn_wait_pause(wait) != DTN_WAIT_EXPIRED, "waited 20 s for %s", what);
    return true;
}

struct dtn_wait wire_patience(const struct wire *w)
{
    struct dtn_wait wait;

    dtn_wait_init(&wait, 20 * INT64_C(1000000000), w->n > 2);
    return wait;
}

void wire_barrier(struct wire *w)
{
    struct dtn_wait wait = wire_patience(w);
    int round = atomic_load(&wire_page->round);

    if (atomic_fetch_add(&wire_page->arrived, 1) + 1 == w->n) {
        atomic_store(&wire_page->arrived, 0);
        atomic_store(&wire_page->round, round + 1);
    }
    while (atomic_load(&wire_page->round) == round)
        wire_turn(w, &wait, "a barrier");
}

/* ------------------------------------------------- addresses by mailbox --- */

static void wire_post(int to, const struct wire_letter *letter)
{
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } fds;
    struct iovec iov = { (void *)(uintptr_t)letter, sizeof *letter };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    memset(&fds, 0, sizeof fds);
    if (letter->blob.fd >= 0) {
        msg.msg_control = &fds;
        msg.msg_controllen = sizeof fds;
        fds.header.cmsg_level = SOL_SOCKET;
        fds.header.cmsg_type = SCM_RIGHTS;
        fds.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&fds.header), &letter->blob.fd, sizeof(int));
    }
    need(sendmsg(wire_box[to][1], &msg, 0) == (ssize_t)sizeof *letter,
         "cannot post: %s", strerror(errno));
}

static struct wire_letter wire_fetch(int rank)
{
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } fds;
    struct wire_letter letter;
    struct iovec iov = { &letter, sizeof letter };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
                          .msg_control = &fds, .msg_controllen = sizeof fds };

    need(recvmsg(wire_box[rank][0], &msg, MSG_CMSG_CLOEXEC) ==
         (ssize_t)sizeof letter, "cannot fetch: %s", strerror(errno));
    letter.blob.fd = -1;
    if (CMSG_FIRSTHDR(&msg))
        memcpy(&letter.blob.fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
    return letter;
}

void wire_swap(struct wire *w, const struct dtn_remote mine[],
               struct dtn_remote remotes[])
{
    struct wire_letter letter = { .from = w->rank, .blob.fd = -1 };

    wire_barrier(w);
    for (int r = 0; r < w->n; r++) {
        letter.remote = mine[r];
        if (r != w->rank)
            wire_post(r, &letter);
    }
    for (int i = 1; i < w->n; i++) {
        letter = wire_fetch(w->rank);
        remotes[letter.from] = letter.remote;
    }
    wire_barrier(w);
}

/* ----------------------------------------------------- open and connect --- */

void wire_open(struct wire *w, const struct wire_kind *kind, int rank, int n)
{
    struct dtensor_error err = { 0 };
    bool shared = strcmp(kind->ops->name, "shm") == 0;

    memset(w, 0, sizeof *w);
    w->kind = kind;
    w->n = n;
    w->rank = rank;
    w->log = (struct dtn_log){ DTN_LOG_OFF, rank, stdout, 0 };
    dtn_transport_defaults(&w->conf);
    w->conf.timeout = 14;         /* the dead are known after half a second   */
    if (getenv("DTN_TEST_QPS"))
        w->conf.qp_per_peer = atoi(getenv("DTN_TEST_QPS"));
    if (wire_settings)
        wire_settings(&w->conf);
    w->args = (struct dtn_open_args){ n, rank, 0, n, "127.0.0.1", &w->arena,
                                      &w->conf, &w->log,
                                      getenv("DTN_TEST_HCA"), -1 };
    wire_page->pid[rank] = getpid();
    need(dtn_arena_init(&w->arena, WIRE_ARENA, shared, &err) == 0, "%s",
         err.text);
    need(kind->ops->open(&w->args, &w->tp, &err) == 0, "%s", err.text);
    if (kind->plan)
        need(dtn_fault_inject(w->tp, kind->plan, &err) == 0, "%s", err.text);
}

void wire_connect(struct wire *w, int peer)
{
    struct dtn_wait wait = wire_patience(w);
    struct dtensor_error err = { 0 };
    int rc;

    while ((rc = w->tp->ops->connect(w->tp, peer, &w->blobs[peer], &err)) ==
           DTENSOR_EAGAIN)
        wire_turn(w, &wait, "a connection");
    need(rc == 0, "connect %d: %s", peer, err.text);
    need(w->tp->ops->connect(w->tp, peer, &w->blobs[peer], &err) == 0,
         "a second connect is no no-op: %s", err.text);
}

void wire_meet(struct wire *w)
{
    struct wire_letter letter = { .from = w->rank };

    w->tp->ops->address(w->tp, &letter.blob);
    need(letter.blob.size <= DTN_BLOB_MAX, "address too long");
    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            wire_post(r, &letter);
    for (int i = 1; i < w->n; i++) {
        letter = wire_fetch(w->rank);
        w->blobs[letter.from] = letter.blob;
    }
}

void wire_close_blobs(struct wire *w)
{
    for (int r = 0; r < w->n; r++)
        if (r != w->rank && w->blobs[r].fd >= 0)
            close(w->blobs[r].fd);
}

void wire_connect_all(struct wire *w)
{
    wire_meet(w);
    for (int r = 0; r < w->n; r++)
        if (r != w->rank)
            wire_connect(w, r);
    wire_close_blobs(w);
    wire_barrier(w);
}

void wire_close(struct wire *w)
{
    w->tp->ops->close(w->tp);
    dtn_arena_fini(&w->arena);
}

/* --------------------------------------------------------- moving bytes --- */

struct dtn_remote wire_reg(struct wire *w, void *mem, size_t size)
{
    struct dtn_remote remote = { 0, 0 };

    need(w->tp->ops->reg(w->tp, mem, size, &remote) == 0, "cannot register");
    need(remote.addr != 0 || remote.key != 0, "{0, 0} is nowhere");
    return remote;
}

void *wire_alloc(struct wire *w, size_t size)
{
    void *mem = dtn_arena_alloc(&w->arena, size);

    need(mem != NULL, "arena exhausted");
    return mem;
}

void wire_put(struct wire *w, int peer, struct dtn_remote dst, const void *src,
              size_t size)
{
    struct dtn_wait wait = wire_patience(w);
    const char *from = src;
    size_t done;
    int rc;

    do {
        rc = w->tp->ops->put(w->tp, peer, dst, from, size, &done);
        if (rc == DTENSOR_EAGAIN) {
            wire_turn(w, &wait, "a put");
            continue;
        }
        need(rc == 0, "put: %s", dtensor_errname(rc));
        need(done <= size, "put moved more than asked");
        from += done;
        dst.addr += done;
        size -= done;
    } while (rc == DTENSOR_EAGAIN || size > 0);
}

void wire_flush(struct wire *w, int peer)
{
    struct dtn_wait wait = wire_patience(w);
    int rc;

    while ((rc = w->tp->ops->flush(w->tp, peer)) == DTENSOR_EAGAIN)
        wire_turn(w, &wait, "a flush");
    need(rc == 0, "flush: %s", dtensor_errname(rc));
}

void wire_send(struct wire *w, int peer, uint16_t tag, uint32_t number,
               const struct dtn_eager *data)
{
    struct dtn_signal s = { .fingerprint = number, .tag = tag,
                            .len = DTN_PAYLOAD_MAX };
    struct dtn_wait wait = wire_patience(w);
    int rc;

    for (int i = 0; i < DTN_PAYLOAD_MAX; i++)
        s.payload[i] = (unsigned char)(number * 3 + (uint32_t)i);
    while ((rc = w->tp->ops->signal(w->tp, peer, &s, data)) == DTENSOR_EAGAIN)
        wire_turn(w, &wait, "room in a queue");
    need(rc == 0, "signal: %s", dtensor_errname(rc));
}

void wire_signal(struct wire *w, int peer, uint16_t tag, uint32_t number)
{
    wire_send(w, peer, tag, number, NULL);
}

void wire_check(struct wire *w, int peer, const struct dtn_signal *s,
                uint16_t tag, uint32_t number)
{
    need(s->fingerprint == number && s->tag == tag && s->len ==
         DTN_PAYLOAD_MAX, "from %d: signal %u tag %d instead of %u tag %d",
         peer, (unsigned)s->fingerprint, s->tag, number, tag);
    for (int i = 0; i < DTN_PAYLOAD_MAX; i++)
        need(s->payload[i] == (unsigned char)(number * 3 + (uint32_t)i),
             "payload of signal %u is wrong at byte %d", number, i);
    w->tp->ops->consume(w->tp, peer);
}

void wire_await(struct wire *w, int peer, uint16_t tag, uint32_t number)
{
    struct dtn_wait wait = wire_patience(w);
    const struct dtn_signal *s;

    while ((s = w->tp->ops->peek(w->tp, peer)) == NULL)
        wire_turn(w, &wait, "a signal");
    wire_check(w, peer, s, tag, number);
}

int wire_health(struct wire *w, int peer, int *culprit, int *code)
{
    struct dtn_wait wait = wire_patience(w);
    int rc;

    while ((rc = w->tp->ops->health(w->tp, peer, culprit, code)) == 0)
        wire_turn(w, &wait, "the end of a peer");
    return rc;
}

int wire_count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}
