/* plan.h - a redistribute plan */
#ifndef DTN_REDIST_PLAN_H
#define DTN_REDIST_PLAN_H

#include "base/lru.h"
#include "boot/boot.h"
#include "job/last_plan.h"
#include "redist/phases.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_group;
struct dtn_exec;

/* Where the result of a step goes: to one of two buffers in turn, or to the
 * caller's memory.
 */
enum dtn_target { DTN_TARGET_OUT = -1, DTN_TARGET_EVEN, DTN_TARGET_ODD,
                  DTN_NTARGETS };

/* One phase on this rank. */
struct dtn_redist_step {
    struct dtn_phase phase;            /* what all ranks do                   */
    const struct dtn_group *group;     /* the ranks that do it with this one  */
    struct dtn_exec *exec;             /* EXCHANGE: its schedule, bound; else */
                                       /* NULL, unless it was ever started    */
    uint64_t fingerprint;              /* of that schedule                    */
    size_t count;                      /* elements of this rank's result      */
    size_t window_bytes;               /* EXCHANGE: packed for a peer at once */
    enum dtn_target target;            /* where the result goes               */
    double ns;                         /* predicted time                      */
};

#define DTN_NO_ROOT (-1)

struct dtensor_plan {
    struct dtn_lru_entry entry;        /* bytes: scratch of its exchanges     */
    struct dtensor_spec src;           /* from                                */
    struct dtensor_spec dst;           /* to                                  */
    const struct dtensor_mesh *all;    /* of the ranks of both                */
    int root;                          /* position that has the whole, or     */
                                       /* DTN_NO_ROOT: not a scatter          */
    uint64_t hash;                     /* of src, dst, root and the route:    */
                                       /* the same on all ranks               */
    enum dtensor_route route;          /* the one taken                       */
    const char *why;                   /* it was taken                        */
    uint64_t max_scratch;              /* bytes, when the route was chosen    */
    size_t out_bytes;                  /* of this rank's part of dst          */
    size_t scratch[DTN_NTARGETS];      /* bytes of both buffers               */
    char text[DTN_LAST_PLAN];          /* for dtensor_last_plan()             */
    char call[DTN_RECORD_TEXT];        /* for errors: what was called         */
    bool ready;                        /* to run on this rank                 */
    int nsteps;                        /* 0: nothing moves                    */
    struct dtn_redist_step step[];     /* [nsteps]                            */
};

/* Make a plan; nothing is sent.  In a scatter `src` is all R and `options` do
 * not matter.   Errors: EINVAL  no such route; ENOMEM
 */
int dtn_redist_create(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root,
                      const struct dtensor_plan_options *options,
                      struct dtensor_plan **planp, struct dtensor_error *err);

/* A hash of both specs and the root; it is the same on all ranks. */
uint64_t dtn_redist_hash(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst, int root);

#endif
