/* cache.c - the decisions that a context keeps
 *
 * An LRU cache of 256 decisions.  A decision is found by the name of the
 * operator, by how its inputs lie, and by the arguments that its rule reads: a
 * factor, say, is not among them, so another factor finds the same decision.
 * The last decision is compared first, which costs some 30 ns for each input;
 * a decision that is made costs some microseconds.
 */
#include "op/cache.h"
#include "op/kernels.h"
#include "op/args.h"
#include "op/bound.h"
#include "op/rule.h"
#include "op/words.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "layout/spec.h"
#include "math/room.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists of many tensors make large decisions. */
enum { DECISIONS_BYTES = 8 << 20 };

enum { WORK_ALIGN = 64 };         /* of memory to work with, in bytes         */

enum { KINDS = DTENSOR_CUDA + 1 };

/* Memory that is kept for the next run. */
struct kept {
    void *mem;                                   /* NULL: none yet            */
    size_t size;                                 /* bytes                     */
};

/* What a context keeps. */
struct decisions {
    struct dtn_lru lru;                          /* the decisions             */
    uint64_t hits, misses;                       /* for dtensor_op_cache()    */
    enum dtensor_implied implied;                /* dtensor_op_implied()      */
    struct kept scratch[KINDS];                  /* by enum dtensor_memory    */
    struct kept work;                            /* of local functions        */
    void *room;                                  /* dtn_op_math_room()        */
};

static struct decisions *decisions_of(const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_OP].state;
}

/* ----------------------------------------------------------------- keys --- */

static const struct dtensor_spec *key_in(const struct dtn_op_key *key, int i)
{
    return key->tensor ? &key->tensor[i]->spec : &key->in[i];
}

/* It changes what may be decided, and can be switched between two calls. */
static bool key_repro(const struct dtn_op_key *key)
{
    return key_in(key, 0)->mesh->ctx->world.cluster->repro;
}

/* Is input i as the decision has it?  Tensors that it was found for last are
 * not compared again: how a tensor lies never changes.
 */
static bool decision_fits(const struct dtn_decision *d,
                          const struct dtn_op_key *key, int i)
{
    if (!key->tensor)
        return dtn_spec_equal(&d->in[i], &key->in[i]);
    return (d->last[i] == key->tensor[i]->first &&
            d->in[i].mesh == key->tensor[i]->spec.mesh) ||
           dtn_spec_equal(&d->in[i], &key->tensor[i]->spec);
}

static bool decision_is(const struct dtn_lru_entry *entry, const void *of)
{
    const struct dtn_decision *d = (const struct dtn_decision *)entry;
    const struct dtn_op_key *key = of;

    if (d->call.nin != key->nin || strcmp(d->op, key->op) != 0 ||
        !dtn_args_equal(&d->call.args, key->args, d->reads) ||
        (d->collective && d->repro != key_repro(key)))
        return false;
    for (int i = 0; i < key->nin; i++)
        if (!decision_fits(d, key, i))
            return false;
    return true;
}

static void decision_last(struct dtn_decision *d, const struct dtn_op_key *key)
{
    for (int i = 0; i < key->nin && key->tensor; i++)
        d->last[i] = key->tensor[i]->first;
}

static uint64_t decision_hash(const void *of)
{
    const struct dtn_op_key *key = of;
    uint64_t hash = (uint64_t)key->nin;

    for (const char *c = key->op; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    for (int i = 0; i < key->args->ndims && i < DTENSOR_MAX_DIMS; i++)
        hash = hash * 31 + (unsigned)key->args->dim[i];
    for (int i = 0; i < key->nin; i++)
        hash = dtn_spec_hash(key_in(key, i), hash);
    return hash;
}

static void decision_destroy(struct dtn_lru_entry *entry)
{
    struct dtn_decision *d = (struct dtn_decision *)entry;

    free(d->inferred.want);
    free(d->bound);
    free(d);
}

static const struct dtn_lru_kind decisions_kind = {
    decision_hash, decision_is, decision_destroy
};

/* Can the call be compared and hashed?  The rest is checked on a miss. */
static bool comparable(const struct dtn_op_key *key)
{
    if (!key->op || key->nin < 1 || (!key->in && !key->tensor))
        return false;
    for (int i = 0; i < key->nin && !key->tensor; i++)
        if (!key->in[i].mesh || key->in[i].ndim < 0 ||
            key->in[i].ndim > DTENSOR_MAX_DIMS)
            return false;
    return true;
}

/* ------------------------------------------------------------- the room --- */

static void decisions_destroy(void *state)
{
    struct decisions *decisions = state;

    dtn_lru_clear(&decisions->lru, &decisions_kind);
    free(decisions->work.mem);
    free(decisions->room);
    free(decisions);
}

/* By dtensor_fini(): the scratch is memory of the arena. */
static void decisions_finish(struct dtensor_ctx *ctx)
{
    struct decisions *decisions = decisions_of(ctx);

    for (int i = 0; i < KINDS; i++) {
        if (decisions->scratch[i].mem)
            dtn_ctx_free(ctx, decisions->scratch[i].mem);
        decisions->scratch[i].mem = NULL;
        decisions->scratch[i].size = 0;
    }
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
        .state = decisions, .finish = decisions_finish,
        .destroy = decisions_destroy };
    return 0;
}

