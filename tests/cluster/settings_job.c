/* settings_job.c - what a cluster file makes a job do, as text
 *
 * The job has all ranks of the file, each a process.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "dtensor.h"
#include "tests/cluster/settings.h"
#include "tests/support/ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Which rank is late, and for what. */
enum late { NOBODY, TO_START, TO_CALL };

struct play {
    const char *path;
    const struct dtensor_cluster *cluster;
    enum late late;
    int go[2];                    /* rank 0 waits for rank 1; it has done so  */
};

/* Rank 0 is about to wait for rank 1, or has done so. */
static void play_tell(const struct play *play, int rank)
{
    if (rank == 0 && write(play->go[1], "x", 1) != 1)
        exit(1);
}

/* Called by all ranks where rank 1 is to be late: until rank 0 has given up, at
 * most 2 s.
 */
static void play_late(const struct play *play, int rank)
{
    struct pollfd over = { .fd = play->go[0], .events = POLLIN };
    char byte;

    play_tell(play, rank);
    if (rank != 1)
        return;
    if (read(play->go[0], &byte, 1) != 1)
        exit(1);
    poll(&over, 1, 2000);
}

static void say_cpus(void)
{
    cpu_set_t set;

    sched_getaffinity(0, sizeof set, &set);
    say("may use %d CPUs\n", CPU_COUNT(&set));
}

/* The TCP connections that this process has. */
static void say_sockets(void)
{
    struct sockaddr_in own, peer;
    char text[INET_ADDRSTRLEN];

    for (int fd = 3; fd < 64; fd++) {
        socklen_t size = sizeof own, peer_size = sizeof peer;

        if (getsockname(fd, (struct sockaddr *)&own, &size) != 0
            || own.sin_family != AF_INET
            || getpeername(fd, (struct sockaddr *)&peer, &peer_size) != 0)
            continue;
        say("connected at %s:%d,\n",
            inet_ntop(AF_INET, &own.sin_addr, text, sizeof text),
            ntohs(own.sin_port));
    }
}

static void say_memory(struct dtensor_ctx *ctx)
{
    static unsigned char own[1 << 16];
    struct dtensor_error err = { .text = "taken" };
    void *mem = NULL;

    dtensor_register(ctx, own, sizeof own, &err);
    say("register: %s\n", err.text);
    dtensor_unregister(ctx, own);
    snprintf(err.text, sizeof err.text, "taken");
    dtensor_alloc(ctx, 24 << 20, &mem, &err);
    say("alloc: %s\n", err.text);
    dtensor_free(ctx, mem);
}

/* 10001 random numbers cut along the first dimension: seed, offset, values. */
static void say_random(struct dtensor_ctx *ctx,
                       const struct dtensor_mesh *world)
{
    const int64_t shape[] = { 10001 };
    struct dtensor_generator *gen = dtensor_generator_default(ctx);
    struct dtensor *t = NULL;
    struct dtensor_spec spec;
    struct dtensor_error err;
    const uint32_t *part;

    if (dtensor_spec_on(&spec, world, "S(0)", DTENSOR_I32, 1, shape, &err) != 0
        || dtensor_empty(&spec, &t, &err) != 0
        || dtensor_fill_bits(t, NULL, &err) != 0) {
        say("random: %s\n", err.text);
    } else {
        part = dtensor_to_local(t);
        say("seed %llu, offset %lld, first %08x %08x\n",
            (unsigned long long)dtensor_generator_seed(gen),
            (long long)dtensor_generator_offset(gen), part[0], part[1]);
    }
    dtensor_destroy(t);
}

/* 64 KiB that rank 0 has. */
static void say_distribute(struct dtensor_ctx *ctx,
                           const struct dtensor_mesh *world)
{
    static float full[128 * 128];
    const int64_t shape[] = { 128, 128 };
    struct dtensor *t = NULL;
    struct dtensor_spec spec;
    struct dtensor_error err;

    if (dtensor_spec_on(&spec, world, "S(0)", DTENSOR_F32, 2, shape, &err) != 0
        || dtensor_distribute(&spec, full, 0, &t, &err) != 0)
        say("distribute: %s\n", err.text);
    else
        say("distribute: %s\n", dtensor_last_plan(ctx));
    dtensor_destroy(t);
}

