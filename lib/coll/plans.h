/* plans.h - private to the coll room: an LRU cache of plans by call */
#ifndef DTN_PLANS_H
#define DTN_PLANS_H

#include "base/lru.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

struct dtn_call;
struct dtn_group;
struct dtn_plan;

struct dtn_cached_plan {
    struct dtn_lru_entry entry;   /* bytes: scratch; holders: requests        */
    struct dtn_plan *plan;        /* the plan of the call                     */
    uint64_t fingerprint;         /* of the call, without its number          */
    char text[160];               /* for dtensor_last_plan()                  */
    size_t text_bytes;            /* with the final '\0'                      */
};

/* A fingerprint of what all ranks of the call know, without the number of the
 * call.  For messages the match bits of the edges contain it.
 */
uint64_t dtn_call_fingerprint(const struct dtn_group *group,
                              const struct dtn_call *call);

/* The plan of this call; it is made if it is new.  It is valid until the next
 * call of this function, or while it has holders.
 */
int dtn_plans_get(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_cached_plan **cachedp, struct dtensor_error *err);

/* The cached plan of a call, if a quick check shows that the buffers are good:
 * they are there, and they do not overlap.  NULL: do the full checks.
 */
struct dtn_cached_plan *dtn_plans_again(const struct dtn_group *group,
                                        const struct dtn_call *call,
                                        const void *in, const void *out);

void dtn_plans_clear(struct dtn_lru *plans);

#endif
