/* test_fabric.c - the report of what ranks see of the RDMA fabric
 *
 * The reports of ranks are made up: two hosts of two ranks, alike; then one
 * thing after the other is made different or wrong.
 *
 * Without this test, a link that is down, or MTUs that differ, could be
 * missing from the report that is meant to show them.
 */
#include "cluster/cluster.h"
#include "fabric/fabric.h"
#include "transport/device.h"
#include "transport/memlock.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <string.h>

static struct dtn_host hosts[] = {
    { .name = (char[]){ "n0" }, .first_rank = 0, .nranks = 2 },
    { .name = (char[]){ "n1" }, .first_rank = 2, .nranks = 2 }
};
static struct dtensor_cluster cluster = {
    .path = (char[]){ "pair.ini" }, .world_size = 4, .nhosts = 2,
    .hosts = hosts, .transport.inter_node = DTN_WIRE_RC
};
static struct dtn_nodes twin = { .nrails = 2 };
static struct dtn_fabric_report facts[8];

static void facts_alike(void)
{
    static const struct dtn_gid gid = { { [10] = 0xff, 0xff, 10, 0, 0, 1 }, 3,
                                        DTN_GID_V2 };

    for (int r = 0; r < 4; r++) {
        facts[r] = (struct dtn_fabric_report){
            .device = "mlx5_0", .built = 1, .ndevices = 1, .port = 1,
            .state = 4, .physical = 5, .ethernet = 1, .mtu = 4096,
            .rate_mbps = 100000, .gid_index = 3, .ngids = 1,
            .memlock = DTN_MEMLOCK_UNLIMITED, .need = 1 << 20,
            .gid = { gid }, .why = "the first active one; GID: routable"
        };
        facts[r].gid[0].raw[15] = (unsigned char)(1 + r / 2);
    }
}

static char *text;

/* How many are unfit; the table goes to `text`. */
static int written(void)
{
    size_t size;
    FILE *out;
    int unfit;

    free(text);
    text = NULL;
    out = open_memstream(&text, &size);
    unfit = dtn_fabric_table_write(&cluster, facts, out);
    fclose(out);
    return unfit;
}

static void said(int unfit, const char *claim, const char *part)
{
    if (!ok(written() == unfit && strstr(text, part), "%s", claim))
        note("expected %d and: %s\n%s", unfit, part, text);
}

static void test_alike(void)
{
    facts_alike();
    ok(written() == 0 && strcmp(text,
"   rank  host  device    state   link  rate      mtu   lid  gid            memlock\n"
"      0  n0    mlx5_0:1  ACTIVE  RoCE  100 Gb/s  4096  -    3 v2 10.0.0.1  unlimited\n"
"      1  n0    mlx5_0:1  ACTIVE  RoCE  100 Gb/s  4096  -    3 v2 10.0.0.1  unlimited\n"
"      2  n1    mlx5_0:1  ACTIVE  RoCE  100 Gb/s  4096  -    3 v2 10.0.0.2  unlimited\n"
"      3  n1    mlx5_0:1  ACTIVE  RoCE  100 Gb/s  4096  -    3 v2 10.0.0.2  unlimited\n"
"ranks 0-3: mlx5_0:1, the first active one; GID: routable\n"
"GIDs of n0 mlx5_0:1: 3 v2 10.0.0.1\n"
"GIDs of n1 mlx5_0:1: 3 v2 10.0.0.2\n"
"4 ranks: all fit for rc; the cluster file asks for it\n") == 0,
       "four ranks alike have no mark");
}

static void test_different(void)
{
    facts_alike();
    facts[3].mtu = 1024;
    said(0, "another MTU is marked", "  1024*  ");
    said(0, "and explained", "\nrank 3: MTU 1024, most have 4096: connections "
         "between them use the smaller");
    facts[2].mtu = 1024;
    said(0, "of two and two, the smaller MTU is the odd one",
         "\nranks 2-3: MTU 1024, most have 4096");
    facts_alike();
    facts[1].rate_mbps = 25000;
    said(0, "another rate", "\nrank 1: 25 Gb/s, most have 100 Gb/s (");
    facts_alike();
    facts[0].ethernet = 0;
    said(1, "another network is unfit", "\nrank 0: InfiniBand, most have RoCE: "
         "nothing leads from one to the other");
    facts_alike();
    facts[2].doubtful = 1;
    said(0, "a doubtful GID is marked", " 3 v2 10.0.0.2*  ");
    said(0, "and why it is", "\nrank 2: GID 3: routable\n");
}

