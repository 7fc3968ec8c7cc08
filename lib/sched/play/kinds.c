/* kinds.c - shapes of networks: their links, and which a message takes
 *
 * flat: a switch that never blocks.
 *
 * fat-tree:32/16x64: 32 hosts at each leaf switch, which has 16 links up, and
 * 64 leaves.  Of a group of hosts below a level only its links up and down
 * count: 32/16 is 2 to 1 oversubscribed.  The receiver's place in its leaf says
 * which link (D mod k), so hosts of a leaf that send to different hosts of
 * another meet on no link if there are enough.
 *
 * dragonfly:8x16x33/2: 8 hosts at each router, 16 routers in each group, all
 * joined, 33 groups, 2 links between each two.  Link k from group s to group
 * s + d is at router ((d - 1) * 2 + k) mod 16 of s.  The shortest way is taken:
 * local, global, local; over a third group if no link to the other is up.
 */
#include "sched/play/topology.h"

#include <stdbool.h>
#include <stdint.h>

#define HOSTS_MAX (1 << 20)
#define LINKS_MAX (1 << 26)

static int flat_make(struct dtn_topology *t)
{
    t->unit = 1;
    return 0;
}

static int flat_route(const struct dtn_topology *t, int from, int to,
                      uint32_t path[])
{
    (void)t;
    (void)from;
    (void)to;
    (void)path;
    return 0;
}

/* ------------------------------------------------------------- fat tree --- */

/* Hosts below a group of that level. */
static int tree_below(const struct dtn_topology *t, int level)
{
    int below = 1;

    for (int l = 0; l <= level; l++)
        below *= t->size[l];
    return below;
}

static int fat_tree_make(struct dtn_topology *t)
{
    static const char *const up[] = { "up1", "up2", "up3" };
    static const char *const down[] = { "down1", "down2", "down3" };
    int64_t hosts = 1;

    for (int l = 0; l < t->nsizes && hosts <= HOSTS_MAX; l++)
        hosts *= t->size[l];
    if (hosts > HOSTS_MAX)
        return -1;
    t->hosts = (int)hosts;
    t->unit = t->nsizes > 1 ? tree_below(t, t->nsizes - 2) : 1;
    for (int l = 0; l < t->nsizes - 1; l++) {
        if (t->links[l] == 0)
            t->links[l] = tree_below(t, l);
        hosts = (int64_t)t->hosts / tree_below(t, l) * t->links[l];
        if (hosts > LINKS_MAX)
            return -1;
        dtn_topology_level(t, up[l], (int)hosts);
        dtn_topology_level(t, down[l], (int)hosts);
    }
    return 0;
}

/* A link of the groups of both hosts at that level which is up; -1: none. */
static int tree_link(const struct dtn_topology *t, int l, int from, int to)
{
    const int below = tree_below(t, l), links = t->links[l];

    for (int i = 0; i < links; i++) {
        int link = (to % below + i) % links;

        if (!dtn_topology_down(t, dtn_topology_link(t, DTN_LEVEL_INNER + 2 * l,
                                                from / below * links + link))
            && !dtn_topology_down(t, dtn_topology_link(
                   t, DTN_LEVEL_INNER + 2 * l + 1, to / below * links + link)))
            return link;
    }
    return -1;
}

static int fat_tree_route(const struct dtn_topology *t, int from, int to,
                          uint32_t path[])
{
    int levels = 0, below;

    while (from / tree_below(t, levels) != to / tree_below(t, levels))
        levels++;
    for (int l = 0; l < levels; l++) {
        const int link = tree_link(t, l, from, to);

        if (link < 0)
            return -1;
        below = tree_below(t, l);
        path[l] = dtn_topology_link(t, DTN_LEVEL_INNER + 2 * l,
                                    from / below * t->links[l] + link);
        path[2 * levels - 1 - l] = dtn_topology_link(
            t, DTN_LEVEL_INNER + 2 * l + 1, to / below * t->links[l] + link);
    }
    return 2 * levels;
}

