/* boot_job.c - play a job: processes that open a bootstrap, and what they say
 */
#include "base/error.h"
#include "base/log.h"
#include "base/seal.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/table.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "cluster/cluster.h"
#include "cluster/defaults.h"
#include "cluster/world.h"
#include "transport/transport.h"
#include "tests/boot/boot_job.h"
#include "tests/support/gate.h"
#include "tests/support/port.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

struct said *said;
struct seen *seen;
int job_crashed;
static _Atomic int *ready;
int job_port;
static struct sockaddr_un job_addr; /* of host n0 inside its machine         */
static socklen_t job_addr_size;
static struct gate late;           /* for actors that come late               */
static int job_salt;              /* in the blobs of this actor's job         */

static void job_address(void)
{
    struct dtn_host host = { .name = (char[]){ "n0" } };
    const struct dtn_host *hosts[] = { &host };
    struct dtn_boot boot = { .hosts = hosts };
    char job[80];

    snprintf(job, sizeof job, "test-%d", (int)getpid());
    dtn_boot_socket_name(&boot, job);
    job_addr.sun_family = AF_UNIX;
    memcpy(job_addr.sun_path + 1, boot.name, strlen(boot.name));
    job_addr_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                strlen(boot.name));
}

void job_init(void)
{
    size_t size = JOB_ACTORS * sizeof *said + sizeof *seen + sizeof *ready;

    said = mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    seen = (struct seen *)(said + JOB_ACTORS);
    ready = (_Atomic int *)(seen + 1);
    if (dtn_seal_present())
        setenv("DTN_KEY", JOB_KEY, 1);
    gate_make(&late);
    job_address();
    job_port = port_own();
}

struct boot_job job_of(int nhosts, const int nranks[])
{
    struct boot_job job = { .nhosts = nhosts, .timeout_ms = LIMIT_MS,
                            .rounds = 1 };

    for (int h = 0; h < nhosts; h++) {
        job.nranks[h] = nranks[h];
        for (int i = 0; i < nranks[h]; i++, job.nactors++)
            job.actor[job.nactors].rank = job.nactors;
    }
    return job;
}

struct boot_job job_even(int nhosts, int each)
{
    int nranks[JOB_HOSTS];

    for (int h = 0; h < nhosts; h++)
        nranks[h] = each;
    return job_of(nhosts, nranks);
}

void job_drop(struct boot_job *job, int rank)
{
    for (int i = 0; i < job->nactors; i++)
        if (job->actor[i].rank == rank)
            job->actor[i--] = job->actor[--job->nactors];
}

/* The cluster as this actor believes it to be; names live in `text`. */
static void job_cluster(const struct boot_job *job, const struct actor *a,
                        struct dtensor_cluster *c, char text[][2][32])
{
    c->auth = dtn_seal_present() && !a->no_auth ? DTN_AUTH_AUTO : DTN_AUTH_NONE;
    if (a->munge)
        c->auth = DTN_AUTH_MUNGE;
    c->path = text[JOB_HOSTS][0];
    strcpy(c->path, "test.ini");
    dtn_transport_defaults(&c->transport);
    c->transport.port = job_port + a->other_port;
    c->transport.connect_timeout_ns = job->timeout_ms * INT64_C(1000000);
    c->nhosts = job->nhosts + a->more_hosts;
    for (int h = 0; h < c->nhosts; h++) {
        struct dtn_host *host = &c->hosts[h];

        host->name = text[h][0];
        host->address = text[h][1];
        snprintf(host->name, 32, "n%d", h);
        snprintf(host->address, 32, "127.0.0.%d", 2 + h);
        if (h == 0 && job->foreign)
            strcpy(host->address, "203.0.113.1");
        host->first_rank = c->world_size;
        host->nranks = h < job->nhosts ? job->nranks[h] : 1;
        c->world_size += host->nranks;
    }
}

static int job_count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Leave the process only so many descriptors. */
static void job_limit_fds(int left)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)(job_count_fds() - 3 + left);
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* What rank r puts into round n: its size varies from 0 to DTN_BLOB_MAX. */
static void job_blob(int r, int round, struct dtn_blob *blob)
{
    blob->size = (size_t)(r * 337 + round * 511) % (DTN_BLOB_MAX + 1);
    blob->fd = -1;
    for (size_t i = 0; i < blob->size; i++)
        blob->bytes[i] = (unsigned char)(r * 31 + round + (int)i + job_salt);
}

static bool job_fd_right(const struct dtensor_cluster *c, int me, int r,
                         int fd)
{
    bool here = false;
    int value = -1;

    for (int h = 0; h < c->nhosts; h++) {
        int first = c->hosts[h].first_rank, end = first + c->hosts[h].nranks;

        here = here || (me >= first && me < end && r >= first && r < end);
    }
    if (!here || r == me || r % 5 == 3)
        return fd == -1;
    return fd >= 0 && pread(fd, &value, sizeof value, 0) == sizeof value &&
           value == r;
}

