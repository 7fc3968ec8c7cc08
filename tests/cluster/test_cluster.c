/* test_cluster.c - good cluster files: what they mean
 *
 * Each file is read and its hosts, ranks, meshes and settings are compared.
 * Files that mean the same must have the same digest.
 *
 * Without this test, a key could be read into the wrong field, or two ranks
 * with different files could pass as alike.
 */
#include "base/compiler.h"
#include "base/ranks.h"
#include "cluster/builtin.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "cluster/defaults.h"
#include "cluster/seed.h"
#include "dtensor.h"
#include "tests/cluster/cluster_files.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct report report;

/* Read a file that must be good. */
static struct dtensor_cluster *good(const char *text)
{
    struct dtensor_cluster *cluster = NULL;
    struct dtensor_error err;

    if (read_text(text, &cluster, &report, &err) != 0 || *report.text) {
        ok(false, "the file is good");
        note("%s", report.text);
        exit(1);
    }
    return cluster;
}

static struct dtensor_cluster *example(const char *name)
{
    struct dtensor_cluster *cluster = NULL;
    struct dtensor_error err;
    char path[4096];

    snprintf(path, sizeof path, "%s/conf/%s", getenv("top_srcdir") ?
             getenv("top_srcdir") : ".", name);
    if (!ok(dtensor_cluster_read(path, NULL, NULL, &cluster, &err) == 0,
            "conf/%s is good", name)) {
        note("%s", err.text);
        exit(1);
    }
    return cluster;
}

static char *canonical(const struct dtensor_cluster *cluster)
{
    char *text = NULL;

    if (dtn_cluster_canonical(cluster, &text, NULL) != 0)
        exit(1);
    return text;
}

/* ------------------------------------------------------------ examples --- */

static void test_two_nodes(void)
{
    struct dtensor_cluster *c = example("two-nodes.ini");
    const struct dtn_nodes *nodes = &c->nodes[0];

    ok(c->world_size == 8 && c->nhosts == 2 && strcmp(c->name, "pair") == 0,
       "two nodes of four ranks are eight");
    ok(strcmp(c->hosts[1].name, "gpu02") == 0 &&
       strcmp(c->hosts[1].address, "10.12.0.2") == 0 &&
       c->hosts[1].first_rank == 4 && c->hosts[1].nranks == 4,
       "rank 4 is the first of gpu02 at 10.12.0.2");
    ok(strcmp(nodes->hca[1], "mlx5_0:1") == 0 &&
       strcmp(nodes->hca[2], "mlx5_1:1") == 0 && nodes->nrails == 1 &&
       nodes->gid_index == 3 &&
       strcmp(nodes->cpus[1], "16-31") == 0, "local ranks have their devices");
    ok(c->transport.inter_node == DTN_WIRE_RC && c->transport.mtu == 4096 &&
       c->redistribute.pipeline_bytes == 4 << 20 &&
       c->transport.op_timeout_ns == 600 * INT64_C(1000000000) &&
       c->transport.stall_after_ns == 5 * INT64_C(1000000000),
       "sizes are in bytes and times in nanoseconds");
    ok(c->nmeshes == 2 && c->meshes[0].ndim == 2 &&
       c->meshes[0].size[1] == 4 && c->meshes[1].ndim == 1 &&
       strcmp(c->meshes[1].dim_name[0], "tp") == 0 &&
       c->meshes[1].ranks.n == 4 && dtn_ranks_at(&c->meshes[1].ranks, 3) == 3,
       "selecting pp=0 of pp=2, tp=4 leaves tp over ranks 0-3");
    ok(c->tuning[DTN_TUNED_ALLREDUCE].n == 2 &&
       c->tuning[DTN_TUNED_ALLREDUCE].entry[1].from_bytes == 32 << 10 &&
       c->tuning[DTN_TUNED_ALLREDUCE].entry[1].algorithm == DTN_ALG_RING &&
       c->tuning[DTN_TUNED_REDUCE].n == 0, "[tuning] is two ranges, or none");
    ok(dtn_seed_of(c, 3) == 0x5EED && dtn_seed_of(c, 4) == 0x5EEE,
       "each pp coordinate has its own seed");
    dtensor_cluster_destroy(c);
}

