/* terms.h - what the terms cost that an operator makes of whole inputs */
#ifndef DTN_OP_TERMS_H
#define DTN_OP_TERMS_H

#include "op/choose.h"
#include "op/combine.h"
#include "dtensor.h"

/* The least that it takes to reduce what a choice makes terms of, in ns by
 * `costs`; 0 if it makes none (struct dtn_option), or if terms cost nothing.
 */
double dtn_terms_cost(const struct dtn_options *options,
                      const struct dtn_tuple *choice,
                      const struct dtn_costs *costs);

#endif
