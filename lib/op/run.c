/* run.c - operators on tensors
 *
 * A run is: find the decision; redistribute the inputs that lie otherwise than
 * it wants; let each rank compute its part of the outputs from its parts of the
 * inputs.  matmul of S(0) by S(1) gathers the second one, as plans of
 * redistributes are cached, and multiplies; of S(0) by R it only multiplies.
 *
 * A rank that has not enough memory says so to the others if they would wait
 * for it, that is, if the decision sends something.
 */
#include "op/bound.h"
#include "op/cache.h"
#include "op/collective.h"
#include "op/kernels.h"
#include "op/local/local.h"
#include "op/rule.h"
#include "op/staged.h"
#include "op/words.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/redist.h"
#include "tensor/recorder.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <string.h>

/* One run. */
struct running {
    const struct dtensor *const *in;       /* [decision->call.nin]            */
    const struct dtensor_op_args *args;    /* of this call                    */
    int nout;                              /* outputs that are asked for      */
    struct dtn_decision *d;                /* of the call                     */
    const struct dtensor_mesh *mesh;       /* of all tensors                  */
};

/* ---------------------------------------------------------------- begin --- */

static int run_check(const struct dtn_op_key *key, int nout,
                     const void *out, struct dtensor_error *err)
{
    if (!key->op || key->nin < 1 || !key->tensor || nout < 1 || !out)
        return dtn_fail(err, DTENSOR_EINVAL, "op: %s", !key->op ? "op is NULL"
                        : key->nin < 1 ? "there are no inputs"
                        : !key->tensor ? "in is NULL"
                        : nout < 1 ? "there are no outputs" : "out is NULL");
    for (int i = 0; i < key->nin; i++)
        if (!key->tensor[i])
            return dtn_fail(err, DTENSOR_EINVAL, "%s: input %d is NULL (give "
                            "fewer inputs to leave out the last ones)",
                            key->op, i);
    return 0;
}

/* "input 1 from S(1) to R" */
static void move_log(const struct running *run, int i, enum dtn_log_level level)
{
    struct dtn_log *log = &run->mesh->ctx->log;
    char from[200], to[200];

    if (log->level < level)
        return;
    dtensor_placements_format(run->mesh, run->d->in[i].placement, from,
                              sizeof from);
    dtensor_placements_format(run->mesh, run->d->inferred.want[i].placement, to,
                              sizeof to);
    dtn_log(log, level, "op: %s: input %d is redistributed from %s to %s",
            run->d->op, i, from, to);
}

/* Redistributes that nobody asked for may be refused, or told of once. */
static int run_implied(const struct running *run, struct dtensor_error *err)
{
    const enum dtensor_implied implied = dtn_op_implied(run->mesh->ctx);
    struct dtn_op_bound *b = run->d->bound;
    char to[160];
    int i = 0;

    if (!b->sends || implied == DTENSOR_IMPLIED_ALLOWED)
        return 0;
    for (; implied == DTENSOR_IMPLIED_WARNED && i < run->d->call.nin; i++)
        if (b->input[i].sends && !b->warned)
            move_log(run, i, DTN_LOG_WARN);
    b->warned = true;
    if (implied == DTENSOR_IMPLIED_WARNED)
        return 0;
    while (!b->input[i].sends)
        i++;
    dtensor_placements_format(run->mesh, run->d->inferred.want[i].placement, to,
                              sizeof to);
    return dtn_op_fail(&run->d->call, err, "input %d would be redistributed to "
                       "%s, which this context refuses (redistribute it "
                       "before, or see dtensor_op_implied(3))", i, to);
}

static int run_begin(struct running *run, const struct dtn_op_key *key,
                     int nout, const void *out, struct dtensor_error *err)
{
    int rc = run_check(key, nout, out, err);

    if (rc != 0)
        return rc;
    *run = (struct running){ .in = key->tensor, .args = key->args,
                             .nout = nout,
                             .mesh = key->tensor[0]->spec.mesh };
    rc = dtn_ctx_follows(run->mesh->ctx, err);
    if (rc == 0)
        rc = dtn_decide(key, &run->d, err);
    if (rc == 0 && nout > run->d->inferred.nout)
        rc = dtn_op_fail(&run->d->call, err, "there are %d outputs, not %d",
                         run->d->inferred.nout, nout);
    if (rc == 0)
        rc = dtn_bind(run->d, err);
    return rc == 0 ? run_implied(run, err) : rc;
}

/* ------------------------------------------------------------------ run --- */

/* Fail for lack of memory: peers that would wait are told. */
static int run_end(const struct running *run, int rc,
                   const struct dtensor_error *why, struct dtensor_error *err)
{
    if (run->d->bound->sends || run->d->bound->among)
        return dtn_tensor_end_all(run->mesh, rc, why, err);
    if (rc != 0 && err)
        *err = *why;
    return rc;
}

