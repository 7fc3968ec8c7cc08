/* infer.h - from a call to how its inputs and outputs lie, without a cache */
#ifndef DTN_OP_INFER_H
#define DTN_OP_INFER_H

#include "op/choose.h"
#include "dtensor.h"

#include <stdbool.h>

/* What is inferred. */
struct dtn_inferred {
    int nout;                     /* outputs                                  */
    double cost;                  /* of all inputs together, by `costs`       */
    double terms;                 /* the least to reduce outputs that it      */
                                  /* makes terms of whole inputs; not in cost */
    const char *why;              /* these placements; static                 */
    unsigned collective;          /* mesh dimensions over which the operator  */
                                  /* reduces by itself, a bit set             */
    bool sums;                    /* `repro` leaves out rows of it: row.h     */
    struct dtensor_spec *want;    /* [nin] how inputs should lie              */
    struct dtensor_spec *out;     /* [nout] how outputs will lie              */
};

/* Infer; `costs` NULL: those of lib/redist.  What is pointed to is one block
 * that begins at `want`, for free().
 *
 * Errors: as dtensor_op_infer()
 */
int dtn_infer(const struct dtensor_op_call *call,
              const struct dtn_costs *costs, struct dtn_inferred *inferred,
              struct dtensor_error *err);

/* The signature and options of a call whose rule has letters; the caller frees
 * *optionsp, in which `rows` is used.
 */
int dtn_infer_options(const struct dtensor_op_call *call,
                      const struct dtn_rule *rule,
                      const struct dtn_costs *costs,
                      struct dtn_signature *sig, struct dtn_rowset *rows,
                      struct dtn_options **optionsp, struct dtensor_error *err);

#endif
