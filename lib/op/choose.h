/* choose.h - the cheapest combination that an operator accepts */
#ifndef DTN_OP_CHOOSE_H
#define DTN_OP_CHOOSE_H

#include "op/combine.h"
#include "redist/cost.h"
#include "dtensor.h"

#include <stdbool.h>

/* How costs are found: that of a redistribute from src to dst, or any number
 * from the limit on if it is not below it; a lower bound of it; that of an
 * allreduce of `bytes` along mesh dimensions, which an operator makes itself;
 * and the least that it takes to reduce terms which an operator makes.
 */
typedef double dtn_cost_f(const void *arg, const struct dtensor_spec *src,
                          const struct dtensor_spec *dst, double limit);
typedef double dtn_least_f(const void *arg, const struct dtensor_spec *src,
                           const struct dtensor_placement dst[]);
typedef double dtn_allreduce_cost_f(const void *arg,
                                    const struct dtensor_mesh *mesh,
                                    unsigned dims, double bytes);
struct dtn_costs {
    dtn_cost_f *cost;             /* of a redistribute                        */
    dtn_least_f *least;           /* no cost is below this                    */
    dtn_allreduce_cost_f *allreduce;             /* NULL: operators reduce    */
                                                 /* nothing by themselves     */
    dtn_least_f *terms;           /* NULL: terms cost nothing                 */
    const void *arg;              /* for all                                  */
    bool whole;                   /* no rounded sums of parts: DTN_ROWS_WHOLE */
};

/* By the model of lib/redist; its constants are kept in *model.  Under `repro`
 * operators reduce nothing by themselves and make no terms of floats, since a
 * sum of parts depends on how a row is sharded.
 */
struct dtn_costs_of {
    struct dtn_cost cost;         /* its constants for the mesh               */
    struct dtn_cost_kept kept;    /* what was computed with them              */
};
void dtn_costs_model(const struct dtensor_mesh *mesh,
                     struct dtn_costs_of *model, struct dtn_costs *costs);

/* What was chosen. */
struct dtn_chosen {
    struct dtn_tuple choice;     /* the options                              */
    double cost;                  /* of all inputs together, and what the     */
                                  /* operator reduces; ns by the model.       */
                                  /* HUGE_VAL: it is taken since there is no  */
                                  /* other (DTN_ALL)                          */
    double terms;                 /* the least to reduce what it makes terms  */
    const char *why;              /* in words; static                         */
};

/* Choose: the last combination that moves nothing; else the cheapest with its
 * terms, of equal ones the first.
 * Errors: EINVAL  no combination is accepted;  ENOMEM
 */
int dtn_choose_options(const struct dtn_options *options,
                       const struct dtn_costs *costs, struct dtn_chosen *chosen,
                       struct dtensor_error *err);

/* The cost of one combination with its terms; HUGE_VAL: it is taken only if
 * there is no other.
 */
double dtn_choice_cost(const struct dtn_options *options,
                       const struct dtn_tuple *choice,
                       const struct dtn_costs *costs);

#endif
