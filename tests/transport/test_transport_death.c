/* test_transport_death.c - ranks die, stop and fall silent
 *
 * A death is noticed, a pause is not taken for a death, and a killed rank
 * leaves no named file or segment behind.  How soon a death is noticed is
 * measured by `make bench-liveness`.
 *
 * Without this test, a killed rank could hang its peers, or a debugger that
 * stops one could end the job.
 */
#include "config.h"

#include "base/compiler.h"
#include "base/wait.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/rdma.h"
#include "tests/support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

static const struct wire_kind kinds[] = {
    { "shm", &dtn_shm_ops, NULL },
    { "tcp", &dtn_tcp_ops, NULL },
#ifdef HAVE_VERBS
    { "rc", &dtn_verbs_ops, NULL },
#endif
};

static void pause_ms(int ms)
{
    const struct timespec nap = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&nap, NULL);
}

static void await_burial(int rank)
{
    while (kill(wire_page->pid[rank], 0) == 0)
        pause_ms(1);
}

/* ---------------------------------------------------------------- death --- */

/* The last rank is killed while all are idle. */
static void rank_killed(int rank, int n, void *arg)
{
    int culprit, code, rc, victim = n - 1;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    if (rank == victim)
        raise(SIGKILL);
    rc = wire_health(&w, victim, &culprit, &code);
    need(rc == DTENSOR_EPEER, "health of the dead: %s", dtensor_errname(rc));
    for (int r = 0; r < victim; r++)
        need(r == rank || w.tp->ops->health(w.tp, r, &culprit, &code) == 0,
             "rank %d lives", r);
    wire_barrier(&(struct wire){ .n = n - 1, .tp = w.tp });
    wire_close(&w);
}

/* Each of the others has written several times, and goes on. */
static void die_when_written(int others)
{
    for (int r = 0; r < others; r++)
        while (atomic_load(&wire_page->flag[r]) < 5)
            pause_ms(1);
    raise(SIGKILL);
}

/* It is killed while the others write to it as fast as they can. */
static void rank_killed_busy(int rank, int n, void *arg)
{
    int culprit, code, rc = 0, victim = n - 1;
    struct dtn_signal s = { .len = 0 };
    struct dtn_remote mine[WIRE_MAX], theirs[WIRE_MAX];
    size_t size = (size_t)1 << 20, done;
    struct dtn_wait wait;
    struct wire w;
    void *mem;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    mem = wire_alloc(&w, size);
    for (int r = 0; r < n; r++)
        mine[r] = wire_reg(&w, mem, size);
    wire_swap(&w, mine, theirs);
    if (rank == victim)
        die_when_written(n - 1);
    wait = wire_patience(&w);
    for (; rc == 0; wire_turn(&w, &wait, "the death of a peer")) {
        w.tp->ops->put(w.tp, victim, theirs[victim], mem, size, &done);
        w.tp->ops->signal(w.tp, victim, &s, NULL);
        rc = w.tp->ops->health(w.tp, victim, &culprit, &code);
        wire_page->flag[rank]++;
    }
    need(rc == DTENSOR_EPEER, "health of the dead: %s", dtensor_errname(rc));
    wire_barrier(&(struct wire){ .n = n - 1, .tp = w.tp });
    wire_close(&w);
}