void dtn_decisions_forget(struct dtensor_ctx *ctx)
{
    if (decisions_of(ctx))
        dtn_lru_clear(&decisions_of(ctx)->lru, &decisions_kind);
}

/* Both only grow, so that calls that are repeated allocate nothing. */
int dtn_op_scratch(const struct dtensor_mesh *mesh, size_t size, void **memp,
                   struct dtensor_error *err)
{
    struct kept *kept = &decisions_of(mesh->ctx)->scratch[mesh->memory];
    int rc;

    if (size > kept->size) {
        if (kept->mem)
            dtn_ctx_free(mesh->ctx, kept->mem);
        *kept = (struct kept){ NULL, 0 };
        rc = dtn_ctx_alloc(mesh->ctx, mesh->memory, "op", size, &kept->mem,
                           err);
        if (rc != 0)
            return rc;
        kept->size = size;
    }
    *memp = kept->mem;
    return 0;
}

int dtn_op_workspace(const struct dtensor_mesh *mesh, size_t size, void **memp,
                     struct dtensor_error *err)
{
    struct kept *kept = &decisions_of(mesh->ctx)->work;

    if (size > kept->size) {
        free(kept->mem);
        *kept = (struct kept){ aligned_alloc(WORK_ALIGN, size), size };
        if (!kept->mem)
            kept->size = 0;
        if (!kept->mem)
            return dtn_fail_nomem(err, "op", size);
    }
    *memp = kept->mem;
    return 0;
}

void *dtn_op_math_room(struct dtensor_ctx *ctx)
{
    struct decisions *decisions = decisions_of(ctx);

    if (!decisions->room)
        decisions->room = aligned_alloc(WORK_ALIGN, DTN_ROOM_BYTES);
    return decisions->room;
}

enum dtensor_implied dtn_op_implied(const struct dtensor_ctx *ctx)
{
    const struct decisions *decisions = decisions_of(ctx);

    return decisions ? decisions->implied : DTENSOR_IMPLIED_ALLOWED;
}

int dtensor_op_implied(struct dtensor_ctx *ctx, enum dtensor_implied implied,
                       struct dtensor_error *err)
{
    int rc;

    if ((unsigned)implied > DTENSOR_IMPLIED_REFUSED)
        return dtn_fail(err, DTENSOR_EINVAL, "op_implied: there is no %d (see "
                        "enum dtensor_implied)", (int)implied);
    rc = decisions_init(ctx, err);
    if (rc == 0)
        decisions_of(ctx)->implied = implied;
    return rc;
}

/* --------------------------------------------------------------- misses --- */

/* The call as the decision keeps it: lengths that were chosen belong to the
 * context then, and not to the caller.
 */
static int decision_keep(struct dtn_decision *d, const struct dtn_op_key *key,
                         struct dtensor_error *err)
{
    int rc = 0;

    d->call = (struct dtensor_op_call){ .op = d->op, .nin = key->nin,
                                        .in = d->in, .args = *key->args };
    snprintf(d->op, sizeof d->op, "%s", key->op);
    for (int i = 0; i < key->nin && rc == 0; i++) {
        d->in[i] = *key_in(key, i);
        rc = dtensor_spec_normalize(&d->in[i], err);
    }
    return rc;
}

/* The rule, by the name as it was given: the decision has its beginning. */
static int decision_rule(struct dtn_decision *d, const char *op,
                         struct dtensor_error *err)
{
    struct dtensor_op_call call = d->call;
    const struct dtn_rule *rule;
    int rc;

    call.op = op;
    rc = dtn_rule_of(&call, &rule, err);
    if (rc != 0)
        return rc;
    d->reads = rule->reads;
    d->flags = rule->flags;
    d->collective = rule->collective != NULL;
    return 0;
}

