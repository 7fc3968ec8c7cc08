/* test_late_listeners.c - a rank that has lost its way to the job comes in, a
 * stranger does not
 *
 * Two hosts of two ranks.  Rank 2, the leader of the second host, is killed.
 * Rank 3 then connects to the late listener of rank 0 and says whom it names;
 * there is no other way.  Strangers have filled all places of it before.  With
 * another key rank 3 is refused, as when ranks join.
 *
 * Without this test, any process that found the port could say who is lost, or
 * keep the ranks of a host from saying it.
 */
#include "base/log.h"
#include "base/seal.h"
#include "boot/auth.h"
#include "boot/boot.h"
#include "boot/state.h"
#include "boot/table.h"
#include "cluster/cluster.h"
#include "cluster/defaults.h"
#include "cluster/world.h"
#include "transport/transport.h"
#include "tests/support/port.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, STRANGERS = 20 };

static struct play {
    bool other_key;               /* of rank 3                                */
    int port;                     /* of the job                               */
    _Atomic int watching;         /* ranks that have joined                   */
    _Atomic bool heard;           /* rank 0 heard what rank 3 said            */
    _Atomic unsigned refused;     /* by rank 0, for another key               */
    _Atomic bool over;            /* rank 0 has ended                         */
} *play;

static void nap(void)
{
    const struct timespec one = { 0, 1000000 };

    nanosleep(&one, NULL);
}

static void cluster_make(struct dtensor_cluster *c)
{
    static char text[2][2][32], path[] = "test.ini";
    static struct dtn_host hosts[2];

    c->auth = DTN_AUTH_KEY;
    c->path = path;
    c->hosts = hosts;
    dtn_transport_defaults(&c->transport);
    c->transport.port = play->port;
    c->nhosts = 2;
    c->world_size = RANKS;
    for (int h = 0; h < 2; h++) {
        snprintf(text[h][0], sizeof text[h][0], "n%d", h);
        snprintf(text[h][1], sizeof text[h][1], "127.0.0.%d", 2 + h);
        c->hosts[h] = (struct dtn_host){ .name = text[h][0],
            .address = text[h][1], .first_rank = 2 * h, .nranks = 2 };
    }
}

static uint16_t rank_join(const struct dtn_world *world, struct dtn_log *log,
                          struct dtn_boot **boot)
{
    const struct dtn_boot_args args = { .world = world, .identity = "",
                                        .log = log };
    struct dtn_blob mine = { .fd = -1 };
    struct dtn_table *all;
    struct dtensor_error err;
    uint16_t port;
    int fd;

    need(dtn_boot_open(&args, boot, &err) == 0, "%s", err.text);
    port = dtn_boot_late_open(*boot);
    mine.size = sizeof port;
    memcpy(mine.bytes, &port, sizeof port);
    need(dtn_boot_beat_open(*boot, &mine.fd, &err) == 0, "%s", err.text);
    need(dtn_boot_allgather(*boot, &mine, &all, &err) == 0, "%s", err.text);
    dtn_boot_late_ports(*boot, all, 0);
    fd = dtn_table_take_fd(all, world->rank / 2 * 2);
    dtn_table_free(all);
    need(dtn_boot_beat_start(*boot, fd, &err) == 0, "%s", err.text);
    dtn_boot_beat_await(*boot);
    dtn_boot_watch_start(*boot);
    return port;
}

/* They say nothing, and stay. */
static void strangers_come(uint16_t port)
{
    const struct sockaddr_in at = { .sin_family = AF_INET,
        .sin_port = htons(port), .sin_addr.s_addr = inet_addr("127.0.0.2") };

    for (int i = 0; i < STRANGERS; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);

        need(connect(fd, (const struct sockaddr *)&at, sizeof at) == 0,
             "a stranger does not reach it");
    }
}

/* Until rank 3 is heard, or was refused and has tried again. */
static void rank_listen(struct dtn_boot *boot)
{
    while (!play->heard && play->refused < 2) {
        nap();
        dtn_boot_watch(boot);
        play->heard = dtn_boot_peer_failure(boot, 3)->order > 0;
        play->refused = boot->refused[DTN_REFUSED_KEY];
    }
    play->over = true;
}

static void rank_play(int rank, int nranks, void *arg)
{
    struct dtensor_cluster c = { .nhosts = 0 };
    struct dtn_world world = { .rank = rank, .size = nranks, .cluster = &c };
    struct dtn_log log;
    struct dtn_boot *boot;
    uint16_t port;

    (void)arg;
    dtn_log_init(&log);
    cluster_make(&c);
    snprintf(world.job, sizeof world.job, "late-%d", play->port);
    port = rank_join(&world, &log, &boot);
    if (rank == 3 && play->other_key)
        boot->auth.key[0] ^= 1;
    if (rank == 0)
        strangers_come(port);
    play->watching++;
    while (play->watching < RANKS)
        nap();
    if (rank == 2)
        kill(getpid(), SIGKILL);
    if (rank == 0)
        rank_listen(boot);
    while (!play->over) {
        nap();
        dtn_boot_watch(boot);
        if (rank == 3 && dtn_boot_peer_failure(boot, 2)->order > 0)
            dtn_boot_report_failure(boot, 2, DTENSOR_EPEER,
                                    &(struct dtn_mismatch){ .rank = 0 });
    }
    dtn_boot_close(boot);
}

static void test_late_listeners(bool other_key, const char *claim)
{
    int status[RANKS];

    memset(play, 0, sizeof *play);
    play->other_key = other_key;
    play->port = port_own() + other_key;
    ok(ranks_run(RANKS, 10, rank_play, NULL, status) == 1
       && play->heard == !other_key && (play->refused > 0) == other_key,
       "%s", claim);
    note("heard: %d, refused: %u", play->heard, play->refused);
}

int main(void)
{
    if (!dtn_seal_present())
        return skip_all("no libsodium in this build");
    setenv("DTN_KEY", RANKS_KEY, 1);
    play = mmap(NULL, sizeof *play, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    test_late_listeners(false, "the leader of a host is killed: its other rank "
               "is heard through the late listener, past strangers");
    test_late_listeners(true, "with another key it is refused");
    return done();
}
