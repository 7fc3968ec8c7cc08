/* test_verbs_device.c - which RDMA device, port, GID and partition, and why
 *
 * The choice is a pure function of facts, so machines that are not here can be
 * made up: two ports, one of them down; the GID table of a container; a port
 * that is a limited member.
 *
 * Without this test, a rank could choose a port or an address over which its
 * peers cannot reach it.
 */
#include "base/compiler.h"
#include "transport/device.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ----------------------------------------------------- made-up machines --- */

static struct dtn_device_name names[4];
static struct dtn_port ports[4];
static struct dtn_devices machine;

static void machine_empty(void)
{
    memset(names, 0, sizeof names);
    memset(ports, 0, sizeof ports);
    machine = (struct dtn_devices){ .built = true, .device = names,
                                    .port = ports };
}

/* A RoCE port that is up, with an address of each kind. */
static struct dtn_port *machine_add(const char *device)
{
    static const struct dtn_gid gids[] = {
        { { 0xfe, 0x80, [15] = 1 }, 0, DTN_GID_V1 },
        { { 0xfe, 0x80, [15] = 1 }, 1, DTN_GID_V2 },
        { { [10] = 0xff, 0xff, 10, 1, 0, 7 }, 2, DTN_GID_V1 },
        { { [10] = 0xff, 0xff, 10, 1, 0, 7 }, 3, DTN_GID_V2 }
    };
    struct dtn_port *port = &ports[machine.nports++];

    snprintf(names[machine.ndevices++].name, DTN_DEVICE_NAME, "%s", device);
    *port = (struct dtn_port){
        .netdev = "eth7", .port = 1, .nports = 1, .state = 4, .physical = 5,
        .ethernet = true, .mtu = 4096, .max_mtu = 4096, .rate_mbps = 100000,
        .max_qp = 1000, .ngids = 4, .gid_rows = 16, .npkeys = 1,
        .pkey = { 0xffff }
    };
    snprintf(port->device, sizeof port->device, "%s", device);
    memcpy(port->gid, gids, sizeof gids);
    return port;
}

static struct dtn_port *machine_one(void)
{
    machine_empty();
    return machine_add("mlx5_0");
}

static struct dtn_device_choice choice;
static struct dtensor_error err;

static int choose(const char *device, int gid_index, int pkey)
{
    const struct dtn_device_want want = { device, gid_index, pkey };

    memset(&err, 0, sizeof err);
    memset(&choice, 0, sizeof choice);
    return dtn_device_choose(&machine, &want, &choice, &err);
}

/* The choice fails with ENODEV in exactly these words. */
static void refused(const char *claim, const char *device, int gid_index,
                    int pkey, const char *words)
{
    int rc = choose(device, gid_index, pkey);

    if (!ok(rc == DTENSOR_ENODEV && strcmp(err.text, words) == 0
            && choice.port == NULL, "%s", claim))
        note("%d %s\n# expected %s", rc, err.text, words);
}

/* ----------------------------------------------------------- the choice --- */

static void test_found(void)
{
    struct dtn_port *second;

    machine_one();
    ok(choose(NULL, -1, -1) == 0 && choice.port == &ports[0]
       && choice.gid->index == 3 && !choice.doubtful
       && choice.pkey_index == 0,
       "of four GIDs the routable one of RoCE v2 is taken, GID 3");
    ok(strcmp(choice.why_port, "the first active one") == 0
       && strcmp(choice.why_gid, "a routable address") == 0,
       "and the reasons are said");
    ports[0].gid[1] = (struct dtn_gid){ { 0x20, 0x01, 0x0d, 0xb8, [15] = 7 },
                                        1, DTN_GID_V2 };
    ok(choose(NULL, -1, -1) == 0 && choice.gid->index == 3,
       "of IPv6 in GID 1 and IPv4 in GID 3 the latter, as on a host that has "
       "them in another order");
    second = machine_add("mlx5_1");
    ok(choose("mlx5_1", -1, -1) == 0 && choice.port == second,
       "hca = mlx5_1 takes the second device");
    ok(choose("mlx5_1:1", 1, -1) == 0 && choice.gid->index == 1
       && choice.doubtful, "a link-local GID of the file's is doubtful");
    ok(strcmp(choice.why_gid, "by the cluster file, link-local: no router "
              "will carry it") == 0, "and why it is");
    ports[0].state = 1;
    ok(choose(NULL, -1, -1) == 0 && choice.port == second,
       "a port that is down is passed over");
    ports[0].state = 4;
    ports[0].ngids = 0;
    ok(choose(NULL, -1, -1) == 0 && choice.port == second,
       "so is one without an address");
}