/* One round; every rank passes a memfd but each fifth. */
static int job_round(const struct dtensor_cluster *c, int me, int round,
                     struct dtn_boot *boot, struct said *say)
{
    static struct dtn_blob got, mine, want;
    struct dtn_table *all;
    bool right = true;
    int rc;

    job_blob(me, round, &mine);
    if (me % 5 != 3) {
        mine.fd = memfd_create("rank", MFD_CLOEXEC);
        if (write(mine.fd, &me, sizeof me) != sizeof me)
            return DTENSOR_ESYS;
    }
    rc = dtn_boot_allgather(boot, &mine, &all, &say->err);
    for (int r = 0; rc == 0 && r < c->world_size; r++) {
        job_blob(r, round, &want);
        dtn_table_get(all, r, &got);
        right = right && got.size == want.size &&
                memcmp(got.bytes, want.bytes, want.size) == 0 &&
                job_fd_right(c, me, r, got.fd);
    }
    if (rc == 0)
        dtn_table_free(all);
    if (mine.fd >= 0)
        close(mine.fd);
    say->right = say->right && right;
    return rc;
}

/* The reason of a rank that fails by itself. */
static void job_reason(struct dtensor_error *reason)
{
    dtn_fail(reason, DTENSOR_ENODEV, "verbs: no RDMA device (see ibv_devices)");
}

/* One bootstrap, from open to close. */
static int job_cycle(const struct boot_job *job, const struct actor *a,
                     const struct dtn_boot_args *args,
                     const struct dtensor_error *reason, int64_t start,
                     struct said *say)
{
    struct dtn_boot *boot = NULL;
    int rc = dtn_boot_open(args, &boot, &say->err);

    say->open_ns = dtn_now_ns() - start;
    if (rc != 0 && boot)
        say->right = false;          /* outputs must stay untouched          */
    if (rc == 0 && a->refuses) {
        say->err = *reason;
        dtn_boot_give_up(boot, &say->err);
        rc = reason->code;
    }
    if (rc == 0 && a->skips == STUCK)
        job_await(&seen->ended, job->nactors - 1);
    for (int n = 1; rc == 0 && !a->skips && n <= job->rounds; n++)
        rc = job_round(args->world->cluster, a->rank, n, boot, say);
    dtn_boot_close(boot);
    return rc;
}

static void job_act(const struct boot_job *job, const struct actor *a,
                    struct said *say)
{
    static char text[JOB_HOSTS + 1][2][32], identity[256];
    static struct dtn_host hosts[JOB_HOSTS];
    struct dtensor_cluster c = { .hosts = hosts };
    struct dtn_world world = { .cluster = &c, .rank = a->rank };
    struct dtn_boot_args args = { &world, identity, NULL, NULL };
    struct dtensor_error reason;
    struct dtn_log log;
    int before, rc = 0;
    int64_t start;
    clock_t cpu;

    dtn_log_init(&log);
    log.rank = a->rank;
    args.log = &log;
    job_cluster(job, a, &c, text);
    world.size = c.world_size;
    snprintf(world.job, sizeof world.job, a->job ? "test-%d.%d" : "test-%d",
             (int)getppid(), a->job);
    job_salt = a->job;
    job_reason(&reason);
    if (a->fails)
        args.failure = &reason;
    for (int h = 0; h < c.nhosts; h++)
        if (a->rank >= hosts[h].first_rank)
            snprintf(world.host_name, sizeof world.host_name, "%s",
                     hosts[h].name);
    snprintf(identity, sizeof identity, "[world] size = %d\n"
             "[redistribute] pipeline = %dK\n[transport] port = %d\n",
             c.world_size, a->pipeline ? a->pipeline : 512, job_port);
    if (a->late)
        gate_pass(&late);
    if (a->delay_ms > 0)
        usleep((useconds_t)a->delay_ms * 1000);
    if (a->fds_left > 0)
        job_limit_fds(a->fds_left - 1);
    say->right = true;
    before = job_count_fds();
    start = dtn_now_ns();
    cpu = clock();
    for (int i = 0; rc == 0 && i < (job->cycles ? job->cycles : 1); i++)
        rc = job_cycle(job, a, &args, &reason, start, say);
    say->total_ns = dtn_now_ns() - start;
    say->cpu_us = clock() - cpu;
    say->leaked_fds = job_count_fds() - before;
    say->rc = rc;
    atomic_fetch_add(&seen->ended, 1);
}

static void job_child(const struct boot_job *job, int i)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    atomic_fetch_add(ready, 1);
    while (atomic_load(ready) < job->nactors)
        usleep(100);
    if (job->unprivileged && geteuid() == 0 && setuid(65534) != 0)
        exit(1);
    if (job->actor[i].uid && setuid(job->actor[i].uid) != 0)
        exit(1);
    if (job->actor[i].key)
        setenv("DTN_KEY", job->actor[i].key, 1);
    job_act(job, &job->actor[i], &said[i]);
    exit(0);                         /* not _exit(): leaks are reported      */
}

