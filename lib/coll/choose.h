/* choose.h - the emitter of a call, by the model of its group */
#ifndef DTN_COLL_CHOOSE_H
#define DTN_COLL_CHOOSE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_call;
struct dtn_emitter;
struct dtn_group;
struct dtn_model;
struct dtn_models;

/* The model of a group: made at its first use and kept with the context, by the
 * address of the group's list of ranks, which lives as long.  The second
 * function makes one that is not kept; host[n], filled in here, is part of it.
 * Errors: ENOMEM
 */
int dtn_model_of(const struct dtn_group *group,
                 const struct dtn_model **modelp, struct dtensor_error *err);
int dtn_model_make(const struct dtn_group *group, int host[],
                   struct dtn_model *model, struct dtensor_error *err);

/* NULL is a no-op. */
void dtn_models_destroy(struct dtn_models *models);

/* What was chosen for a call. */
struct dtn_pick {
    const struct dtn_emitter *emitter;
    const struct dtn_emitter *next;      /* the best other algorithm, or NULL  */
    double ns;                    /* by what this rank knows                   */
    double scratch;
    double next_ns;
    bool tuned;                   /* [tuning] says so                          */
};

/* Can it run the call? */
bool dtn_emitter_runs(const struct dtn_emitter *emitter,
                      const struct dtn_call *call,
                      const struct dtn_model *model);

/* The emitter for this call: of those that can run it within max_scratch the one
 * that costs least, if none can the one that needs least of it; what [tuning] says
 * for its size goes before.  Every rank chooses the same.
 */
void dtn_choose(const struct dtn_call *call, const struct dtn_model *model,
                struct dtn_pick *pick);

/* Why, in short: "3.1 us < tree: 4.7 us". */
char *dtn_pick_text(const struct dtn_pick *pick, char *buf, size_t size);

#endif