/* The memory that a run needs, if it is not there from an earlier one. */
static int run_memory(const struct running *run, void **scratchp,
                      struct dtensor_error *err)
{
    const struct dtn_op_bound *b = run->d->bound;
    struct dtensor_error why;
    void *work;
    int rc = 0;

    if (run->mesh->ctx->planning)
        return 0;
    if (b->scratch > 0)
        rc = dtn_op_scratch(run->mesh, b->scratch, scratchp, &why);
    if (rc == 0 && b->work > 0)
        rc = dtn_op_workspace(run->mesh, b->work, &work, &why);
    return rc == 0 ? 0 : run_end(run, rc, &why, err);
}

/* Set the addresses of the inputs; redistribute those that move. */
static int run_inputs(const struct running *run, struct dtensor_error *err)
{
    const struct dtn_op_bound *b = run->d->bound;
    void *scratch = NULL;
    int rc = run_memory(run, &scratch, err);

    for (int i = 0; i < run->d->call.nin && rc == 0; i++) {
        b->in[i].data = run->in[i]->local;
        if (!b->input[i].moves)
            continue;
        move_log(run, i, DTN_LOG_DEBUG);
        b->in[i].data = scratch ? (char *)scratch + b->input[i].at : NULL;
        rc = dtn_redistribute(&run->d->in[i], &run->d->inferred.want[i],
                              run->in[i]->local, b->in[i].data, err);
    }
    return rc;
}

static int run_local(const struct running *run, struct dtensor *const out[],
                     struct dtensor_error *err)
{
    struct dtn_op_bound *b = run->d->bound;
    struct dtn_parts parts = {
        .op = run->d->op, .args = run->args, .want = run->d->inferred.want,
        .spec = run->d->inferred.out, .nin = run->d->call.nin,
        .nout = run->nout, .me = run->mesh->group.me, .among = b->among,
        .in = b->in, .out = b->out
    };
    void *scratch;
    int rc = 0;

    if (run->mesh->ctx->planning)
        return dtn_collective_follow(run->d, err);
    if (b->local->fill)
        return b->local->fill(b->local, &parts, out, err);
    if (parts.me < 0)
        return 0;
    if (b->work > 0)
        rc = dtn_op_workspace(run->mesh, b->work, &parts.work, err);
    if (b->shared < b->scratch) {
        rc = dtn_op_scratch(run->mesh, b->scratch, &scratch, err);
        parts.work = (char *)scratch + b->shared;
    }
    if (rc != 0)
        return rc;
    parts.room = dtn_op_math_room(run->mesh->ctx);
    if (b->kernels)
        return dtn_op_run_kernels(b->local, &parts, err);
    return b->staged ? dtn_op_staged(b, &parts, err)
                     : b->local->run(b->local, &parts, err);
}

static inline int run_decided(const struct running *run,
                              struct dtensor *const out[],
                              struct dtensor_error *err)
{
    int rc = run_inputs(run, err);

    for (int i = 0; i < run->nout; i++)
        run->d->bound->out[i].data = out[i]->local;
    if (rc == 0)
        rc = run_local(run, out, err);
    if (rc != 0)
        return rc;
    return dtn_called(&(struct dtn_called){
        .op = run->d->op, .args = run->args, .nin = run->d->call.nin,
        .nout = run->nout, .in = run->in, .out = out, .decision = run->d },
        err);
}

static DTN_NOINLINE int run_watched(const struct running *run,
                                    struct dtensor *const out[],
                                    struct dtensor_error *err)
{
    struct dtn_watcher *watcher = run->mesh->ctx->watcher;
    int rc;

    watcher->begin(watcher, &(struct dtn_activity){
        .kind = DTN_WATCHED_OP, .name = run->d->op, .nin = run->d->call.nin,
        .nout = run->nout, .in = run->d->in, .out = run->d->inferred.out,
        .want = run->d->inferred.want });
    rc = run_decided(run, out, err);
    watcher->end(watcher);
    return rc;
}

static int run_all(const struct running *run, struct dtensor *const out[],
                   struct dtensor_error *err)
{
    return run->mesh->ctx->watcher ? run_watched(run, out, err)
                                   : run_decided(run, out, err);
}

/* ---------------------------------------------------------- new outputs --- */

/* Are all outputs made, though not asked for? */
static bool makes_all(const struct running *run)
{
    return run->d->flags & DTN_RULE_ALL ||
           (run->d->flags & DTN_RULE_TAPED && run->mesh->ctx->recorder);
}

