/* topology.c - what hwloc knows of this machine, in a few lines
 *
 *     node 0: CPUs 0-15, 64.0 GiB; mlx5_0 eth0 cuda0
 *     node 1: CPUs 16-31, 64.0 GiB; mlx5_1
 *     from cuda0: mlx5_0 PIX, eth0 NODE, mlx5_1 SYS
 *
 * The words of a way are those of "nvidia-smi topo -m": PIX one bridge, PXB
 * several, PHB the host bridge of a CPU, NODE several of them, SYS more nodes.
 */
#include "tools/conf/conf.h"
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>

static bool is_gpu(hwloc_obj_t device)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_GPU ||
           device->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC;
}

static bool is_card(hwloc_obj_t device)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
           device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
}

static void print_node(hwloc_topology_t topology, hwloc_obj_t node)
{
    hwloc_obj_t device = NULL, near;
    char *cpus = NULL;
    const char *mark = ";";

    hwloc_bitmap_list_asprintf(&cpus, node->cpuset);
    printf("node %u: CPUs %s, %.1f GiB", node->os_index, cpus ? cpus : "?",
           (double)node->attr->numanode.local_memory / (1 << 30));
    free(cpus);
    while ((device = hwloc_get_next_osdev(topology, device))) {
        near = hwloc_get_non_io_ancestor_obj(topology, device);
        if ((!is_gpu(device) && !is_card(device)) || !near->nodeset ||
            !hwloc_bitmap_isset(near->nodeset, node->os_index))
            continue;
        printf("%s %s", mark, device->name);
        mark = "";
    }
    putchar('\n');
}

/* The bridges between a device and its ancestor. */
static int bridges(hwloc_obj_t device, hwloc_obj_t up_to)
{
    int n = 0;

    for (hwloc_obj_t o = device->parent; o && o != up_to; o = o->parent)
        n += o->type == HWLOC_OBJ_BRIDGE;
    return n;
}

/* hwloc's own counts depths, which devices do not have. */
static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b)
{
    for (; a; a = a->parent)
        for (hwloc_obj_t o = b; o; o = o->parent)
            if (o == a)
                return a;
    return NULL;
}

static const char *way(hwloc_obj_t a, hwloc_obj_t b)
{
    hwloc_obj_t both = common_ancestor(a, b);

    if (both->type == HWLOC_OBJ_PCI_DEVICE || both == a || both == b)
        return "PIX";
    if (both->type == HWLOC_OBJ_BRIDGE &&
        both->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
        return "PHB";
    if (both->type == HWLOC_OBJ_BRIDGE)
        return bridges(a, both) + bridges(b, both) > 0 ? "PXB" : "PIX";
    return hwloc_bitmap_weight(both->nodeset) > 1 ? "SYS" : "NODE";
}

static void print_ways(hwloc_topology_t topology, hwloc_obj_t gpu)
{
    hwloc_obj_t card = NULL;
    const char *mark = ":";

    printf("from %s", gpu->name);
    while ((card = hwloc_get_next_osdev(topology, card))) {
        if (!is_card(card))
            continue;
        printf("%s %s %s", mark, card->name, way(gpu, card));
        mark = ",";
    }
    printf("%s\n", *mark == ':' ? ": no network card" : "");
}

bool conf_topology(void)
{
    hwloc_obj_t node = NULL, device = NULL;
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) != 0)
        return false;
    hwloc_topology_set_io_types_filter(topology,
                                       HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) != 0) {
        fprintf(stderr, "dtensor-conf: hwloc cannot read the topology of this "
                "machine (are HWLOC_XMLFILE or HWLOC_SYNTHETIC set?)\n");
        hwloc_topology_destroy(topology);
        return false;
    }
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
                                              node)))
        print_node(topology, node);
    while ((device = hwloc_get_next_osdev(topology, device)))
        if (is_gpu(device))
            print_ways(topology, device);
    hwloc_topology_destroy(topology);
    return true;
}

#else

bool conf_topology(void)
{
    fprintf(stderr, "dtensor-conf: this build has no hwloc, which --topology "
            "needs (install libhwloc-dev, and configure again)\n");
    return false;
}

#endif
