/* cache.c - the decisions that a context keeps
 *
 * An LRU cache of 256 decisions.  A decision is found by the name of the
 * operator, by how its inputs lie, and by the arguments that its rule reads: a
 * factor, say, is not among them, so another factor finds the same decision.
 * The last decision is compared first, which costs some 30 ns for each input;
 * a decision that is made costs some microseconds.
 */
#include "op/cache.h"
#include "op/args.h"
#include "op/rule.h"
#include "op/words.h"
#include "base/error.h"
#include "base/log.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists of many tensors make large decisions. */
enum { DECISIONS_BYTES = 8 << 20 };

/* What a context keeps. */
struct decisions {
    struct dtn_lru lru;                          /* the decisions             */
    uint64_t hits, misses;                       /* for dtensor_op_cache()    */
};

static struct decisions *decisions_of(const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_OP].state;
}

/* ----------------------------------------------------------------- keys --- */

static bool decision_is(const struct dtn_lru_entry *entry, const void *key)
{
    const struct dtn_decision *d = (const struct dtn_decision *)entry;
    const struct dtensor_op_call *call = key;

    if (d->call.nin != call->nin || strcmp(d->op, call->op) != 0 ||
        !dtn_args_equal(&d->call.args, &call->args, d->reads))
        return false;
    for (int i = 0; i < call->nin; i++)
        if (!dtn_spec_equal(&d->in[i], &call->in[i]))
            return false;
    return true;
}

static uint64_t decision_hash(const void *key)
{
    const struct dtensor_op_call *call = key;
    uint64_t hash = (uint64_t)call->nin;

    for (const char *c = call->op; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    for (int i = 0; i < call->args.ndims && i < DTENSOR_MAX_DIMS; i++)
        hash = hash * 31 + (unsigned)call->args.dim[i];
    for (int i = 0; i < call->nin; i++)
        hash = dtn_spec_hash(&call->in[i], hash);
    return hash;
}

static void decision_destroy(struct dtn_lru_entry *entry)
{
    struct dtn_decision *d = (struct dtn_decision *)entry;

    free(d->inferred.want);
    free(d);
}

static const struct dtn_lru_kind decisions_kind = {
    decision_hash, decision_is, decision_destroy
};

/* Can the call be compared and hashed?  The rest is checked on a miss. */
static bool comparable(const struct dtensor_op_call *call)
{
    if (!call->op || call->nin < 1 || !call->in)
        return false;
    for (int i = 0; i < call->nin; i++)
        if (!call->in[i].mesh || call->in[i].ndim < 0 ||
            call->in[i].ndim > DTENSOR_MAX_DIMS)
            return false;
    return true;
}

/* ------------------------------------------------------------- the room --- */

static void decisions_destroy(void *state)
{
    struct decisions *decisions = state;

    dtn_lru_clear(&decisions->lru, &decisions_kind);
    free(decisions);
}

static int decisions_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct decisions *decisions = decisions_of(ctx);

    if (decisions)
        return 0;
    decisions = calloc(1, sizeof *decisions);
    if (!decisions)
        return dtn_fail_nomem(err, "op", sizeof *decisions);
    ctx->slots[DTN_ROOM_OP] = (struct dtn_slot){
        .state = decisions, .destroy = decisions_destroy };
    return 0;
}

/* --------------------------------------------------------------- misses --- */

/* The call as the decision keeps it: lengths that were chosen belong to the
 * context then, and not to the caller.
 */
static int decision_keep(struct dtn_decision *d,
                         const struct dtensor_op_call *call,
                         struct dtensor_error *err)
{
    int rc = 0;

    d->call = *call;
    d->call.op = d->op;
    d->call.in = d->in;
    snprintf(d->op, sizeof d->op, "%s", call->op);
    for (int i = 0; i < call->nin && rc == 0; i++) {
        d->in[i] = call->in[i];
        rc = dtensor_spec_normalize(&d->in[i], err);
    }
    return rc;
}

static int decision_make(const struct dtensor_op_call *call,
                         struct dtn_decision **dp, struct dtensor_error *err)
{
    const size_t nin = (size_t)call->nin;
    const struct dtn_rule *rule;
    struct dtn_decision *d;
    int rc = dtn_rule_of(call, &rule, err);