/* Those from `first` on; all that the operator has, if they are needed. */
static int outputs_make(struct running *run, int first,
                        struct dtensor_error *err)
{
    struct dtensor **made = run->d->bound->made;
    struct dtensor_error why;
    int rc = 0;

    if (makes_all(run))
        run->nout = run->d->inferred.nout;
    for (int i = first; i < run->nout; i++)
        made[i] = NULL;
    for (int i = first; i < run->nout && rc == 0; i++)
        rc = dtn_tensor_create(&run->d->inferred.out[i], &made[i], &why);
    return rc == 0 ? 0 : run_end(run, rc, &why, err);
}

/* Destroy those from `first` on, which nobody asked for. */
static void outputs_drop(const struct running *run, int first)
{
    for (int i = first; i < run->nout; i++)
        dtensor_destroy(run->d->bound->made[i]);
}

static const struct dtensor_op_args no_args;

int dtensor_op(const char *op, int nin, const struct dtensor *const in[],
               const struct dtensor_op_args *args, int nout,
               struct dtensor *out[], struct dtensor_error *err)
{
    const struct dtn_op_key key = { op, nin, NULL, in, args ? args : &no_args };
    struct running run;
    int rc = run_begin(&run, &key, nout, out, err);

    if (rc == 0 && run.d->flags & DTN_RULE_INPLACE)
        rc = dtn_op_fail(&run.d->call, err, "it works in place (call "
                         "dtensor_op_into() with out[0] = in[0])");
    if (rc != 0)
        return rc;
    rc = outputs_make(&run, 0, err);
    if (rc == 0)
        rc = run_all(&run, run.d->bound->made, err);
    outputs_drop(&run, rc == 0 ? nout : 0);
    for (int i = 0; i < nout && rc == 0; i++)
        out[i] = run.d->bound->made[i];
    return rc;
}

/* ----------------------------------------------------- existing outputs --- */

/* May output i be the tensor that is input k?  It is not read any more if it
 * was moved, or is read element by element.
 */
static bool alias_fits(const struct running *run, int i, int k)
{
    const struct dtn_op_bound *b = run->d->bound;

    return b->input[k].moves ||
           (i == 0 && b->local->flags & DTN_LOCAL_ALIAS &&
            dtn_spec_equal(&run->in[k]->spec, &run->d->inferred.out[0]));
}

static int output_check(const struct running *run, int i,
                        struct dtensor *const out[], struct dtensor_error *err)
{
    const struct dtensor_spec *want = &run->d->inferred.out[i];
    char one[200], other[200];

    if (!out[i])
        return dtn_op_fail(&run->d->call, err, "out[%d] is NULL", i);
    if ((run->d->bound->last[i] != out[i]->first ||
         out[i]->spec.mesh != want->mesh) &&
        !dtn_spec_equal(&out[i]->spec, want))
        return dtn_op_fail(&run->d->call, err, "out[%d] is %s, but the result "
                           "is %s", i,
                           dtn_spec_format(&out[i]->spec, one, sizeof one),
                           dtn_spec_format(want, other, sizeof other));
    for (int k = 0; k < i; k++)
        if (out[k] == out[i])
            return dtn_op_fail(&run->d->call, err, "out[%d] and out[%d] are "
                               "one tensor", k, i);
    for (int k = 0; k < run->d->call.nin; k++)
        if (out[i] == run->in[k] && !alias_fits(run, i, k))
            return dtn_op_fail(&run->d->call, err, "out[%d] is input %d, which "
                               "is still read (give another tensor)", i, k);
    run->d->bound->last[i] = out[i]->first;
    return 0;
}

int dtensor_op_into(const char *op, int nin, const struct dtensor *const in[],
                    const struct dtensor_op_args *args, int nout,
                    struct dtensor *const out[], struct dtensor_error *err)
{
    const struct dtn_op_key key = { op, nin, NULL, in, args ? args : &no_args };
    struct running run;
    int rc = run_begin(&run, &key, nout, out, err);

    if (rc == 0 && run.d->flags & DTN_RULE_INPLACE && out[0] != in[0])
        rc = dtn_op_fail(&run.d->call, err, "it works in place, but out[0] is "
                         "not in[0]");
    for (int i = 0; i < nout && rc == 0; i++)
        rc = output_check(&run, i, out, err);
    if (rc != 0 || nout == run.d->inferred.nout || !makes_all(&run))
        return rc == 0 ? run_all(&run, out, err) : rc;
    memcpy(run.d->bound->made, out, (size_t)nout * sizeof out[0]);
    rc = outputs_make(&run, nout, err);
    if (rc == 0)
        rc = run_all(&run, run.d->bound->made, err);
    outputs_drop(&run, nout);
    return rc;
}