#define LEAST "[cluster]\nversion = 1\n" \
              "[nodes \"a\"]\nhosts = n[1-2]\nranks = 4\n"

static void test_facts(void)
{
    struct dtensor_cluster *c = example("two-nodes.ini"), *least = good(LEAST);
    struct dtensor_cluster_info info;
    struct dtensor_cluster_rank rank;
    struct dtensor_error err;

    dtensor_cluster_info(c, &info);
    ok(info.nranks == 8 && info.nhosts == 2 && strcmp(info.name, "pair") == 0 &&
       strcmp(info.intra_node, "shm") == 0 &&
       strcmp(info.inter_node, "rc") == 0, "the facts of two nodes");
    ok(dtensor_cluster_rank(c, 6, &rank, &err) == 0 && rank.local == 2 &&
       strcmp(rank.host, "gpu02") == 0 && rank.gpu == -1 &&
       strcmp(rank.address, "10.12.0.2") == 0 &&
       strcmp(rank.hca, "mlx5_1:1") == 0 && strcmp(rank.cpus, "32-47") == 0,
       "the facts of rank 6");
    ok(dtensor_cluster_rank(c, 8, &rank, &err) == DTENSOR_EINVAL &&
       strstr(err.text, "no rank 8 (it has 8)") && rank.local == 2,
       "there is no rank 8");
    ok(dtensor_cluster_rank(least, 4, &rank, &err) == 0 && !rank.hca &&
       !rank.cpus && strcmp(rank.address, rank.host) == 0,
       "what a file does not name is NULL");
    dtensor_cluster_destroy(least);
    dtensor_cluster_destroy(c);
}

static void test_big(void)
{
    struct dtensor_cluster *c = example("128-nodes.ini");
    const struct dtn_mesh_def *last = &c->meshes[2];
    bool good_seeds = true;

    ok(c->world_size == 1024 && c->nhosts == 128 &&
       strcmp(c->hosts[96].name, "node101") == 0 &&
       strcmp(c->hosts[96].address, "node101-ib0") == 0,
       "node101 is the 97th of 128 nodes");
    ok(strcmp(c->nodes[1].hca[4], "mlx5_6:1") == 0 && c->nodes[1].cpus_numa,
       "local rank 4 of the second rack has mlx5_6");
    ok(last->ranks.n == 64 && dtn_ranks_at(&last->ranks, 0) == 960 &&
       dtn_ranks_at(&last->ranks, 63) == 1023 &&
       last->ndim == 2, "the last stage is ranks 960-1023");
    for (int r = 0; r < 1024; r++)
        good_seeds &= dtn_seed_of(c, r) == UINT64_C(20261120) +
                      100 * (uint64_t)(r / 64);
    ok(good_seeds, "seeds are base + 100 * pp");
    dtensor_cluster_destroy(c);
}

/* ------------------------------------------------------------ defaults --- */

/* All numbers; the bytes between `timeout` and what follows are nobody's. */
static bool same_transport(const struct dtn_transport_conf *a,
                           const struct dtn_transport_conf *b)
{
    size_t ints = offsetof(struct dtn_transport_conf, timeout) + sizeof(int);
    size_t words = offsetof(struct dtn_transport_conf, connect_timeout_ns);

    return memcmp(a, b, ints) == 0
        && memcmp(&a->connect_timeout_ns, &b->connect_timeout_ns,
                  sizeof *a - words) == 0;
}

