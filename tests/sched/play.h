/* play.h - simulate the time of a call's schedules */
#ifndef TESTS_SCHED_PLAY_H
#define TESTS_SCHED_PLAY_H

#include "sched/call.h"
#include "dtensor.h"

#include <stddef.h>

struct coll_case;
struct dtn_emitter;
struct dtn_model;
struct dtn_sched;

/* A call by an emitter; a dtn_play_job has it as `arg`, and played_emit(). */
struct played {
    const struct dtn_emitter *emitter;
    struct dtn_call call;         /* me is filled in                          */
};
int played_emit(void *arg, int position, struct dtn_sched *sched,
                struct dtensor_error *err);

/* Play all ranks of the call to their ends: the time of the last one in ns,
 * INFINITY if that fails.  `whole` is the size of the call in bytes, for the
 * caches.
 */
double play_case(struct coll_case *c, size_t whole,
                 const struct dtn_model *model);

#endif