static void test_worth(void)
{
    struct dtn_port *port = machine_one();

    port->ngids = 3;
    ok(choose(NULL, -1, -1) == 0 && choice.gid->index == 1 && choice.doubtful,
       "without a routable one, v2 link-local is better than v1");
    port->ngids = 1;
    ok(choose(NULL, -1, -1) == 0 && choice.gid->index == 0 && choice.doubtful
       && strncmp(choice.why_gid, "RoCE v1 only", 12) == 0,
       "a v1 GID is the last resort");
    port->ethernet = false;
    port->lid = 17;
    ok(choose(NULL, -1, -1) == 0 && choice.gid == NULL,
       "InfiniBand is addressed by LID");
    ok(choose(NULL, 0, -1) == 0 && choice.gid->index == 0 && !choice.doubtful,
       "and by GID when the file names one");
    port->needs_gid = true;
    ok(choose(NULL, -1, -1) == 0 && choice.gid && choice.gid->index == 0
       && !choice.doubtful, "or when the port needs one, as a virtual function "
       "does");
    port->ngids = 0;
    ok(choose(NULL, -1, -1) == 0 && choice.gid == NULL, "unless it has none");
}

static void test_refused_device(void)
{
    struct dtn_port *port;

    machine_empty();
    refused("no device at all", NULL, -1, -1, "verbs: this machine has no RDMA "
            "device (is its driver loaded? see rdma link; or set [transport] "
            "inter_node = tcp, or auto)");
    refused("nor one by name", "mlx5_0", -1, -1, "verbs: this machine has no "
            "RDMA device (is its driver loaded? see rdma link; or set "
            "[transport] inter_node = tcp, or auto)");
    port = machine_one();
    refused("a wrong name is guessed", "mlx5_O:1", -1, -1, "verbs: no RDMA "
            "device mlx5_O here; did you mean mlx5_0? (the cluster file's hca "
            "names it; here: mlx5_0)");
    machine_add("rxe0");
    refused("an unlike name is not", "ib", -1, -1, "verbs: no RDMA device ib "
            "here (the cluster file's hca names it; here: mlx5_0, rxe0)");
    refused("a port too many", "mlx5_0:2", -1, -1, "verbs: no port mlx5_0:2 "
            "here, mlx5_0 has 1 (the cluster file's hca names it; see rdma "
            "link)");
    port->state = 1;
    port->physical = 3;
    refused("a port that is down", "mlx5_0", -1, -1, "verbs: mlx5_0:1 is DOWN, "
            "its link Disabled (is the cable in, and the interface up? ip link "
            "set dev eth7 up)");
    port->ethernet = false;
    port->state = 2;
    port->physical = 5;
    refused("a port without subnet manager", "mlx5_0", -1, -1, "verbs: "
            "mlx5_0:1 is INIT, its link LinkUp (no subnet manager has set it "
            "up: is opensm running? see ibstat)");
    port->state = 4;
    refused("a port without a LID", "mlx5_0", -1, -1, "verbs: mlx5_0:1 has no "
            "LID (is a subnet manager running? see ibstat)");
    ports[1].ngids = 0;
    port->state = 1;
    refused("none of several will do", NULL, -1, -1, "verbs: no RDMA port here "
            "can be used: mlx5_0:1 DOWN, rxe0:1 no address (see rdma link; or "
            "set [transport] inter_node = tcp, or auto)");
    refused("a RoCE port without a GID", "rxe0", -1, -1, "verbs: rxe0:1 has no "
            "GID at all (give its network interface an address)");
}

static void test_refused_rest(void)
{
    struct dtn_port *port = machine_one();

    port->ngids = 2;
    refused("an empty row of the GID table", NULL, 3, -1, "verbs: GID 3 of "
            "mlx5_0:1 is empty (leave gid_index out and the best is taken; "
            "there are 0 v1 fe80::1, 1 v2 fe80::1)");
    refused("a row behind its end", NULL, 16, -1, "verbs: mlx5_0:1 has no GID "
            "16, only 0 to 15 (leave gid_index out and the best is taken; "
            "there are 0 v1 fe80::1, 1 v2 fe80::1)");
    machine_empty();
    machine.built = false;
    ok(choose(NULL, -1, -1) == DTENSOR_ENODEV
       && strstr(err.text, "this build has no verbs"),
       "a build without verbs says so");
    machine_one();
    machine.nports = 0;
    names[0].error = EACCES;
    ok(choose("mlx5_0", -1, -1) == DTENSOR_ESYS
       && strncmp(err.text, "verbs: cannot open mlx5_0: Permission denied (may "
                  "this user", 58) == 0,
       "a device that may not be opened says why");
}

