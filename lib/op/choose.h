/* choose.h - the cheapest combination that an operator accepts */
#ifndef DTN_OP_CHOOSE_H
#define DTN_OP_CHOOSE_H

#include "op/combine.h"
#include "dtensor.h"

/* How costs are found: that of a redistribute from src to dst, HUGE_VAL if it
 * is never done for an operator; and a lower bound of it.  Both of `arg`.
 */
typedef double dtn_cost_f(const void *arg, const struct dtensor_spec *src,
                          const struct dtensor_spec *dst);
struct dtn_costs {
    dtn_cost_f *cost;             /* of a redistribute                        */
    dtn_cost_f *least;            /* no cost is below this                    */
    const void *arg;              /* for both                                 */
};

/* By the model of lib/redist; `arg` is the struct dtn_cost of the mesh. */
dtn_cost_f dtn_cost_model, dtn_cost_model_least;

/* What was chosen. */
struct dtn_chosen {
    struct dtn_tuple choice;     /* the options                              */
    double cost;                  /* of all inputs together; ns by the model  */
    const char *why;              /* in words; static                         */
};

/* Choose: the last combination that moves nothing; else the cheapest, of equal
 * ones the first.
 * Errors: EINVAL  no combination is accepted;  ENOMEM
 */
int dtn_choose_options(const struct dtn_options *options,
                       const struct dtn_costs *costs, struct dtn_chosen *chosen,
                       struct dtensor_error *err);

/* The cost of one combination. */
double dtn_choice_cost(const struct dtn_options *options,
                       const struct dtn_tuple *choice,
                       const struct dtn_costs *costs);

#endif
