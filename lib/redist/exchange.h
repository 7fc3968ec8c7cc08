/* exchange.h - the exchange of a phase, on this rank */
#ifndef DTN_REDIST_EXCHANGE_H
#define DTN_REDIST_EXCHANGE_H

#include "redist/pieces.h"
#include "sched/exchange.h"
#include "dtensor.h"

struct dtn_group;
struct dtn_phase;
struct dtn_exec;
struct dtn_redist_step;
struct dtn_sched;

/* The fields that all exchanges of a phase over `group` have in common.  The
 * caller adds the counts, the windows and the pieces.
 */
struct dtn_exchange dtn_exchange_of(const char *name,
                                    const struct dtn_phase *phase,
                                    const struct dtn_group *group);

/* Set its pieces, which must live as long as the exchange is used. */
void dtn_exchange_pieces(struct dtn_exchange *exchange,
                         const struct dtn_pieces *received,
                         const struct dtn_pieces *sent);

/* Emit it and make it ready to run over the group.   Errors: ENOMEM */
int dtn_exchange_exec(const struct dtn_group *group,
                      const struct dtn_exchange *exchange,
                      struct dtn_exec **execp, struct dtensor_error *err);

/* The exchange of one step of a plan, with its pieces. */
struct dtn_step_exchange {
    struct dtn_exchange exchange;      /* names the pieces below              */
    struct dtn_pieces received;        /* by the rank, its own among them     */
    struct dtn_pieces sent;            /* to other ranks                      */
};

/* The part of a rank of the world; the exchange maps() for this rank. */
int dtn_step_exchange_init(const struct dtensor_plan *plan,
                           const struct dtn_redist_step *step, int rank,
                           struct dtn_step_exchange *x,
                           struct dtensor_error *err);
void dtn_step_exchange_fini(struct dtn_step_exchange *x);

/* The ranks of an exchange of the plan: of one mesh, or of both. */
const struct dtn_group *dtn_exchange_group(const struct dtensor_plan *plan,
                                           const struct dtn_phase *phase);

/* This rank's schedule of step i, which is an exchange over a group that
 * contains this rank.
 */
int dtn_exchange_emit(const struct dtensor_plan *plan, int i,
                      struct dtn_sched *sched, struct dtensor_error *err);

#endif