static void test_defaults(void)
{
    struct dtensor_cluster *c = good(LEAST), *laptop;
    struct dtn_transport_conf defaults;

    dtn_transport_defaults(&defaults);
    ok(same_transport(&c->transport, &defaults),
       "without [transport] the defaults hold");
    ok(c->redistribute.max_scratch_bytes == 256 << 20 &&
       c->redistribute.pipeline_bytes == 4 << 20 &&
       !c->seed.given && c->seed.stride == 1,
       "and those of the other sections");
    ok(c->nmeshes == 1 && strcmp(c->meshes[0].name, "world") == 0 &&
       c->meshes[0].ndim == 1 && c->meshes[0].size[0] == 8 &&
       strcmp(c->meshes[0].dim_name[0], "world") == 0 &&
       dtn_ranks_at(&c->meshes[0].ranks, 7) == 7,
       "\"world\" is one dim over all ranks");
    ok(!c->nodes[0].hca && !c->nodes[0].cpus &&
       c->nodes[0].gid_index == -1 &&
       strcmp(c->hosts[0].address, "n1") == 0,
       "a node has no devices, and its name for an address");
    dtensor_cluster_destroy(c);
    laptop = example("laptop.ini");
    ok(laptop->nhosts == 1 && strcmp(laptop->hosts[0].name, "localhost") == 0,
       "localhost is a host");
    dtensor_cluster_destroy(laptop);
}

/* -------------------------------------------------------------- meshes --- */

static bool ranks_are(const struct dtn_mesh_def *mesh, const int ranks[], int n)
{
    int i = 0;

    while (i < n && i < mesh->ranks.n
           && dtn_ranks_at(&mesh->ranks, i) == ranks[i])
        i++;
    return mesh->ranks.n == n && i == n;
}

static void test_meshes(void)
{
    static const int first[] = { 0, 2, 4, 6 }, mixed[] = { 7, 0, 1, 2, 4, 6 };
    static const int column[] = { 1, 5 }, pair[] = { 5 };
    struct dtensor_cluster *c = good(LEAST
        "[mesh \"evens\"]\ndims = a=4\nranks = 0-7:2\n"
        "[mesh \"mixed\"]\ndims = a=2,b=3\nranks = 7,0-2,4-6:2\n"
        "[mesh \"grid\"]\ndims = x=2, y=2, z=2\n"
        "[mesh \"line\"]\nparent = grid\nselect = z=1, y=0\n"
        "[mesh \"cut\"]\nparent = grid\nselect = y=0\n"
        "[mesh \"point\"]\nparent = cut\nselect = x = 1\n");

    ok(c->nmeshes == 7 && strcmp(c->meshes[0].name, "world") == 0,
       "\"world\" stands before meshes that are given");
    ok(ranks_are(&c->meshes[1], first, 4), "ranks = 0-7:2 is 0 2 4 6");
    ok(ranks_are(&c->meshes[2], mixed, 6), "a list of ranks keeps its order");
    ok(ranks_are(&c->meshes[4], column, 2) &&
       strcmp(c->meshes[4].dim_name[0], "x") == 0,
       "two dims may be selected, in any order");
    ok(c->meshes[6].ndim == 1 && c->meshes[6].ranks.n == 2 &&
       dtn_ranks_at(&c->meshes[6].ranks, 1) == pair[0] &&
       dtn_ranks_at(&c->meshes[6].ranks, 0) == 4,
       "a part of a part");
    dtensor_cluster_destroy(c);
}