/* No descriptor is to be had for a pidfd: death is still noticed. */
static void rank_killed_no_fd(int rank, int n, void *arg)
{
    struct rlimit old, none;
    int culprit, code, rc;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    need(getrlimit(RLIMIT_NOFILE, &old) == 0, "getrlimit");
    none = old;
    none.rlim_cur = 0;
    need(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
    wire_connect(&w, rank ^ 1);
    need(setrlimit(RLIMIT_NOFILE, &old) == 0, "setrlimit");
    wire_close_blobs(&w);
    wire_barrier(&w);
    need(w.tp->ops->health(w.tp, rank ^ 1, &culprit, &code) == 0 || rank == 0,
         "a good peer is not healthy");
    wire_barrier(&w);
    if (rank == 1)
        raise(SIGKILL);
    rc = wire_health(&w, 1, &culprit, &code);
    need(rc == DTENSOR_EPEER, "health of the dead: %s", dtensor_errname(rc));
    wire_close(&w);
}

/* It dies before anyone connects.  Where its memory is left behind, with its
 * last words in it, connecting still works; its health tells.
 */
static void rank_killed_early(int rank, int n, void *arg)
{
    struct dtensor_error err = { 0 };
    struct dtn_wait wait;
    struct wire w;
    int culprit, code, rc;

    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    wire_barrier(&w);
    if (rank == 0)
        raise(SIGKILL);
    await_burial(0);
    wait = wire_patience(&w);
    while ((rc = w.tp->ops->connect(w.tp, 0, &w.blobs[0], &err)) ==
           DTENSOR_EAGAIN)
        wire_turn(&w, &wait, "a refusal");
    if (w.kind->ops == &dtn_shm_ops && rc == 0)
        need(w.tp->ops->health(w.tp, 0, &culprit, &code) == DTENSOR_EPEER,
             "a rank dead before is healthy");
    else
        need(rc == DTENSOR_EPEER && err.rank == 0, "connect: %s", err.text);
    wire_close_blobs(&w);
    wire_close(&w);
}

/* ---------------------------------------------------------------- pause --- */

static bool is_stopped(pid_t pid)
{
    char path[64], state = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    need(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1, "%s", path);
    fclose(file);
    return state == 'T';
}

static void rank_stopped(int rank, int n, void *arg)
{
    struct dtn_signal s = { .len = 0 };
    int culprit, code, rc, sent = 0;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    if (rank == 1) {
        raise(SIGSTOP);
        for (uint32_t i = 0; i < DTN_QUEUE_DEPTH; i++) {
            struct dtn_wait wait = wire_patience(&w);

            while (!w.tp->ops->peek(w.tp, 0))
                wire_turn(&w, &wait, "what came while it was stopped");
            w.tp->ops->consume(w.tp, 0);
        }
    } else {
        while (!is_stopped(wire_page->pid[1]))
            pause_ms(1);
        for (int i = 0; i < 200; i++) {
            sent += w.tp->ops->signal(w.tp, 1, &s, NULL) == 0;
            rc = w.tp->ops->health(w.tp, 1, &culprit, &code);
            need(rc == 0, "a stopped rank is taken for dead");
            w.tp->ops->progress(w.tp);
            pause_ms(1);
        }
        kill(wire_page->pid[1], SIGCONT);
        need(sent == DTN_QUEUE_DEPTH, "it took %d signals", sent);
    }
    wire_barrier(&w);
    wire_close(&w);
}

/* An abort is heard even when the rank is gone right after it. */
static void rank_abort_and_die(int rank, int n, void *arg)
{
    int culprit = -1, code = 0, rc;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    if (rank == 0) {
        w.tp->ops->abort(w.tp, 1, DTENSOR_EMISMATCH);
        raise(SIGKILL);
    }
    await_burial(0);
    rc = wire_health(&w, 0, &culprit, &code);
    need(rc == DTENSOR_EABORT && culprit == 1 && code == DTENSOR_EMISMATCH,
         "health: %s, blames %d for %s", dtensor_errname(rc), culprit,
         dtensor_errname(code));
    wire_close(&w);
}

/* ------------------------------------------------------------ leftovers --- */

/* Is it in the file system or the abstract namespace, where it would stay? */
static bool has_name(int fd)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    char path[64], target[512];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    if (strncmp(target, "/memfd:", 7) == 0 || strncmp(target, "anon_inode:",
                                                      11) == 0
        || strncmp(target, "/dev/infiniband/", 16) == 0)
        return false;
    if (strncmp(target, "socket:", 7) != 0)
        return true;
    return getsockname(fd, (struct sockaddr *)&at, &size) < 0 ||
           (at.ss_family == AF_UNIX && size > sizeof at.ss_family);
}

static void rank_leftovers(int rank, int n, void *arg)
{
    bool held[256];
    struct wire w;
    char line[600];
    FILE *maps;

    for (int fd = 0; fd < 256; fd++)
        held[fd] = fcntl(fd, F_GETFD) >= 0;
    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    for (int fd = 0; fd < 256; fd++)
        if (!held[fd] && fcntl(fd, F_GETFD) >= 0) {
            need(!has_name(fd), "descriptor %d has a name", fd);
            need(fcntl(fd, F_GETFD) & FD_CLOEXEC, "fd %d survives exec", fd);
        }
    maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps))
        need(!strstr(line, "/dev/shm"), "a mapping has a name: %s", line);
    fclose(maps);
    wire_barrier(&w);
    raise(SIGKILL);
}

/* ------------------------------------------------------------ strangers --- */

/* Dial rank 0 and say something silly; it must not disturb the others. */
static void stranger(const struct dtn_blob *blob, const void *words,
                     size_t size)
{
    const size_t at = offsetof(struct dtn_tcp_address, at);
    struct sockaddr_in to;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&to, blob->bytes + at, sizeof to);
    need(connect(fd, (struct sockaddr *)&to, sizeof to) == 0,
         "stranger: %s", strerror(errno));
    if (size > 0)
        need(send(fd, words, size, MSG_NOSIGNAL) == (ssize_t)size, "send");
    /* Left open: it keeps rank 0 waiting. */
}