/* Ports are those of mlx5_1 alone, for mlx5_0 could not be looked at. */
static void machine_half_seen(int sys_errno)
{
    machine_one();
    machine_add("mlx5_1");
    ports[0] = ports[1];
    machine.nports = 1;
    names[0].error = sys_errno;
}

static void test_unseen(void)
{
    machine_half_seen(EPROTONOSUPPORT);
    ok(choose(NULL, -1, -1) == 0 && strcmp(choice.port->device, "mlx5_1") == 0,
       "a device of iWARP is passed over");
    machine.nports = 0;
    machine.ndevices = 1;
    refused("one alone will not do, so auto is tcp", NULL, -1, -1, "verbs: "
            "mlx5_0 has neither InfiniBand nor RoCE (name another device in "
            "hca, or set [transport] inter_node = tcp, or auto)");
    refused("nor one by name", "mlx5_0", -1, -1, "verbs: mlx5_0 has neither "
            "InfiniBand nor RoCE (name another device in hca, or set "
            "[transport] inter_node = tcp, or auto)");

    machine_half_seen(EACCES);
    ok(choose(NULL, -1, -1) == 0 && strcmp(choice.port->device, "mlx5_1") == 0,
       "a device that this user may not open is passed over");
    machine_half_seen(ENOMEM);
    ok(choose(NULL, -1, -1) == DTENSOR_ENOMEM
       && strcmp(err.text, "verbs: cannot open mlx5_0: Cannot allocate memory "
                 "(see ulimit -n, ulimit -v and free -h)") == 0,
       "but not one for which this process has no memory: its peers take it");
    ok(choose("mlx5_1", -1, -1) == 0, "the file may name another");
    ok(choose("mlx5_0", -1, -1) == DTENSOR_ENOMEM, "and not this one");
    machine_half_seen(EMFILE);
    ok(choose(NULL, -1, -1) == DTENSOR_ESYS
       && strstr(err.text, "mlx5_0: Too many open files"),
       "nor one for which it has no descriptor");
    machine_one();
    machine_add("mlx5_1");
    machine.nports = 1;
    names[1].error = ENOMEM;
    ok(choose(NULL, -1, -1) == 0, "a later device does not matter");
}

static void test_partitions(void)
{
    static const struct {
        const char *claim;
        int npkeys;
        uint16_t pkey[4];
        int want, index;
    } cases[] = {
        { "the default partition is found where it is", 3,
          { 0x8001, 0x7fff, 0xffff }, -1, 2 },
        { "without it the first full membership is taken", 4,
          { 0, 0x0001, 0x8002, 0x8003 }, -1, 2 },
        { "pkey = 0x8003 is found", 4, { 0xffff, 0, 0x8002, 0x8003 }, 0x8003,
          3 },
        { "and without its top bit", 4, { 0xffff, 0, 0x8002, 0x8003 }, 3, 3 },
        { "a limited membership does not do", 2, { 0xffff, 0x0003 }, 0x8003,
          -1 },
        { "not even in the default partition", 1, { 0x7fff }, -1, -1 },
        { "0x8000 is no key", 1, { 0x8000 }, -1, -1 },
        { "a device without a table has index 0", 0, { 0 }, -1, 0 }
    };
    struct dtn_port *port = machine_one();

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        port->npkeys = cases[i].npkeys;
        memcpy(port->pkey, cases[i].pkey, sizeof cases[i].pkey);
        ok((choose(NULL, -1, cases[i].want) == 0) == (cases[i].index >= 0)
           && (cases[i].index < 0 || choice.pkey_index == cases[i].index),
           "partitions: %s", cases[i].claim);
    }
    port->npkeys = 2;
    memcpy(port->pkey, (uint16_t[]){ 0x7fff, 0x8005 }, 4);
    refused("a partition that is not there lists those that are", NULL, -1,
            0x8001, "verbs: mlx5_0:1 is no full member of partition 0x8001, "
            "its keys are 0x7fff, 0x8005 (see [transport] pkey, and the "
            "partitions of the subnet manager)");
}

int main(void)
{
    test_found();
    test_worth();
    test_refused_device();
    test_refused_rest();
    test_unseen();
    test_partitions();
    return done();
}
