/* redops.c - reductions made at run time
 *
 * A reduction made at run time has a number, so a function that takes an enum
 * dtensor_redop takes it too.  The context gives the numbers: 0x10000, 0x10002,
 * ... are premultiplied sums, 0x10001, 0x10003, ... are functions of the
 * caller.  A number is not used again, so a call that uses a destroyed
 * reduction is recognised.  There are 2^30 numbers; a program that makes a
 * reduction every 100 us uses fewer than that in a day.  After the last number
 * the next reduction is refused.
 *
 * Ranks compare what a reduction does, not its number.  For a premultiplied sum
 * they compare the bits of its factor.  The address of a function says nothing,
 * so for functions they compare how many were made before, and the flags.
 */
#include "coll/redops.h"
#include "coll/repeat.h"
#include "base/array.h"
#include "base/dtype.h"
#include "base/error.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/call.h"
#include "dtensor.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

struct dtn_redops {
    int next;                     /* numbers given out, in steps of 2         */
    uint32_t functions;           /* functions made so far                    */
    int n, capacity;
    struct dtn_made_redop *made;  /* [n], sorted by number                    */
};

static int made_compare(const void *a, const void *b)
{
    const struct dtn_made_redop *x = a, *y = b;

    return (x->op > y->op) - (x->op < y->op);
}

/* The reduction of that number, or NULL. */
static const struct dtn_made_redop *made_find(const struct dtensor_ctx *ctx,
                                              enum dtensor_redop op)
{
    const struct dtn_redops *redops = dtn_coll_of(ctx)->redops;
    const struct dtn_made_redop key = { .op = op };

    if ((int)op < DTN_MADE_FIRST || !redops)
        return NULL;
    return bsearch(&key, redops->made, (size_t)redops->n, sizeof key,
                   made_compare);
}

/* Make room for one more. */
static int redops_grow(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_redops *redops = dtn_coll_of(ctx)->redops;

    if (!redops) {
        dtn_coll_of(ctx)->redops = redops = calloc(1, sizeof *redops);
        if (!redops)
            return dtn_fail_nomem(err, "reduction", sizeof *redops);
    }
    return dtn_array_reserve(&redops->made, &redops->capacity, redops->n + 1,
                             sizeof *redops->made)
         ? 0 : dtn_fail_nomem(err, "reduction", sizeof *redops->made);
}

static int made_add(struct dtensor_ctx *ctx, struct dtn_made_redop made,
                    int kind, enum dtensor_redop *opp,
                    struct dtensor_error *err)
{
    struct dtn_redops *redops;
    int rc = ctx->finished ? dtn_ctx_check(ctx, err) : redops_grow(ctx, err);

    if (rc != 0)
        return rc;
    redops = dtn_coll_of(ctx)->redops;
    if (redops->next > DTENSOR_REDOP_LAST - DTN_MADE_FIRST - 1)
        return dtn_fail(err, DTENSOR_EINVAL, "reduction: all %d numbers were "
                        "used (make reductions once, not for every call)",
                        redops->next / 2);
    made.op = (enum dtensor_redop)(DTN_MADE_FIRST + redops->next + kind);
    redops->next += 2;
    redops->made[redops->n++] = made;
    dtn_ctx_hold(ctx);
    *opp = made.op;
    return 0;
}

int dtensor_redop_premul(struct dtensor_ctx *ctx, double factor,
                         enum dtensor_redop *opp, struct dtensor_error *err)
{
    const struct dtn_made_redop made = {
        .factor = factor, .flags = DTENSOR_ASSOCIATIVE | DTENSOR_COMMUTATIVE,
        .hash = XXH3_64bits(&factor, sizeof factor)
    };

    return made_add(ctx, made, 0, opp, err);
}

int dtensor_redop_create(struct dtensor_ctx *ctx, dtensor_reduce_f *fn,
                         void *arg, unsigned flags, enum dtensor_redop *opp,
                         struct dtensor_error *err)
{
    struct dtn_made_redop made = { .fn = fn, .arg = arg, .flags = flags };
    const struct dtn_redops *redops = dtn_coll_of(ctx)->redops;
    int rc;