static void test_seeds(void)
{
    struct dtensor_cluster *c = good(LEAST
        "[mesh \"world\"]\ndims = pp=2, dp=2, tp=2\n"
        "[seed]\nbase = 10\nmesh = world\ndistinct = tp, pp\nstride = 7\n");
    struct dtensor_cluster *wrap = good(LEAST
        "[mesh \"half\"]\ndims = dp=4\nranks = 4-7\n"
        "[seed]\nbase = 18446744073709551615\nmesh = half\ndistinct = dp\n");
    bool all = true;

    for (int r = 0; r < 8; r++)                  /* tp is the fast digit      */
        all &= dtn_seed_of(c, r) == 10 + 7 * (uint64_t)((r & 1) + 2 * (r >> 2));
    ok(all, "seed = base + stride * index, the first distinct dim fastest");
    ok(dtn_seed_of(wrap, 4) == UINT64_MAX && dtn_seed_of(wrap, 5) == 0 &&
       dtn_seed_of(wrap, 7) == 2, "seeds go on modulo 2^64");
    ok(dtn_seed_of(wrap, 3) == UINT64_MAX,
       "a rank outside the mesh has the base");
    dtensor_cluster_destroy(c);
    dtensor_cluster_destroy(wrap);
}

/* ------------------------------------------------------------ the step --- */

static void test_step(void)
{
    struct dtensor_cluster *c = NULL;
    struct dtensor_error err;

    setenv("SLURM_STEP_NODELIST", "n[3-5]", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1", 1);
    c = good("[cluster]\nversion = 1\n[nodes \"a\"]\nhosts = @step\n"
             "hca = mlx5_[0-1]\n");
    ok(c->world_size == 5 && c->nhosts == 3 &&
       strcmp(c->hosts[2].name, "n5") == 0 && c->hosts[2].nranks == 1 &&
       c->hosts[2].first_rank == 4 && c->nodes[0].nranks == 2,
       "@step takes hosts and ranks from the Slurm step");
    dtensor_cluster_destroy(c);
    c = NULL;
    ok(read_text("[cluster]\nversion = 1\n[nodes \"a\"]\nhosts = @step\n"
                 "ranks = 2\n", &c, &report, &err) == DTENSOR_ECONF &&
       strcmp(report.text, "F:5: error: ranks: 2, but the Slurm step has 1 on "
              "n5; expected no \"ranks\", or srun --ntasks-per-node=2\n") == 0,
       "ranks beside @step are checked");
    setenv("SLURM_STEP_TASKS_PER_NODE", "2", 1);
    ok(read_text("[cluster]\nversion = 1\n[nodes \"a\"]\nhosts = @step\n",
                 &c, &report, &err) == DTENSOR_ECONF &&
       strstr(report.text, "F:4: error: hosts: SLURM_STEP_TASKS_PER_NODE"),
       "a step that contradicts itself is a finding");
    unsetenv("SLURM_STEP_NODELIST");
    unsetenv("SLURM_STEP_TASKS_PER_NODE");
}

/* A login node is in no step: who checks a file may, a rank may not go on. */
static void test_step_later(void)
{
    static const char text[] = "[cluster]\nversion = 1\n[nodes \"a\"]\n"
        "hosts = @step\n[mesh \"grid\"]\ndims = dp=2, tp=4\n";
    struct dtensor_cluster *c = NULL;
    struct dtensor_error err;
    char path[] = "/tmp/test_step.XXXXXX";
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, text, sizeof text - 1) != sizeof text - 1)
        note("no file to read");
    close(fd);
    ok(read_text(text, &c, &report, &err) == 0 && strcmp(report.text, "F:4: "
       "warning: hosts: @step is known under srun only; the hosts, and what "
       "depends on how many there are, were not checked\n") == 0,
       "@step outside a step is a warning for who checks");
    ok(dtensor_cluster_show(c, DTENSOR_SHOW_RANKS, -1, stdout, &err)
       == DTENSOR_EINVAL && strstr(err.text, "known under srun only") &&
       dtensor_cluster_show(c, DTENSOR_SHOW_SUMMARY, 0, stdout, &err)
       == DTENSOR_EINVAL, "and there are no ranks to show");
    dtensor_cluster_destroy(c);
    c = NULL;
    ok(dtensor_cluster_read(path, NULL, NULL, &c, &err) == DTENSOR_ECONF &&
       !c &&
       strstr(err.text, ":4: error: hosts: @step, but SLURM_STEP_NODELIST is "
              "not set; expected to run under srun"),
       "a rank outside a step is refused");
    unlink(path);
}

