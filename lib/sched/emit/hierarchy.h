/* hierarchy.h - private to the emitters: groups that span hosts */
#ifndef DTN_HIERARCHY_H
#define DTN_HIERARCHY_H

#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

struct dtn_call;

/* Hosts are numbered in the order in which positions name them.  The positions
 * on a host are its *locals*, in order.  The first `nrails` locals of each host
 * are *owners*: owner l is on rail l, and data between hosts goes only between
 * owners of the same rail.
 */
struct dtn_hierarchy {
    struct dtn_sched *sched;      /* the schedule being written               */
    const struct dtn_call *call;  /* the call                                 */
    int nhosts;                   /* hosts of the group                       */
    int nrails;                   /* rails: the locals of the smallest host   */
    int host, local;              /* of this rank                             */
    bool owner;                   /* this rank is an owner                    */
    int *host_of, *local_of;      /* [n] of each position                     */
    int *start;                   /* [nhosts + 1] index in member[] of host   */
                                  /* h's first local                          */
    int *member;                  /* [n] positions, sorted by host            */
};

/* Begin the schedule.  Its FOLD of rank -1 folds over the locals of this host.
 * Errors: ENOMEM; else call dtn_hierarchy_end(), which finishes it.
 */
int dtn_hierarchy_begin(struct dtn_hierarchy *h, const char *name,
                        const struct dtn_call *call, struct dtn_sched *sched,
                        struct dtensor_error *err);
int dtn_hierarchy_end(struct dtn_hierarchy *h, struct dtensor_error *err);

/* The position of local l of a host; the number of its locals. */
static inline int dtn_local_at(const struct dtn_hierarchy *h, int host, int l)
{
    return h->member[h->start[host] + l];
}

static inline int dtn_locals(const struct dtn_hierarchy *h, int host)
{
    return h->start[host + 1] - h->start[host];
}

/* The rail of a position's data. */
static inline int dtn_rail_of(const struct dtn_hierarchy *h, int position)
{
    return h->local_of[position] % h->nrails;
}

static inline bool dtn_is_owner(const struct dtn_hierarchy *h, int position)
{
    return h->local_of[position] < h->nrails;
}

/* The i-th host after this one, 0 .. nhosts-1; the owner of this rail on it. */
static inline int dtn_host_after(const struct dtn_hierarchy *h, int i)
{
    return (h->host + i) % h->nhosts;
}

static inline int dtn_rail_peer(const struct dtn_hierarchy *h, int i)
{
    return dtn_local_at(h, dtn_host_after(h, i), h->local);
}

/* The i-th local after this rank, 1 .. dtn_locals()-1. */
static inline int dtn_local_after(const struct dtn_hierarchy *h, int i)
{
    return dtn_local_at(h, h->host,
                        (h->local + i) % dtn_locals(h, h->host));
}

/* Which pairs of locals signal. */
enum dtn_local_pairs {
    DTN_PAIRS_ANY_OWNER,          /* pairs with at least one owner            */
    DTN_PAIRS_FROM_OWNER,         /* from owners to all locals                */
    DTN_PAIRS_TO_OWNER,           /* from all locals to owners                */
    DTN_PAIRS_GATHER,             /* from owners to all locals, and from the  */
                                  /* others to the owner of their rail        */
    DTN_PAIRS_SCATTER             /* the same the other way round             */
};

/* Signal to those locals; wait for their signals. */
void dtn_local_signal(const struct dtn_hierarchy *h, enum dtn_tag tag,
                      enum dtn_local_pairs pairs);
void dtn_local_wait(const struct dtn_hierarchy *h, enum dtn_tag tag,
                    enum dtn_local_pairs pairs);

/* Owners: signal to, wait for, flush all other owners of the rail. */
void dtn_rail_signal(const struct dtn_hierarchy *h, enum dtn_tag tag);
void dtn_rail_wait(const struct dtn_hierarchy *h, enum dtn_tag tag);
void dtn_rail_flush(const struct dtn_hierarchy *h);

/* Block `rail` of the buffer, and part `host` of that block; offsets are in the
 * buffer.
 */
struct dtn_range dtn_rail_block(const struct dtn_hierarchy *h, int rail);
struct dtn_range dtn_rail_part(const struct dtn_hierarchy *h, int rail,
                               int host);

/* The *share* of a rail on a host are the blocks of its locals rail, rail +
 * nrails, rail + 2 nrails, ...  Its bytes up to local `end`.
 */
size_t dtn_share_bytes(const struct dtn_hierarchy *h, int rail, int host,
                       int end);

/* Has this owner's share blocks of other locals? */
bool dtn_share_mixed(const struct dtn_hierarchy *h);

/* All ranks load the blocks from the OUT of the owners on their host. */
void dtn_hierarchy_share(const struct dtn_hierarchy *h);

/* The end where owners read what the locals have, and hand them what comes of
 * it.  release: this owner has read all INs, and tells the locals to which it
 * has nothing to hand.  hand: a rank that is no owner loads its blocks from the
 * owner of its rail; and each rank waits until its memory is read.
 */
typedef void dtn_load_f(const struct dtn_hierarchy *h, int owner);
void dtn_hierarchy_release(const struct dtn_hierarchy *h);
void dtn_hierarchy_hand(const struct dtn_hierarchy *h, dtn_load_f *load);

#endif
