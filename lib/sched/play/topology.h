/* topology.h - the links between hosts, and which of them a message takes */
#ifndef DTN_SCHED_PLAY_TOPOLOGY_H
#define DTN_SCHED_PLAY_TOPOLOGY_H

#include "sched/play.h"
#include "dtensor.h"

#define DTN_ROUTE_MAX 8
#define DTN_LEVELS_MAX 10

/* Links of one kind. */
struct dtn_level {
    const char *name;             /* "out of port"                            */
    int first, count;             /* their numbers                            */
    int modulus;                  /* link i stands for all i + k * modulus    */
    double latency_ns;            /* from its start to that of the next link  */
    double gap_ns;                /* least time between two messages          */
    double byte_ns;               /* of a byte                                */
};

/* A port is a network device of a host, seen from the hosts' side: port
 * host * rails + rail.
 */
struct dtn_topology {
    int hosts;                    /* hosts with links                         */
    int rails;                    /* ports of each host                       */
    int nlevels;                  /* levels 0 to 2: memory of ranks, out of   */
                                  /* ports, into ports                        */
    struct dtn_level level[DTN_LEVELS_MAX];
    int nlinks;                   /* of all levels                            */
};

/* Ports and one switch that never blocks. */
void dtn_topology_flat(struct dtn_topology *topology, int hosts, int rails,
                       const struct dtn_play_machine *machine);

/* Only the first `hosts` hosts send: their links stand for all others'. */
void dtn_topology_fold(struct dtn_topology *topology, int hosts);

/* The links from one port to another: how many. */
int dtn_topology_route(const struct dtn_topology *topology, int from, int to,
                       uint32_t path[DTN_ROUTE_MAX]);

/* The memory of a rank is written by one rank of its host at a time. */
uint32_t dtn_topology_memory(const struct dtn_topology *topology, int rank);

/* The level of a link. */
const struct dtn_level *dtn_link_level(const struct dtn_topology *topology,
                                       uint32_t link);

#endif
