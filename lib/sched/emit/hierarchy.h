/* hierarchy.h - private to the coll room: who is where in a group that spans
 * hosts, and what hierarchical emitters share
 */
#ifndef DTN_HIERARCHY_H
#define DTN_HIERARCHY_H

#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

struct dtn_call;
struct dtn_sched;

/* Hosts are numbered in the order in which positions name them, and the
 * positions of a host, its *locals*, in order.  The first `nrails` locals of
 * each host are *owners*: owner l stands on rail l, and what is between hosts
 * goes among the owners of one rail only.
 */
struct dtn_hierarchy {
    struct dtn_sched *sched;
    const struct dtn_call *call;
    int nhosts;
    int nrails;                   /* locals of each host, if all have as many; */
                                  /* else 1                                    */
    int host, local;              /* of the own position                       */
    bool owner;
    int *host_of, *local_of;      /* [n]                                       */
    int *start;                   /* [nhosts + 1] first local of host h in ... */
    int *member;                  /* [n] positions by host                     */
};

/* Begin the schedule; its FOLD of rank -1 is over the own host's locals.
 * Errors: ENOMEM; else dtn_hierarchy_end() is due, which finishes it.
 */
int dtn_hierarchy_begin(struct dtn_hierarchy *h, const char *name,
                        const struct dtn_call *call, struct dtn_sched *sched,
                        struct dtensor_error *err);
int dtn_hierarchy_end(struct dtn_hierarchy *h, struct dtensor_error *err);

/* Local l of a host; how many it has. */
static inline int dtn_local_at(const struct dtn_hierarchy *h, int host, int l)
{
    return h->member[h->start[host] + l];
}

static inline int dtn_locals(const struct dtn_hierarchy *h, int host)
{
    return h->start[host + 1] - h->start[host];
}

/* The rail that carries a position's own data. */
static inline int dtn_rail_of(const struct dtn_hierarchy *h, int position)
{
    return h->local_of[position] % h->nrails;
}

static inline bool dtn_is_owner(const struct dtn_hierarchy *h, int position)
{
    return h->local_of[position] < h->nrails;
}

/* The i-th host after the own, 0 .. nhosts-1, and the owner of the own rail
 * there.
 */
static inline int dtn_host_after(const struct dtn_hierarchy *h, int i)
{
    return (h->host + i) % h->nhosts;
}

static inline int dtn_rail_peer(const struct dtn_hierarchy *h, int i)
{
    return dtn_local_at(h, dtn_host_after(h, i), h->local);
}

/* The i-th local after the own, 1 .. dtn_locals()-1. */
static inline int dtn_local_after(const struct dtn_hierarchy *h, int i)
{
    return dtn_local_at(h, h->host,
                        (h->local + i) % dtn_locals(h, h->host));
}

/* Which pairs of locals speak. */
enum dtn_local_pairs {
    DTN_PAIRS_ANY_OWNER,          /* those of which one is an owner            */
    DTN_PAIRS_FROM_OWNER,         /* owner to everyone                         */
    DTN_PAIRS_TO_OWNER            /* everyone to owner                         */
};

/* Signal to those locals; wait for those that signal to this one. */
void dtn_local_tell(const struct dtn_hierarchy *h, enum dtn_tag tag,
                    enum dtn_local_pairs pairs);
void dtn_local_hear(const struct dtn_hierarchy *h, enum dtn_tag tag,
                    enum dtn_local_pairs pairs);

/* Owners: signal to, wait for, flush all other owners of the rail. */
void dtn_rail_tell(const struct dtn_hierarchy *h, enum dtn_tag tag);
void dtn_rail_hear(const struct dtn_hierarchy *h, enum dtn_tag tag);
void dtn_rail_flush(const struct dtn_hierarchy *h);

/* Part `rail` of one buffer, and part `host` of that, both as they lie in the
 * buffer.
 */
struct dtn_range dtn_rail_block(const struct dtn_hierarchy *h, int rail);
struct dtn_range dtn_rail_part(const struct dtn_hierarchy *h, int rail,
                               int host);

#endif