void job_run(const struct boot_job *job, void (*during)(void))
{
    int status;
    pid_t pid;

    memset(said, 0, JOB_ACTORS * sizeof *said);
    atomic_store(ready, 0);
    atomic_store(&seen->joined, 0);
    atomic_store(&seen->around, 0);
    atomic_store(&seen->ended, 0);
    job_crashed = 0;
    fflush(stdout);
    for (int i = 0; i < job->nactors; i++) {
        said[i].rc = 99;             /* until it says better                 */
        pid = fork();
        if (pid == 0)
            job_child(job, i);
        said[i].pid = pid;           /* in the parent alone: it is shared    */
    }
    if (during)
        during();
    for (int i = 0; i < job->nactors; i++)
        gate_open(&late, job->actor[i].late);
    for (int i = 0; i < job->nactors; i++) {
        if (said[i].pid == 0)        /* killed                               */
            continue;
        waitpid(said[i].pid, &status, 0);
        job_crashed += status != 0;
    }
    if (job_crashed)
        note("%d actors crashed or leaked memory", job_crashed);
}

void job_await(const _Atomic int *ranks, int n)
{
    for (int i = 0; i < LIMIT_MS && atomic_load(ranks) < n; i++)
        usleep(1000);
}

int job_others(const struct boot_job *job, int rank)
{
    int host = 0, first = 0, total = 0, children;

    for (int h = 0; h < job->nhosts; h++) {
        host = rank >= total ? h : host;
        first = rank >= total ? total : first;
        total += job->nranks[h];
    }
    children = job->nranks[host] - 1 + (2 * host + 1 < job->nhosts) +
               (2 * host + 2 < job->nhosts);
    return total - 1 - (rank == first ? children : 0);
}

void job_kill(int i)
{
    kill(said[i].pid, SIGKILL);
    waitpid(said[i].pid, NULL, 0);
    said[i].pid = 0;
}

int64_t job_slowest_ms(const struct boot_job *job)
{
    int64_t slowest = 0;

    for (int i = 0; i < job->nactors; i++)
        if (said[i].total_ns > slowest)
            slowest = said[i].total_ns;
    return slowest / 1000000;
}

void job_show(const struct boot_job *job)
{
    for (int i = 0; i < job->nactors; i++)
        note("rank %d: rc %d, %d fds leaked, right %d, %lld ms: %s",
             job->actor[i].rank, said[i].rc, said[i].leaked_fds, said[i].right,
             (long long)said[i].total_ns / 1000000, said[i].err.text);
}

bool job_good(const struct boot_job *job)
{
    bool good = job_crashed == 0;

    for (int i = 0; i < job->nactors; i++)
        good = good && said[i].rc == 0 && said[i].right &&
               said[i].leaked_fds == 0;
    if (!good)
        job_show(job);
    return good;
}

bool job_failed(const struct boot_job *job, int code, int culprit,
                const char *words, int within_ms)
{
    const char *first = NULL;
    bool good = job_crashed == 0;

    for (int i = 0; i < job->nactors; i++) {
        if (said[i].pid == 0)
            continue;
        if (!first)
            first = said[i].err.text;
        good = good && said[i].rc == code && said[i].err.code == code &&
               said[i].err.rank == culprit && said[i].leaked_fds == 0 &&
               said[i].right && strstr(said[i].err.text, words) &&
               strcmp(said[i].err.text, first) == 0;
    }
    good = good && job_slowest_ms(job) <= within_ms;
    if (!good)
        job_show(job);
    return good;
}

int64_t job_join_ns(const struct boot_job *job, void (*during)(void))
{
    struct boot_job latter = *job;
    int64_t best = INT64_MAX;

    for (int i = latter.nranks[0]; i < latter.nactors; i++)
        latter.actor[i].late = true;
    job_run(&latter, during);
    if (!job_good(&latter))
        return -1;
    for (int i = latter.nranks[0]; i < latter.nactors; i++)
        if (said[i].open_ns < best)
            best = said[i].open_ns;
    return best;
}

int64_t job_joins_ns(const struct boot_job *job)
{
    int64_t best = INT64_MAX, one;

    for (int round = 0; round < 5; round++) {
        one = job_join_ns(job, NULL);
        best = one < best ? one : best;
    }
    return best;
}

int take_port(const char *address)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    addr.sin_port = htons((uint16_t)job_port);
    inet_pton(AF_INET, address, &addr.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        listen(fd, 1) != 0)
        note("cannot take the port");
    return fd;
}

/* ------------------------------------------------------ from outside --- */

int knock_tcp(void)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    int fd = -1;

    addr.sin_port = htons((uint16_t)job_port);
    inet_pton(AF_INET, "127.0.0.2", &addr.sin_addr);
    for (int i = 0; i < LIMIT_MS; i++) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
            return fd;
        close(fd);
        usleep(1000);
    }
    return -1;
}

socklen_t local_addr(struct sockaddr_un *addr)
{
    *addr = job_addr;
    return job_addr_size;
}

int knock_local(void)
{
    struct sockaddr_un addr;
    socklen_t len = local_addr(&addr);

    for (int i = 0; i < LIMIT_MS; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (connect(fd, (struct sockaddr *)&addr, len) == 0)
            return fd;
        close(fd);
        usleep(1000);
    }
    return -1;
}
