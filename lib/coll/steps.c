/* steps.c - the schedule of a call, one step after the other
 *
 * This is for dtensor_call_steps(): rank 0 of an allreduce of 1 MiB over 4
 * ranks by the ring signals rank 1, waits for rank 3, loads 256 KiB from there
 * and adds them, and so on.  A picture or a simulation needs only who waits for
 * whom and how many bytes move, so offsets and tags are left out.
 */
#include "base/error.h"
#include "coll/ask.h"
#include "coll/choose.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/sched.h"
#include "dtensor.h"

static enum dtensor_step_kind step_kind(const struct dtn_sched *sched,
                                        const struct dtn_step *step)
{
    switch (step->op) {
    case DTN_OP_PUT:
        return DTENSOR_STEP_PUT;
    case DTN_OP_SIGNAL:
        return DTENSOR_STEP_SIGNAL;
    case DTN_OP_WAIT:
        return DTENSOR_STEP_WAIT;
    default:
        return step->src.rank == sched->me ? DTENSOR_STEP_LOCAL
                                           : DTENSOR_STEP_LOAD;
    }
}

static size_t step_bytes(const struct dtn_sched *sched,
                         const struct dtn_step *step)
{
    if (step->op == DTN_OP_WAIT ||
        (step->op == DTN_OP_SIGNAL && step->tag != DTN_TAG_EAGER))
        return 0;
    return dtn_step_bytes(sched, step);
}

/* A fold reads its terms from all the sources, or from own memory. */
static void steps_fold(const struct dtn_sched *sched,
                       const struct dtn_step *step, dtensor_step_f *visit,
                       void *arg)
{
    const int n = step->src.rank >= 0 ? step->terms : dtn_sched_nterms(sched);

    for (int i = 0; i < n; i++) {
        const int rank = step->src.rank >= 0 ? sched->me
                                             : dtn_sched_term(sched, i);

        visit(&(struct dtensor_call_step){
            .kind = rank == sched->me ? DTENSOR_STEP_LOCAL : DTENSOR_STEP_LOAD,
            .peer = rank == sched->me ? -1 : rank, .reduces = 1,
            .bytes = step->bytes }, arg);
    }
}

static void steps_visit(const struct dtn_sched *sched,
                        const struct dtn_step *step, dtensor_step_f *visit,
                        void *arg)
{
    struct dtensor_call_step told = {
        .kind = step_kind(sched, step), .peer = step->peer,
        .reduces = step->op == DTN_OP_REDUCE,
        .bytes = step_bytes(sched, step)
    };

    if (step->op == DTN_OP_FLUSH)
        return;
    if (step->op == DTN_OP_SCALE || step->op == DTN_OP_NEUTRAL)
        told.kind = DTENSOR_STEP_LOCAL;
    if (told.kind == DTENSOR_STEP_LOAD)
        told.peer = step->src.rank;
    if (told.kind == DTENSOR_STEP_LOCAL)
        told.peer = -1;
    if (step->op == DTN_OP_FOLD)
        steps_fold(sched, step, visit, arg);
    else
        visit(&told, arg);
}

static int steps_check(const struct dtn_call *call, const char *algorithm,
                       int position, const struct dtn_emitter *emitter,
                       struct dtensor_error *err)
{
    if (position < 0 || position >= call->n)
        return dtn_fail(err, DTENSOR_EINVAL, "call steps: position %d of a "
                        "mesh of %d ranks (expected 0 to %d)", position,
                        call->n, call->n - 1);
    if (dtn_call_private(call))
        return dtn_fail(err, DTENSOR_EINVAL, "call steps: an all-to-all with "
                        "counts, of which each rank knows its own only (leave "
                        "counts out)");
    if (!emitter)
        return dtn_fail(err, DTENSOR_EINVAL, "call steps: no algorithm \"%s\" "
                        "runs this %s (dtensor_call_ways() lists those that "
                        "do)", algorithm, dtn_coll_name(call->coll));
    return 0;
}

int dtensor_call_steps(const struct dtensor_mesh *mesh,
                       const struct dtensor_call *call, const char *algorithm,
                       int position, dtensor_step_f *visit, void *arg,
                       struct dtensor_error *err)
{
    const struct dtn_emitter *emitter = NULL;
    const struct dtn_model *model;
    struct dtn_sched sched;
    struct dtn_call asked;
    int rc = dtn_ask(mesh, call, &asked, &model, err);

    if (rc == 0 && !dtn_call_private(&asked))
        emitter = dtn_emitter_named(&asked, model, algorithm);
    if (rc == 0)
        rc = steps_check(&asked, algorithm, position, emitter, err);
    asked.me = position;
    if (rc == 0)
        rc = dtn_emitter_emit(emitter, &asked, model, &sched, err);
    if (rc != 0)
        return rc;
    for (int i = 0; i < sched.nsteps; i++)
        steps_visit(&sched, &sched.steps[i], visit, arg);
    dtn_sched_fini(&sched);
    return 0;
}