    if (rc != 0)
        return rc;
    d = calloc(1, sizeof *d + nin * sizeof d->in[0]);
    if (!d)
        return dtn_fail_nomem(err, "op", sizeof *d);
    d->reads = rule->reads;
    rc = decision_keep(d, call, err);
    if (rc == 0)
        rc = dtn_infer(&d->call, NULL, &d->inferred, err);
    if (rc != 0) {
        free(d);
        return rc;
    }
    d->entry.bytes = sizeof *d + (2 * nin + (size_t)d->inferred.nout) *
                                 sizeof d->in[0];
    *dp = d;
    return 0;
}

/* "op: matmul of ...: input 1 to R, 3.2 us" for each input that is moved. */
static void decision_log(struct dtensor_ctx *ctx, const struct dtn_decision *d)
{
    char call[300], to[200];

    if (ctx->log.level < DTN_LOG_DEBUG)
        return;
    dtn_op_words(&d->call, call, sizeof call);
    dtn_log(&ctx->log, DTN_LOG_DEBUG, "op: %s: decided, %.2f us (%s)", call,
            d->inferred.cost / 1e3, d->inferred.why);
    for (int i = 0; i < d->call.nin; i++) {
        const struct dtensor_spec *want = &d->inferred.want[i];

        if (dtn_spec_equal(&d->in[i], want))
            continue;
        dtensor_placements_format(want->mesh, want->placement, to, sizeof to);
        dtn_log(&ctx->log, DTN_LOG_DEBUG, "op: %s: input %d to %s", d->op, i,
                to);
    }
}

int dtn_decide(const struct dtensor_op_call *call,
               const struct dtn_decision **decisionp,
               struct dtensor_error *err)
{
    struct dtn_inferred none;
    struct dtensor_ctx *ctx;
    struct decisions *decisions;
    struct dtn_decision *d = NULL;
    int rc;

    if (!comparable(call))
        return dtn_infer(call, NULL, &none, err);      /* says why            */
    ctx = call->in[0].mesh->ctx;
    decisions = decisions_of(ctx);
    if (decisions) {
        *decisionp = (const struct dtn_decision *)dtn_lru_find(
            &decisions->lru, &decisions_kind, call);
        decisions->hits += *decisionp != NULL;
        if (*decisionp)
            return 0;
    }
    rc = decision_make(call, &d, err);
    if (rc != 0)
        return rc;
    rc = decisions_init(ctx, err);
    if (rc != 0) {
        decision_destroy(&d->entry);
        return rc;
    }
    decisions = decisions_of(ctx);
    decisions->misses++;
    decision_log(ctx, d);
    dtn_lru_add(&decisions->lru, &decisions_kind, call, &d->entry,
                DECISIONS_BYTES);
    *decisionp = d;
    return 0;
}

/* --------------------------------------------------------------- public --- */

int dtensor_op_infer(const struct dtensor_op_call *call,
                     struct dtensor_spec want[], int nout,
                     struct dtensor_spec out[], struct dtensor_op_info *info,
                     struct dtensor_error *err)
{
    const struct dtn_decision *d;
    int rc;

    if (!call || !want || !out || !info)
        return dtn_fail(err, DTENSOR_EINVAL, "op: %s is NULL", !call ? "call"
                        : !want ? "want" : !out ? "out" : "info");
    rc = dtn_decide(call, &d, err);
    if (rc != 0)
        return rc;
    if (d->inferred.nout > nout)
        return dtn_op_fail(call, err, "there are %d outputs, but room for %d "
                           "(give an array of %d)", d->inferred.nout, nout,
                           d->inferred.nout);
    memcpy(want, d->inferred.want, (size_t)call->nin * sizeof want[0]);
    memcpy(out, d->inferred.out, (size_t)d->inferred.nout * sizeof out[0]);
    *info = (struct dtensor_op_info){ .nout = d->inferred.nout,
                                      .predicted_us = d->inferred.cost / 1e3,
                                      .why = d->inferred.why };
    return 0;
}

void dtensor_op_cache(const struct dtensor_ctx *ctx,
                      struct dtensor_op_cache *cache)
{
    const struct decisions *decisions = decisions_of(ctx);

    *cache = (struct dtensor_op_cache){ .limit = DTN_LRU_LIMIT };
    if (!decisions)
        return;
    cache->hits = decisions->hits;
    cache->misses = decisions->misses;
    cache->dropped = decisions->lru.dropped;
    cache->entries = decisions->lru.n;
}