/* -------------------------------------------------------- same or not --- */

static const char base_file[] =
    "[cluster]\nversion = 1\nname = c\n"
    "[nodes \"a\"]\nhosts = n[1-2]\nranks = 2\n"
    "hca = mlx5_[0-1]:1+mlx5_[2-3]\ncpus = 0-3 | 4-7\n"
    "[transport]\nregister_limit = 512K\nheartbeat = 1s\n"
    "[mesh \"world\"]\ndims = dp=2, tp=2\n"
    "[mesh \"row\"]\nparent = world\nselect = dp=1\n"
    "[seed]\nbase = 16\nmesh = world\ndistinct = dp\n"
    "[tuning]\nallreduce = 0-1K:tree, 1K-inf:ring\n";

static const char same_file[] =
    "# other comments, blanks, order and ways to write it\r\n"
    "\n\t[seed] ; first\nstride = 1\ndistinct=dp\nmesh=world\nbase = 0x10\n"
    "[tuning]\nallreduce=0-512:tree,512-1024:tree,1024-inf:ring\n"
    "[nodes \"first\"]\nranks = 2\nhosts = n1\n"
    "hca = mlx5_0+mlx5_2,mlx5_1+mlx5_3\ncpus = 3,0-2|4,5,6,7\n"
    "[nodes \"second\"]\nranks = 2\nhosts = n2\naddresses = n2\n"
    "hca = mlx5_0:1 + mlx5_2:1, mlx5_1 +mlx5_3\ncpus = 0-3 | 4-7\n"
    "[mesh \"row\"]\ndims = tp=2\nranks = 2,3\n"
    "[mesh \"world\"]\nranks = all\ndims = dp=2,tp=2\n"
    "[transport]\nheartbeat = 1000ms\nregister_limit = 524288\n"
    "[redistribute]\npipeline = 4096K\n"
    "[cluster]\nname = c\nversion = 1\nauth = auto\nworld_size = 4";

static void test_same(void)
{
    struct dtensor_cluster *a = good(base_file), *b = good(same_file);
    char *x = canonical(a), *y = canonical(b), diff[200];

    if (!ok(strcmp(x, y) == 0 && dtn_digest(x) == dtn_digest(y),
            "comments, blanks, order and grouping do not change the meaning"))
        note("%s", dtn_canonical_diff(x, y, diff, sizeof diff));
    dtensor_cluster_destroy(a);
    dtensor_cluster_destroy(b);
    free(x);
    free(y);
}

/* Replace `from` in the base file by `to`: the difference, seen from it. */
static const struct {
    const char *from, *to, *diff;
} differences[] = {
    { "register_limit = 512K", "register_limit = 1M",
      "[transport] register_limit is 1M there, 512K here" },
    { "register_limit = 512K", "arena = 524288K\nregister_limit = 512K",
      "[transport] arena is 512M there, 100% here" },
    { "register_limit = 512K", "arena = 50%\nregister_limit = 512K",
      "[transport] arena is 50% there, 100% here" },
    { "hosts = n[1-2]", "hosts = n[2,1]", "[hosts] 0 is n2 there, n1 here" },
    { "hosts = n[1-2]", "hosts = n[1-2]\naddresses = a[1-2]",
      "[host n1] address is a1 there, n1 here" },
    { "mlx5_[0-1]:1+mlx5_[2-3]", "mlx5_[0-1]", "[host n1] hca is "
      "mlx5_0:1,mlx5_1:1 there, mlx5_0:1+mlx5_2:1,mlx5_1:1+mlx5_3:1 here" },
    { "cpus = 0-3 | 4-7", "cpus = numa",
      "[host n1] cpus is numa there, 0-3|4-7 here" },
    { "heartbeat = 1s", "heartbeat = 2s",
      "[transport] heartbeat is 2s there, 1s here" },
    { "select = dp=1", "select = dp=0",
      "[mesh \"row\"] ranks is 0-1 there, 2-3 here" },
    { "dims = dp=2, tp=2", "dims = dp=2, tp=2\nranks = 3,1,2,0",
      "[mesh \"row\"] ranks is 2,0 there, 2-3 here" },
    { "base = 16", "base = 17", "[seed] base is 17 there, 16 here" },
    { "distinct = dp", "distinct = tp",
      "[seed] distinct is tp there, dp here" },
    { "0-1K:tree, 1K-inf:ring", "0-inf:ring",
      "[tuning] allreduce is 0-inf:ring there, 0-1K:tree,1K-inf:ring here" },
    { "name = c", "name = d", "[cluster] name is d there, c here" },
};

