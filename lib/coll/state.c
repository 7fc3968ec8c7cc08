/* state.c - what this room keeps for a context
 *
 * dtensor_fini() ends the active requests with EINVAL and frees the
 * executables, whose scratch is in the arena.  Reductions made at run time hold
 * the context, so they are freed last: a program may destroy one after
 * dtensor_fini().
 */
#include "coll/state.h"
#include "base/ranks.h"
#include "coll/words.h"
#include "base/error.h"
#include "base/sparse.h"
#include "coll/choose.h"
#include "coll/exec.h"
#include "coll/execs.h"
#include "coll/record.h"
#include "coll/recorded.h"
#include "coll/redops.h"
#include "coll/request.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "dtensor.h"

#include <stdlib.h>

static void coll_finish(struct dtensor_ctx *ctx)
{
    struct dtn_coll_state *coll = dtn_coll_of(ctx);

    dtn_requests_abandon(ctx);
    dtn_exec_give_up(ctx);
    dtn_execs_clear(&coll->execs);
    dtn_models_destroy(coll->models);
    dtn_recorded_destroy(coll->recorded);
    dtn_words_destroy(ctx, coll->words);
    coll->models = NULL;
    coll->recorded = NULL;
    coll->words = NULL;
}

static void coll_destroy(void *state)
{
    struct dtn_coll_state *coll = state;

    dtn_redops_destroy(coll->redops);
    for (int i = 0; i < coll->nkept; i++)
        dtn_recorded_destroy(coll->kept[i]);
    dtn_sparse_free(coll->peers, coll->npeers, sizeof *coll->peers);
    free(coll);
}

int dtn_coll_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const size_t npeers = ctx->planning ? 0 : (size_t)ctx->world.size;
    struct dtn_coll_state *coll = calloc(1, sizeof *coll);

    if (coll)
        coll->peers = dtn_sparse_new(npeers, sizeof *coll->peers);
    if (!coll || !coll->peers) {
        free(coll);
        return dtn_fail_nomem(err, "init", npeers * sizeof *coll->peers);
    }
    coll->npeers = npeers;
    coll->everyone = dtn_ranks_all(ctx->world.size);
    ctx->describer = &dtn_coll_describer;
    ctx->slots[DTN_ROOM_COLL] = (struct dtn_slot){ coll, coll_finish,
                                                   coll_destroy };
    return 0;
}