static void say_work(struct dtensor_ctx *ctx, const struct play *play)
{
    const float terms[] = { 1e8f, -1e8f, 1, 0 };
    const struct dtensor_mesh *world;
    struct dtensor_error err;
    float in[3], out[3];
    int rank = dtensor_rank(ctx);

    for (int i = 0; i < 3; i++)
        in[i] = terms[rank < 3 ? rank : 3];
    if (play->late == TO_CALL)
        play_late(play, rank);
    if (dtensor_mesh_find(ctx, "world", &world, &err) != 0
        || dtensor_allreduce(world, in, out, 3, DTENSOR_F32, DTENSOR_SUM, &err)
           != 0) {
        say("error: %s\n", err.text);
        return;
    }
    say("sums %g %g %g by %s\n", (double)out[0], (double)out[1], (double)out[2],
        dtensor_last_plan(ctx));
    if (dtensor_mesh_ndim(world) == 1) {
        say_distribute(ctx, world);
        say_random(ctx, world);
    }
    say_memory(ctx);
}

/* On which host of the file a rank runs. */
static void play_be(const struct dtensor_cluster *cluster, int rank)
{
    const struct dtn_host *host = cluster->hosts;

    while (rank >= host->first_rank + host->nranks)
        host++;
    if (strcmp(host->name, "localhost") != 0)
        setenv("DTN_HOST", host->name, 1);
    ranks_setenv("DTN_LOCAL_RANK", rank - host->first_rank);
    ranks_setenv("DTN_LOCAL_SIZE", host->nranks);
}

static void play_rank(int rank, int n, void *arg)
{
    static char said[SAID];
    const struct play *play = arg;
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;

    (void)n;
    play_be(play->cluster, rank);
    say_begin(said);
    say("[rank %d] ", rank);
    if (play->late == TO_START)
        play_late(play, rank);
    if (dtensor_init(play->path, &ctx, &err) != 0) {
        say("error: %s\n", err.text);
    } else {
        say("in %s\n", dtensor_cluster_name(ctx));
        say_cpus();
        say_sockets();
        say_work(ctx, play);
    }
    fputs(said, stderr);
    play_tell(play, rank);
    dtensor_fini(ctx);
}

/* Read all that is written to a pipe into `said`. */
static void take(int fd, char said[SAID])
{
    size_t used = 0;
    ssize_t n;

    while ((n = read(fd, said + used, SAID - 1 - used)) > 0)
        used += (size_t)n;
    said[used] = '\0';
    close(fd);
}

static void play(const char *path, enum late late, char said[SAID])
{
    static int plays;
    struct dtensor_cluster *cluster = NULL;
    struct play play = { .path = path, .late = late };
    int out[2], before = dup(2), n;
    struct dtensor_error err;
    char job[64];

    if (dtensor_cluster_read(path, NULL, NULL, &cluster, &err) != 0) {
        snprintf(said, SAID, "%s", err.text);
        close(before);
        return;
    }
    play.cluster = cluster;
    n = cluster->world_size;
    snprintf(job, sizeof job, "settings-%d-%d", (int)getpid(), ++plays);
    if (pipe(out) != 0 || pipe(play.go) != 0 || dup2(out[1], 2) < 0)
        exit(99);
    for (int r = 0; r < n; r++)
        rank_fork(r, n, job, play_rank, &play);
    dup2(before, 2);
    close(before);
    close(out[1]);
    close(play.go[0]);
    close(play.go[1]);
    take(out[0], said);
    while (n-- > 0)
        wait(NULL);
    dtensor_cluster_destroy(cluster);
}

void look_job(const char *path, char said[SAID])
{
    play(path, NOBODY, said);
}

void look_started(const char *path, char said[SAID])
{
    play(path, TO_START, said);
}

void look_called(const char *path, char said[SAID])
{
    play(path, TO_CALL, said);
}