/* ------------------------------------------------------------ dragonfly --- */

enum { LOCAL = DTN_LEVEL_INNER, GLOBAL };

/* Names of the sizes. */
struct fly {
    int hosts, routers, groups, links;  /* at a router; in a group; of all;   */
                                        /* between two groups                 */
};

static struct fly fly_of(const struct dtn_topology *t)
{
    return (struct fly){ t->size[0], t->size[1], t->size[2],
                         t->links[2] ? t->links[2] : 1 };
}

static int dragonfly_make(struct dtn_topology *t)
{
    const struct fly f = fly_of(t);
    const int64_t group = (int64_t)f.hosts * f.routers;
    const int64_t local = (int64_t)f.groups * f.routers * f.routers;
    const int64_t global = (int64_t)f.groups * f.groups * f.links;

    if (group > HOSTS_MAX || group * f.groups > HOSTS_MAX || local > LINKS_MAX
        || global > LINKS_MAX)
        return -1;
    t->hosts = (int)group * f.groups;
    t->unit = (int)group;
    dtn_topology_level(t, "local", (int)local);
    dtn_topology_level(t, "global", (int)global);
    return 0;
}

/* Append the link between two routers of a group, if they are two. */
static int fly_local(const struct dtn_topology *t, int group, int from, int to,
                     uint32_t path[], int n)
{
    const int routers = fly_of(t).routers;

    if (from != to)
        path[n++] = dtn_topology_link(t, LOCAL, (group * routers + from)
                                                * routers + to);
    return n;
}

/* Append the way from router *routerp of a group to another group; -1: no link
 * between them is up.
 */
static int fly_global(const struct dtn_topology *t, int from, int to,
                      int spread, int *routerp, uint32_t path[], int n)
{
    const struct fly f = fly_of(t);
    const int ahead = (to - from + f.groups) % f.groups;

    for (int i = 0; i < f.links; i++) {
        const int k = (spread + i) % f.links;
        const uint32_t link = dtn_topology_link(
            t, GLOBAL, (from * f.groups + ahead) * f.links + k);

        if (dtn_topology_down(t, link))
            continue;
        n = fly_local(t, from, *routerp, ((ahead - 1) * f.links + k)
                                         % f.routers, path, n);
        path[n++] = link;
        *routerp = ((f.groups - ahead - 1) * f.links + k) % f.routers;
        return n;
    }
    return -1;
}

/* Over group `over`, or straight if that is the group of `to`. */
static int fly_over(const struct dtn_topology *t, int from, int over, int to,
                    uint32_t path[])
{
    const struct fly f = fly_of(t);
    const int group = f.hosts * f.routers, last = to / group;
    int router = from % group / f.hosts, n = 0;

    if (over != from / group)
        n = fly_global(t, from / group, over, to, &router, path, 0);
    if (n >= 0 && over != last)
        n = fly_global(t, over, last, to, &router, path, n);
    return n < 0 ? -1 : fly_local(t, last, router, to % group / f.hosts, path,
                                  n);
}

static int dragonfly_route(const struct dtn_topology *t, int from, int to,
                           uint32_t path[])
{
    const struct fly f = fly_of(t);
    const int group = f.hosts * f.routers;
    int n = fly_over(t, from, to / group, to, path);

    for (int over = 0; n < 0 && over < f.groups; over++)
        if (over != from / group && over != to / group)
            n = fly_over(t, from, over, to, path);
    return n;
}

const struct dtn_topology_kind dtn_topology_kinds[] = {
    { "flat", "flat", 0, 0, flat_make, flat_route },
    { "fat-tree", "fat-tree:HOSTS/UPLINKSxLEAVES", 1, 4, fat_tree_make,
      fat_tree_route },
    { "dragonfly", "dragonfly:HOSTSxROUTERSxGROUPS/LINKS", 3, 3, dragonfly_make,
      dragonfly_route },
    { .name = NULL }
};
