/* topology.c - the links between hosts, and which of them a message takes
 *
 * A level is a set of like links, a route is a list of links.  With 4 ranks on
 * 4 hosts of one port links 0 to 3 are the memories of the ranks, 4 to 7 leave
 * the ports and 8 to 11 enter them; a message from host 1 to host 3 takes links
 * 5 and 11.
 */
#include "sched/play/topology.h"

static void level_add(struct dtn_topology *topology, struct dtn_level level)
{
    level.first = topology->nlinks;
    level.modulus = level.count;
    topology->level[topology->nlevels++] = level;
    topology->nlinks += level.count;
}

void dtn_topology_flat(struct dtn_topology *topology, int hosts, int rails,
                       const struct dtn_play_machine *machine)
{
    const struct dtn_play_wire *far = &machine->far;

    *topology = (struct dtn_topology){ .hosts = hosts, .rails = rails };
    level_add(topology, (struct dtn_level){
        .name = "memory of rank", .count = machine->ranks,
        .latency_ns = machine->near.latency_ns,
        .byte_ns = machine->near.byte_ns });
    level_add(topology, (struct dtn_level){
        .name = "out of port", .count = hosts * rails,
        .latency_ns = far->latency_ns, .gap_ns = far->gap_ns,
        .byte_ns = far->byte_ns });
    level_add(topology, (struct dtn_level){
        .name = "into port", .count = hosts * rails,
        .byte_ns = far->byte_ns });
}

void dtn_topology_fold(struct dtn_topology *topology, int hosts)
{
    for (int l = 0; l < topology->nlevels; l++)
        topology->level[l].modulus = topology->level[l].count
                                   / topology->hosts * hosts;
}

static uint32_t link_of(const struct dtn_topology *topology, int level,
                        int index)
{
    return (uint32_t)(topology->level[level].first
                      + index % topology->level[level].modulus);
}

int dtn_topology_route(const struct dtn_topology *topology, int from, int to,
                       uint32_t path[DTN_ROUTE_MAX])
{
    path[0] = link_of(topology, 1, from);
    path[1] = link_of(topology, 2, to);
    return 2;
}

uint32_t dtn_topology_memory(const struct dtn_topology *topology, int rank)
{
    return link_of(topology, 0, rank);
}

const struct dtn_level *dtn_link_level(const struct dtn_topology *topology,
                                       uint32_t link)
{
    int l = topology->nlevels - 1;

    while ((uint32_t)topology->level[l].first > link)
        l--;
    return &topology->level[l];
}
