/* play.c - simulate the time of a call's schedules with the model's constants
 */
#include "sched/play.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/sched/play.h"
#include "tests/support/tap.h"

#include <math.h>

int played_emit(void *arg, int position, struct dtn_sched *sched,
                struct dtensor_error *err)
{
    const struct played *played = arg;
    struct dtn_call call = played->call;

    call.me = position;
    return played->emitter->emit(&call, sched, err);
}

static int play_emit(void *arg, int position, struct dtn_sched *sched,
                     struct dtensor_error *err)
{
    const struct coll_case *c = arg;
    const struct dtn_call call = case_call(c, position);

    return c->emitter->emit(&call, sched, err);
}

double play_case(struct coll_case *c, size_t whole,
                 const struct dtn_model *model)
{
    const struct dtn_play_job job = { .n = c->call.n,
        .stretch = dtn_model_cache_miss_factor(model, (double)whole),
        .emit = play_emit, .arg = c };
    struct dtn_play_result result;
    struct dtn_play_machine machine;
    struct dtensor_error err;

    dtn_play_machine_of(model, &machine);
    if (dtn_play(&machine, &job, 1, NULL, &result, &err) == 0)
        return result.ns;
    note("%s", err.text);
    return INFINITY;
}