static void test_different(void)
{
    struct dtensor_cluster *a = good(base_file), *b;
    char *x = canonical(a), *y, diff[200], text[2048];
    const char *at;

    for (size_t i = 0; i < DTN_COUNT(differences); i++) {
        at = strstr(base_file, differences[i].from);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - base_file),
                 base_file, differences[i].to,
                 at + strlen(differences[i].from));
        b = good(text);
        y = canonical(b);
        dtn_canonical_diff(x, y, diff, sizeof diff);
        ok(dtn_digest(x) != dtn_digest(y) &&
           strcmp(diff, differences[i].diff) == 0, "%s", differences[i].diff);
        if (strcmp(diff, differences[i].diff) != 0)
            note("got: %s", diff);
        free(y);
        dtensor_cluster_destroy(b);
    }
    ok(strcmp(dtn_canonical_diff(x, x, diff, sizeof diff),
              "nothing differs") == 0, "a text does not differ from itself");
    dtn_canonical_diff("[a] k = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
                       "[a] k = yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n",
                       diff, 60);
    ok(strcmp(diff, "[a] k is yyyyyyyyyyyyyyyyyyyy... there, "
              "xxxxxxxxxxxxxxxxxxx") == 0, "long values are cut: %s", diff);
    free(x);
    dtensor_cluster_destroy(a);
}

static void test_digest(void)
{
    ok(dtn_digest("") == UINT64_C(0xef46db3751d8e999) &&
       dtn_digest("abc") == UINT64_C(0x44bc2cf5ad770999),
       "the digest is XXH64 with seed 0");
}

/* --------------------------------------------------------------- views --- */

static void test_show(void)
{
    struct dtensor_cluster *c = good(LEAST);
    struct dtensor_error err;
    FILE *null = fopen("/dev/null", "w");

    ok(dtensor_cluster_show(c, DTENSOR_SHOW_SEEDS, -1, null, &err) ==
       DTENSOR_EINVAL && strstr(err.text, "no [seed] section"),
       "no [seed], no seeds: %s", err.text);
    ok(dtensor_cluster_show(c, DTENSOR_SHOW_RANKS, 8, null, &err) ==
       DTENSOR_EINVAL && strstr(err.text, "no rank 8"), "no rank 8");
    ok(dtensor_cluster_show(c, DTENSOR_NSHOWS, -1, null, &err) ==
       DTENSOR_EINVAL, "no such view");
    ok(dtensor_cluster_show(c, DTENSOR_SHOW_DIGEST, 0, null, NULL) ==
       DTENSOR_EINVAL, "a digest is not of a rank");
    fclose(null);
    dtensor_cluster_destroy(c);
    dtensor_cluster_destroy(NULL);
}

int main(void)
{
    test_two_nodes();
    test_facts();
    test_big();
    test_defaults();
    test_meshes();
    test_seeds();
    test_step();
    test_step_later();
    test_same();
    test_different();
    test_digest();
    test_show();
    return done();
}
