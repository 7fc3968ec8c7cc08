/* choose.h - the emitter of a call, chosen by the model of its group */
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
struct dtn_sched;
struct dtn_transport_conf;

/* The model of a group.  It is made at its first use and kept with the context,
 * under the address of the group's list of ranks, which lives as long.
 * dtn_model_make() makes one that is not kept; it fills in host[n], to which
 * the model points.
 * Errors: ENOMEM
 */
int dtn_model_of(const struct dtn_group *group,
                 const struct dtn_model **modelp, struct dtensor_error *err);
int dtn_model_make(const struct dtn_group *group, int host[],
                   struct dtn_model *model, struct dtensor_error *err);

/* The longest eager message of a group of n ranks, on the hosts of the model.
 */
size_t dtn_model_group_eager(const struct dtn_model *model,
                             const struct dtn_transport_conf *conf, int n);

/* NULL is a no-op. */
void dtn_models_destroy(struct dtn_models *models);

/* The choice for a call. */
struct dtn_choice {
    const struct dtn_emitter *emitter;  /* the best emitter                   */
    const struct dtn_emitter *next;      /* the best of another algorithm, or */
                                         /* NULL                              */
    double ns;                    /* predicted time, with the counts of this  */
                                  /* rank                                     */
    double scratch;               /* predicted scratch, bytes                 */
    double next_ns;               /* predicted time of `next`                 */
    bool tuned;                   /* [tuning] names the algorithm             */
};

/* Can it run the call? */
bool dtn_emitter_runs(const struct dtn_emitter *emitter,
                      const struct dtn_call *call,
                      const struct dtn_model *model);

/* The emitter for this call: the cheapest that can run it within max_scratch;
 * if none can, the one that needs the least scratch.  An algorithm that
 * [tuning] names for the size has priority.  Every rank chooses the same.
 */
void dtn_choose(const struct dtn_call *call, const struct dtn_model *model,
                struct dtn_choice *choice);

/* The emitter of that name that can run the call, NULL: none; or the chosen one
 * if `algorithm` is NULL.
 */
const struct dtn_emitter *dtn_emitter_named(const struct dtn_call *call,
                                            const struct dtn_model *model,
                                            const char *algorithm);

/* Emit the schedule of rank call->me into *sched (initialised here). */
int dtn_emitter_emit(const struct dtn_emitter *emitter,
                     const struct dtn_call *call,
                     const struct dtn_model *model, struct dtn_sched *sched,
                     struct dtensor_error *err);

/* The reason in short: "3.1 us < tree: 4.7 us". */
char *dtn_choice_text(const struct dtn_choice *choice, char *buf, size_t size);

#endif
