/* topology.h - the links between hosts, and which of them a message takes */
#ifndef DTN_SCHED_PLAY_TOPOLOGY_H
#define DTN_SCHED_PLAY_TOPOLOGY_H

#include "sched/play.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

#define DTN_ROUTE_MAX 8
#define DTN_LEVELS_MAX 10
#define DTN_SIZES_MAX 4
#define DTN_FAILED_MAX 16

/* Links of one kind. */
struct dtn_level {
    const char *name;             /* "out", "up1"                             */
    int first, count;             /* their numbers                            */
    int modulus;                  /* link i stands for all i + k * modulus    */
    double latency_ns;            /* from its start to that of the next link  */
    double gap_ns;                /* least time between two messages          */
    double byte_ns;               /* of a byte                                */
};
enum { DTN_LEVEL_MEMORY, DTN_LEVEL_OUT, DTN_LEVEL_IN, DTN_LEVEL_INNER };

struct dtn_topology_kind;

/* A port is a network device of a host, seen from the hosts' side: port
 * host * rails + rail.
 */
struct dtn_topology {
    const struct dtn_topology_kind *kind;      /* shape and routing           */
    int size[DTN_SIZES_MAX];      /* of the shape: kinds.c says which         */
    int links[DTN_SIZES_MAX];     /* after the slash of each, or 0            */
    int nsizes;                   /* used ones of both                        */
    int hosts;                    /* hosts with links                         */
    int unit;                     /* shifted by so many hosts it is the same  */
    int rails;                    /* ports of each host                       */
    double inner_byte_ns;         /* of links between switches; 0: of a port  */
    double inner_latency_ns;      /* of each of them                          */
    int nlevels;                  /* memory of ranks, out of ports, into      */
                                  /* ports, then those between switches       */
    struct dtn_level level[DTN_LEVELS_MAX];  /* the levels                    */
    int nlinks;                   /* of all levels                            */
    uint32_t failed[DTN_FAILED_MAX];         /* links that are down           */
    int nfailed;                  /* how many                                 */
};

/* A shape of networks: which links there are, and which a message takes. */
struct dtn_topology_kind {
    const char *name;             /* "fat-tree"                               */
    const char *form;             /* of its sizes, for messages               */
    int sizes_min, sizes_max;     /* how many sizes it has                    */
    /* Set hosts and unit, and add the levels between switches; -1: too large */
    int (*make)(struct dtn_topology *topology);
    /* The links between the ports; host `from` is not host `to`.  -1: links
     * that are down leave no way.
     */
    int (*route)(const struct dtn_topology *topology, int from, int to,
                 uint32_t path[]);
};
extern const struct dtn_topology_kind dtn_topology_kinds[]; /* ends with NULL */

/* Read "fat-tree:32/16x64,bandwidth=25G,latency=150" (NULL: "flat") for the
 * machine, which has that many hosts.
 * Errors: EINVAL  no such kind or size, a bandwidth of 0, too few hosts
 */
int dtn_topology_read(const char *text, int hosts,
                      const struct dtn_play_machine *machine,
                      struct dtn_topology *topology, struct dtensor_error *err);

/* Read "up1:3,global:17": links that are down (NULL: none).   Errors: EINVAL */
int dtn_topology_fail(const char *text, struct dtn_topology *topology,
                      struct dtensor_error *err);

/* links.c: append a level; first and modulus are set. */
void dtn_level_add(struct dtn_topology *topology, struct dtn_level level);

/* Append a level of `count` links between switches. */
void dtn_topology_level(struct dtn_topology *topology, const char *name,
                        int count);

/* The number of link `index` of a level. */
uint32_t dtn_topology_link(const struct dtn_topology *topology, int level,
                           int index);
bool dtn_topology_down(const struct dtn_topology *topology, uint32_t link);

/* Only the first `hosts` hosts send: their links stand for all others'. */
void dtn_topology_fold(struct dtn_topology *topology, int hosts);

/* The links from one port to another: how many, or -1: there is no way. */
int dtn_topology_route(const struct dtn_topology *topology, int from, int to,
                       uint32_t path[DTN_ROUTE_MAX]);

/* The level of a link. */
const struct dtn_level *dtn_link_level(const struct dtn_topology *topology,
                                       uint32_t link);

#endif