static int decision_make(const struct dtn_op_key *key,
                         struct dtn_decision **dp, struct dtensor_error *err)
{
    const size_t nin = (size_t)key->nin;
    struct dtn_decision *d = calloc(1, sizeof *d + nin * (sizeof d->in[0] +
                                                          sizeof *d->last));
    int rc;

    if (!d)
        return dtn_fail_nomem(err, "op", sizeof *d);
    d->last = (uint64_t *)(d->in + nin);
    rc = decision_keep(d, key, err);
    if (rc == 0)
        rc = decision_rule(d, key->op, err);
    d->repro = key_repro(key);
    if (rc == 0)
        rc = dtn_infer(&d->call, NULL, &d->inferred, err);
    d->collective = d->collective || d->inferred.sums;
    if (rc != 0) {
        free(d);
        return rc;
    }
    d->entry.bytes = sizeof *d + (2 * nin + (size_t)d->inferred.nout) *
                                 sizeof d->in[0];
    *dp = d;
    return 0;
}

/* "op: matmul of ...: decided", or "found". */
static void decision_log(struct dtensor_ctx *ctx, const struct dtn_decision *d,
                         const char *how)
{
    char call[300];

    if (ctx->log.level < DTN_LOG_DEBUG)
        return;
    dtn_op_words(&d->call, call, sizeof call);
    dtn_log(&ctx->log, DTN_LOG_DEBUG, "op: %s: %s, %.2f us to redistribute "
            "(%s)", call, how, d->inferred.cost / 1e3, d->inferred.why);
}

/* Why a call that has no mesh to keep it in cannot be. */
static int decide_refused(const struct dtn_op_key *key,
                          struct dtensor_error *err)
{
    const struct dtensor_op_call call = { .op = key->op, .nin = key->nin,
                                          .in = key->in, .args = *key->args };
    struct dtn_inferred none;

    return dtn_infer(&call, NULL, &none, err);
}

int dtn_decide(const struct dtn_op_key *key, struct dtn_decision **decisionp,
               struct dtensor_error *err)
{
    struct dtensor_ctx *ctx;
    struct decisions *decisions;
    struct dtn_decision *d = NULL;
    int rc;

    if (!comparable(key))
        return decide_refused(key, err);
    ctx = key_in(key, 0)->mesh->ctx;
    decisions = decisions_of(ctx);
    if (decisions)
        d = (struct dtn_decision *)dtn_lru_find(&decisions->lru,
                                                &decisions_kind, key);
    if (d) {
        decisions->hits++;
        decision_last(d, key);
        decision_log(ctx, d, "found");
        *decisionp = d;
        return 0;
    }
    rc = decision_make(key, &d, err);
    if (rc != 0)
        return rc;
    rc = decisions_init(ctx, err);
    if (rc != 0) {
        decision_destroy(&d->entry);
        return rc;
    }
    decisions = decisions_of(ctx);
    decisions->misses++;
    decision_log(ctx, d, "decided");
    dtn_lru_add(&decisions->lru, &decisions_kind, key, &d->entry,
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
    struct dtn_decision *d;
    struct dtn_op_key key;
    size_t scratch;
    int rc;

    if (!call || !want || !out || !info)
        return dtn_fail(err, DTENSOR_EINVAL, "op: %s is NULL", !call ? "call"
                        : !want ? "want" : !out ? "out" : "info");
    key = (struct dtn_op_key){ call->op, call->nin, call->in, NULL,
                               &call->args };
    rc = dtn_decide(&key, &d, err);
    if (rc != 0)
        return rc;
    if (d->inferred.nout > nout)
        return dtn_op_fail(call, err, "there are %d outputs, but room for %d "
                           "(give an array of %d)", d->inferred.nout, nout,
                           d->inferred.nout);
    rc = dtn_bound_bytes(d, &scratch, err);
    if (rc != 0)
        return rc;
    if (d->kernels == 0)
        d->kernels = dtn_op_infers_kernels(d) ? 1 : -1;
    memcpy(want, d->inferred.want, (size_t)call->nin * sizeof want[0]);
    memcpy(out, d->inferred.out, (size_t)d->inferred.nout * sizeof out[0]);
    *info = (struct dtensor_op_info){ .nout = d->inferred.nout,
                                      .predicted_us = d->inferred.cost / 1e3,
                                      .reduces = d->inferred.collective,
                                      .scratch_bytes = scratch,
                                      .kernels = d->kernels > 0,
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
