/* links.c - the links of a topology, level by level
 *
 * With 4 ranks on 4 hosts of one port links 0 to 3 are the memories of the
 * ranks, 4 to 7 leave the ports, 8 to 11 enter them; others come after.
 */
#include "sched/play/topology.h"

#include <stdbool.h>
#include <stdint.h>

void dtn_level_add(struct dtn_topology *topology, struct dtn_level level)
{
    level.first = topology->nlinks;
    level.modulus = level.count > 0 ? level.count : 1;
    topology->level[topology->nlevels++] = level;
    topology->nlinks += level.count;
}

void dtn_topology_level(struct dtn_topology *topology, const char *name,
                        int count)
{
    dtn_level_add(topology, (struct dtn_level){
        .name = name, .count = count,
        .latency_ns = topology->inner_latency_ns,
        .byte_ns = topology->inner_byte_ns });
}

uint32_t dtn_topology_link(const struct dtn_topology *topology, int level,
                           int index)
{
    return (uint32_t)(topology->level[level].first
                      + index % topology->level[level].modulus);
}

bool dtn_topology_down(const struct dtn_topology *topology, uint32_t link)
{
    for (int i = 0; i < topology->nfailed; i++)
        if (topology->failed[i] == link)
            return true;
    return false;
}

void dtn_topology_fold(struct dtn_topology *topology, int hosts)
{
    for (int l = 0; l < topology->nlevels; l++)
        topology->level[l].modulus =
            (int)((int64_t)topology->level[l].count * hosts / topology->hosts);
}

const struct dtn_level *dtn_link_level(const struct dtn_topology *topology,
                                       uint32_t link)
{
    int l = topology->nlevels - 1;

    while ((uint32_t)topology->level[l].first > link)
        l--;
    return &topology->level[l];
}