    if (!fn)
        return dtn_fail(err, DTENSOR_EINVAL, "reduction: no function was "
                        "given");
    if (flags & ~(unsigned)(DTENSOR_ASSOCIATIVE | DTENSOR_COMMUTATIVE))
        return dtn_fail(err, DTENSOR_EINVAL, "reduction: flags 0x%x; expected "
                        "DTENSOR_ASSOCIATIVE, DTENSOR_COMMUTATIVE or both",
                        flags);
    made.hash = redops ? redops->functions : 0;
    made.hash = XXH3_64bits_withSeed(&made.hash, sizeof made.hash, flags);
    rc = made_add(ctx, made, DTN_MADE_USER, opp, err);
    if (rc == 0)
        dtn_coll_of(ctx)->redops->functions++;
    return rc;
}

void dtensor_redop_destroy(struct dtensor_ctx *ctx, enum dtensor_redop op)
{
    struct dtn_redops *redops = dtn_coll_of(ctx)->redops;
    const struct dtn_made_redop *made = made_find(ctx, op);
    ptrdiff_t i;

    if (!made)
        return;
    i = made - redops->made;
    redops->n--;
    memmove(redops->made + i, redops->made + i + 1,
            (size_t)(redops->n - i) * sizeof *made);
    dtn_ctx_release(ctx);
}

void dtn_redops_destroy(struct dtn_redops *redops)
{
    if (redops)
        free(redops->made);
    free(redops);
}

void dtn_redops_skip(struct dtensor_ctx *ctx, int numbers)
{
    dtn_coll_of(ctx)->redops->next += numbers;
}

void dtensor_set_repro(struct dtensor_ctx *ctx, int on)
{
    ctx->world.cluster->repro = on != 0;
    dtn_repeats_clear(dtn_coll_of(ctx));
}

/* ---------------------------------------------------------------- calls --- */

/* A premultiplied sum needs floats; a function of the caller takes every dtype.
 */
static int made_check(const struct dtn_call *call, bool repro,
                      struct dtensor_error *err)
{
    const char *name = dtn_coll_name(call->coll);

    if (!call->made)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: there is no reduction 0x%x "
                        "(destroyed, or made by another context)", name,
                        (unsigned)call->redop);
    if (!call->made->fn && !dtn_dtype_is_float(call->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: no premultiplied sum for %s "
                        "(factors are for floats and complex numbers)", name,
                        dtensor_dtype_name(call->dtype));
    if (repro && !(call->made->flags & DTENSOR_ASSOCIATIVE))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: this reduction is not "
                        "declared associative, which repro needs (give "
                        "DTENSOR_ASSOCIATIVE to dtensor_redop_create, if it is "
                        "so)", name);
    return 0;
}

int dtn_call_resolve(const struct dtensor_ctx *ctx, struct dtn_call *call,
                     struct dtensor_error *err)
{
    const unsigned any_order = DTENSOR_ASSOCIATIVE | DTENSOR_COMMUTATIVE;
    const bool repro = ctx->world.cluster->repro;

    call->ordered = repro;
    if (!dtn_coll_infos[call->coll].reduces)
        return 0;
    call->made = made_find(ctx, call->redop);
    call->ordered = repro || (call->made && call->made->flags != any_order);
    if ((int)call->redop >= DTN_MADE_FIRST)
        return made_check(call, repro, err);
    if ((int)call->redop < 0 || call->redop >= DTENSOR_NREDOPS)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: there is no reduction %d",
                        dtn_coll_name(call->coll), (int)call->redop);
    if (!dtn_redop_ok(call->redop, call->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: no reduction %s for %s (bit "
                        "operations need integers; not all types have an "
                        "average or an order)", dtn_coll_name(call->coll),
                        dtensor_redop_name(call->redop),
                        dtensor_dtype_name(call->dtype));
    return 0;
}
