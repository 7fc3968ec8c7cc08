/* plan.h - a redistribute plan; private to this room */
#ifndef DTN_REDIST_PLAN_H
#define DTN_REDIST_PLAN_H

#include "base/compiler.h"
#include "base/lru.h"
#include "boot/boot.h"
#include "redist/phases.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_exchange;
struct dtn_group;
struct dtn_plan;
struct dtn_sched;

#define DTN_NO_ROOT (-1)

/* Where the result of a step goes: one of two buffers in turn, or the end. */
enum dtn_target { DTN_TARGET_OUT = -1, DTN_TARGET_EVEN, DTN_TARGET_ODD,
                  DTN_NTARGETS };

/* One phase on this rank. */
struct dtn_redist_step {
    struct dtn_phase phase;
    const struct dtn_group *group;
    struct dtn_plan *plan;             /* EXCHANGE; others: if ever started   */
    uint64_t fingerprint;              /* of that                             */
    size_t count;                      /* elements of the own result          */
    size_t window_bytes;               /* EXCHANGE: packed for a peer at once */
    enum dtn_target target;
    double ns;                         /* predicted                           */
};

struct dtensor_plan {
    struct dtn_lru_entry entry;        /* bytes: scratch of its exchanges     */
    struct dtensor_spec src;
    struct dtensor_spec dst;
    const struct dtensor_mesh *all;    /* of the ranks of both                */
    int root;                          /* of a scatter, else DTN_NO_ROOT      */
    uint64_t hash;                     /* of all three, the same on all ranks */
    enum dtensor_route route;
    const char *why;
    uint64_t max_scratch;              /* bytes, of those who chose the route */
    size_t out_bytes;                  /* of the own part of dst              */
    size_t scratch[DTN_NTARGETS];      /* bytes of both buffers               */
    char text[160];                    /* for dtensor_last_plan()             */
    char said[DTN_RECORD_TEXT];        /* for errors: what was called         */
    bool ready;                        /* to run on this rank                 */
    int nsteps;
    struct dtn_redist_step step[];
};

/* cross.c: the phases between specs on different meshes; the exchange in the
 * middle of them; and the mesh of the ranks of both, ascending - or, where they
 * are the same, that.   Errors: ENOMEM
 */
#define DTN_CROSS_PHASES_MAX (1 + 2 * DTN_MAX_PHASES)
int dtn_cross_phases(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst,
                     struct dtn_phase phase[DTN_CROSS_PHASES_MAX]);
struct dtn_phase dtn_phase_cross(const struct dtensor_spec *src,
                                 const struct dtensor_spec *dst);
int dtn_cross_mesh(const struct dtensor_mesh *a, const struct dtensor_mesh *b,
                   const struct dtensor_mesh **meshp,
                   struct dtensor_error *err);

/* Make it, without a word to anybody; in a scatter `src` is all R and `options`
 * do not matter.
 */
int dtn_redist_create(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root,
                      const struct dtensor_plan_options *options,
                      struct dtensor_plan **planp, struct dtensor_error *err);

/* Of both specs and the root, the same on all ranks. */
uint64_t dtn_redist_hash(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst, int root);

/* redist_ready.c: make what this rank needs to run it, unless that is done; and
 * connect to the peers that its exchanges need.
 * connect: Collective: yes, both meshes.   Blocks: until connected.
 */
int dtn_redist_ready(struct dtensor_plan *plan, struct dtensor_error *err);
int dtn_redist_connect(struct dtensor_plan *plan, struct dtensor_error *err);

/* This rank's schedule of step i, an exchange of a group that it is in. */
int dtn_redist_emit(const struct dtensor_plan *plan, int i,
                    struct dtn_sched *sched, struct dtensor_error *err);

/* Append to the text; what does not fit is cut. */
void dtn_redist_say(struct dtensor_plan *plan, const char *fmt, ...)
    DTN_PRINTF(2, 3);

/* The call that the ranks of an exchange compare, and report if it differs;
 * `text` is valid as long as the plan.
 */
void dtn_redist_says(struct dtn_plan *plan, const struct dtn_group *group,
                     uint64_t fingerprint, const char *text);

/* Emit an exchange of the group and make it ready to run. */
int dtn_redist_plan(const struct dtn_group *group,
                    const struct dtn_exchange *exchange,
                    struct dtn_plan **planp, struct dtensor_error *err);

/* After a broadcast divide the `count` elements of the result, if the phase
 * says so; exchanges and reductions have divided before rounding.
 */
int dtn_phase_finish(const struct dtn_phase *phase, void *out, size_t count,
                     struct dtensor_error *err);

/* The number of the next redistribute over its ranks, counted among their
 * calls.  A redistribute that moves no data is not counted.
 */
uint32_t dtn_redist_number(const struct dtensor_plan *plan);

/* Run it.  `in` and `out` are this rank's parts. */
int dtn_redist_run(struct dtensor_plan *plan, const void *in, void *out,
                   struct dtensor_error *err);

/* For request.c: does the plan go with these specs; take the room for results
 * between steps, if it needs any, and give it back (EAGAIN: another has it);
 * where that of step i goes; has this rank no part in a step; own plans for its
 * collectives.   Errors: EINVAL, ENOMEM
 */
int dtn_redist_fits(const struct dtensor_plan *plan,
                    const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, struct dtensor_error *err);
int dtn_redist_hold(const struct dtensor_plan *plan, const void *holder,
                    struct dtensor_error *err);
void dtn_redist_release(struct dtensor_ctx *ctx, const void *holder);
void *dtn_redist_target(const struct dtensor_plan *plan, int i, void *out);
bool dtn_redist_idle(const struct dtn_redist_step *step);
int dtn_redist_calls(struct dtensor_plan *plan, struct dtensor_error *err);

/* A rank that fails alone tells the others, who wait for it; returns rc. */
int dtn_redist_give_up(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int rc,
                       const struct dtensor_error *why,
                       struct dtensor_error *err);

#endif