static void rank_strangers(int rank, int n, void *arg)
{
    unsigned char noise[64];
    struct wire w;

    memset(noise, 0xa5, sizeof noise);
    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    if (rank == n - 1) {
        for (int i = 0; i < 30; i++)
            stranger(&w.blobs[0], noise, (size_t)i * 2);
        stranger(&w.blobs[0], "GET / HTTP/1.0\r\n\r\n", 18);
    }
    wire_barrier(&w);
    for (int r = 0; r < n; r++)
        if (r != rank)
            wire_connect(&w, r);
    wire_barrier(&w);
    for (int r = 0; r < n; r++)
        if (r != rank)
            wire_signal(&w, r, 1, 1);
    for (int r = 0; r < n; r++)
        if (r != rank)
            wire_await(&w, r, 1, 1);
    wire_barrier(&w);
    wire_close(&w);
}

/* A blob that lies is refused before anything is mapped. */
static void rank_liars(int rank, int n, void *arg)
{
    struct dtensor_error err = { 0 };
    struct dtn_blob blob;
    struct wire w;
    int plain;

    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    for (size_t i = 0; i < 32; i++) {
        blob = w.blobs[rank ^ 1];
        blob.bytes[i] ^= 0x41;
        need(w.tp->ops->connect(w.tp, rank ^ 1, &blob, &err) == DTENSOR_ESYS,
             "an address with byte %zu wrong is taken", i);
    }
    blob = w.blobs[rank ^ 1];
    plain = memfd_create("unsealed", MFD_CLOEXEC);
    need(ftruncate(plain, WIRE_ARENA) == 0, "ftruncate");
    blob.fd = plain;
    need(w.tp->ops->connect(w.tp, rank ^ 1, &blob, &err) == DTENSOR_ESYS,
         "a file that can shrink is mapped");
    note("%s", err.text);
    close(plain);
    blob.fd = -1;
    need(w.tp->ops->connect(w.tp, rank ^ 1, &blob, &err) == DTENSOR_ESYS,
         "connected without a descriptor");
    wire_connect(&w, rank ^ 1);
    wire_close_blobs(&w);
    wire_barrier(&w);
    wire_close(&w);
}

/* ------------------------------------------------------------ the suite --- */

static const struct {
    const char *claim;
    rank_main_f *play;
    int n;
    int deaths;
    bool meets;                   /* needs a wire that notices while meeting  */
} scenarios[] = {
    { "a killed rank is noticed", rank_killed, 4, 1, false },
    { "and so it is when it is written to", rank_killed_busy, 3, 1, false },
    { "a rank that dies before it is connected", rank_killed_early, 2, 1,
      true },
    { "a stopped rank is not dead, and misses nothing", rank_stopped, 2, 0,
      false },
    { "an abort is heard from one who died of it", rank_abort_and_die, 3, 1,
      false },
    { "what killed ranks leave behind has no name", rank_leftovers, 3, 3,
      false },
};

static int run(rank_main_f *play, int n, const struct wire_kind *kind)
{
    int bad;

    wire_prepare();
    bad = ranks_run(n, 40, play, (void *)(uintptr_t)kind, NULL);
    wire_cleanup();
    return bad;
}

/* Over rc ranks meet by datagrams, which nobody has to answer at once: one
 * that is dead is found out by op_timeout.
 */
static void run_kind(const struct wire_kind *kind)
{
    bool rc = strcmp(kind->label, "rc") == 0;
    const char *absent = rc ? rdma_absent() : NULL;

    if (absent) {
        skip("deaths over rc", absent);
        return;
    }
    for (size_t i = 0; i < DTN_COUNT(scenarios); i++)
        if (!rc || !scenarios[i].meets)
            ok(run(scenarios[i].play, scenarios[i].n, kind) ==
               scenarios[i].deaths, "%s: %s", kind->label, scenarios[i].claim);
}

/* Argument: only over this transport. */
int main(int argc, char **argv)
{
    for (size_t k = 0; k < DTN_COUNT(kinds); k++)
        if (argc < 2 || strcmp(argv[1], kinds[k].label) == 0)
            run_kind(&kinds[k]);
    if (argc > 1)
        return done();
    ok(run(rank_killed_no_fd, 2, &kinds[0]) == 1,
       "shm: death is noticed where no descriptor is left to watch it");
    ok(run(rank_liars, 2, &kinds[0]) == 0,
       "shm: an address that lies is refused");
    ok(run(rank_strangers, 3, &kinds[1]) == 0,
       "tcp: strangers at the port do not disturb the ranks");
    return done();
}