static void test_wrong(void)
{
    facts_alike();
    facts[1].memlock = 65536;
    said(1, "too little memory that may be locked", "\nrank 1: 64.0 KiB of "
         "memory may be locked, rc needs 1.0 MiB before any tensor (set ulimit "
         "-l unlimited");
    facts_alike();
    facts[2].state = 1;
    facts[2].code = DTENSOR_ENODEV;
    facts[2].gid_index = -1;
    strcpy(facts[2].why, "verbs: mlx5_0:1 is DOWN");
    said(1, "a port that is down is marked twice",
         "mlx5_0:1*  DOWN*   RoCE");
    said(1, "said in the words of the error", "\nrank 2: verbs: mlx5_0:1 is "
         "DOWN\n");
    said(1, "and counted", "\n4 ranks: 1 not fit for rc; the cluster file "
         "asks for it\n");
    for (int r = 0; r < 4; r++) {
        facts[r] = (struct dtn_fabric_report) { .code = DTENSOR_ENODEV,
                                               .gid_index = -1,
                                               .memlock = 65536 };
        strcpy(facts[r].why, "verbs: this machine has no RDMA device");
    }
    said(4, "four ranks without a device say so once", "\nranks 0-3: verbs: "
         "this machine has no RDMA device\n4 ranks: none fit for rc;");
}

/* Four ranks with two rails each: eight rows, in pairs. */
static void test_rails(void)
{
    cluster.nodes = &twin;
    cluster.nnodes = 1;
    facts_alike();
    for (int i = 7; i >= 0; i--) {
        facts[i] = facts[i / 2];
        facts[i].device[5] = (char)('0' + i % 2);
        facts[i].gid[0].raw[13] = (unsigned char)(i % 2);
    }
    said(0, "two rails are two rows",
"      0  n0    mlx5_0:1  ACTIVE  RoCE  100 Gb/s  4096  -    3 v2 10.0.0.1  unlimited\n"
"      0  n0    mlx5_1:1  ACTIVE  RoCE  100 Gb/s  4096  -    3 v2 10.1.0.1  unlimited\n"
"      1  n0    mlx5_0:1  ACTIVE  RoCE  100 Gb/s  4096  -    3 v2 10.0.0.1  unlimited\n");
    said(0, "and two choices",
"ranks 0-3, rail 0: mlx5_0:1, the first active one; GID: routable\n"
"ranks 0-3, rail 1: mlx5_1:1, the first active one; GID: routable\n"
"GIDs of n0 mlx5_0:1: 3 v2 10.0.0.1\n"
"GIDs of n0 mlx5_1:1: 3 v2 10.1.0.1\n"
"GIDs of n1 mlx5_0:1: 3 v2 10.0.0.2\n"
"GIDs of n1 mlx5_1:1: 3 v2 10.1.0.2\n"
"4 ranks: all fit for rc; the cluster file asks for it\n");
    facts[7].mtu = 1024;
    said(0, "what differs on a rail is said of it",
         "\nrank 3, rail 1: MTU 1024, most have 4096");
    facts[4].memlock = facts[5].memlock = 65536;
    said(1, "what may be locked is said of the rank, once",
         "\nrank 2: 64.0 KiB "
         "of memory may be locked");
    facts[4].memlock = facts[5].memlock = DTN_MEMLOCK_UNLIMITED;
    facts[3].code = DTENSOR_ENODEV;
    strcpy(facts[3].why, "verbs: mlx5_1:1 is DOWN");
    said(1, "a rank of which one rail is unfit is unfit",
         "\nrank 1, rail 1: verbs: mlx5_1:1 is DOWN\n");
    cluster.nnodes = 0;
}

static void test_wanted(void)
{
    struct dtensor_cluster one = { .nhosts = 1, .hosts = hosts };

    ok(dtn_fabric_wanted(&cluster), "rc between two hosts is wanted");
    one.transport.inter_node = DTN_WIRE_RC;
    ok(!dtn_fabric_wanted(&one), "of one host it is not");
    one.transport.intra_node = DTN_WIRE_RC;
    ok(dtn_fabric_wanted(&one), "but inside it is");
}

/* ----------------------------------------------------------- real ranks --- */

static void gather(int rank, int nranks, void *arg)
{
    struct dtensor_error err;
    char *table = NULL;
    size_t size;
    FILE *out = open_memstream(&table, &size);
    int unfit = -1;
    int rc = dtensor_fabric_show(NULL, out, &unfit, &err);

    (void)arg;
    fclose(out);
    need(rc == 0, "%s", err.text);
    need(unfit == 0, "the built-in cluster asks for no rc, but unfit %d",
         unfit);
    if (rank == 0)
        need(strstr(table, "\n      2  ") && strstr(table, "3 ranks: "),
             "rank 0 writes all %d ranks: %s", nranks, table);
    else
        need(size == 0, "rank %d writes nothing: %s", rank, table);
    free(table);
}

int main(void)
{
    test_alike();
    test_different();
    test_wrong();
    test_rails();
    test_wanted();
    free(text);
    ok(ranks_run(3, 30, gather, NULL, NULL) == 0,
       "three real ranks: rank 0 has the table of all");
    return done();
}
