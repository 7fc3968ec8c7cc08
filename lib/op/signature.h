/* signature.h - the letters of one call: which dimensions are the same */
#ifndef DTN_OP_SIGNATURE_H
#define DTN_OP_SIGNATURE_H

#include "op/rule.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { DTN_WHOLE = -1 };          /* a dimension that is never sharded        */
enum { DTN_STARS = DTENSOR_MAX_DIMS, DTN_LETTERS = DTN_STARS + 26 };

/* An operand or a result of a call. */
struct dtn_operand {
    int ndim;                     /* tensor dimensions                        */
    int letter[DTENSOR_MAX_DIMS]; /* of each: 0 to 7 those of "*" from the    */
                                  /* left, then a to z; or DTN_WHOLE          */
    int inner[DTENSOR_MAX_DIMS];  /* of one that is never sharded: a number,  */
                                  /* shared with those that have to be        */
                                  /* sharded alike if it is; or DTN_WHOLE     */
    int64_t shape[DTENSOR_MAX_DIMS];  /* in elements                          */
    int sum;                      /* which term of a sum it is a factor of    */
    bool constant;                /* an output that is whole always           */
};

/* All of a call.  A list is one entry: all its operands are sharded alike. */
struct dtn_signature {
    const struct dtn_rule *rule;  /* that holds                               */
    const struct dtensor_op_call *call;          /* that it is made of        */
    int nin, nout;                /* entries of in and out                    */
    struct dtn_operand in[DTN_RULE_IN];          /* kinds of operands         */
    struct dtn_operand out[DTN_RULE_OUT];        /* kinds of results          */
    int nresults;                 /* outputs; more than nout: all as out[0]   */
    int nsums;                    /* terms of the sum, at least 1             */
    int64_t size[DTN_LETTERS];    /* of each letter; -1: it is not there      */
    unsigned char order[DTN_LETTERS]; /* in which rows of letters are made    */
    int nletters;                 /* entries of order                         */
    int ndims;                    /* dimensions that args.dim names           */
    int dim[DTENSOR_MAX_DIMS];    /* those, none negative                     */
};

/* Read the letters of a rule for a call.
 * Errors: EINVAL  number or shapes of the inputs, or args.dim, do not fit
 */
int dtn_signature_init(struct dtn_signature *sig, const struct dtn_rule *rule,
                       const struct dtensor_op_call *call,
                       struct dtensor_error *err);

/* The first input that has rows, which are dimensions that are never sharded;
 * 0: none.
 */
static inline int dtn_signature_rows(const struct dtn_signature *sig)
{
    for (int i = 0; i < sig->nin; i++)
        for (int d = 0; d < sig->in[i].ndim; d++)
            if (sig->in[i].inner[d] != DTN_WHOLE)
                return i;
    return 0;
}

/* Does args.dim name dimension d? */
static inline bool dtn_signature_names(const struct dtn_signature *sig, int d)
{
    for (int i = 0; i < sig->ndims; i++)
        if (sig->dim[i] == d)
            return true;
    return false;
}

#endif
