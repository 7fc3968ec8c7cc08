/* rule.h - the rules of operators, as data */
#ifndef DTN_OP_RULE_H
#define DTN_OP_RULE_H

#include "dtensor.h"

#include <stdbool.h>

/* Most kinds of operands and results that a rule tells apart.  A list, as of
 * cat, is one kind.
 */
enum { DTN_RULE_IN = 8, DTN_RULE_OUT = 4 };

/* How rows are found. */
enum dtn_engine {
    DTN_BY_LETTERS,               /* from the letters of the rule             */
    DTN_BY_GATHER,                /* from letters, and one row that masks     */
    DTN_BY_VIEW,                  /* a map of dimensions: view.c              */
    DTN_BY_STACK                  /* what all operands can become: stack.c    */
};

/* What else holds for an operator; a bit set. */
enum {
    DTN_RULE_SMALL = 1,           /* parts may be empty that are so already   */
    DTN_RULE_INPLACE = 2,         /* the result is the first operand, which   */
                                  /* stays as it lies                         */
    DTN_RULE_LIST = 4,            /* the last operand is a list of any length */
    DTN_RULE_EVEN = 8,            /* reduced dimensions are sharded evenly;   */
                                  /* all, if args.dim is not read             */
    DTN_RULE_STAYS = 16,          /* nothing is moved for it                  */
    DTN_RULE_PLAIN = 32,          /* rows that shard are there though no      */
                                  /* input is sharded, and by S only; if      */
                                  /* args.dim is read, those along it         */
    DTN_RULE_LOOSE = 64,          /* where sizes differ nothing is sharded    */
    DTN_RULE_STAR_LAST = 128,     /* rows of "*" come after those of letters  */
    DTN_RULE_LOCAL_PICK = 256,    /* a reduced dimension that is sharded is   */
                                  /* gathered, or reduced by itself (argmax)  */
    DTN_RULE_ONE = 512,           /* args.dim has one entry                   */
    DTN_RULE_GAPLESS = 1024,      /* rows of `collective` by S only: each     */
                                  /* rank then has neighbouring indices       */
    DTN_RULE_ALL = 2048,          /* all outputs are made, also those that    */
                                  /* the caller did not ask for               */
    DTN_RULE_TAPED = 4096         /* the same while a tape is active, whose   */
                                  /* backward reads them                      */
};

/* Arguments that an operator reads; a bit set.  They are part of its key. */
enum {
    DTN_ARG_DIM = 1, DTN_ARG_KEEP = 2, DTN_ARG_SHAPE = 4, DTN_ARG_COUNT = 8,
    DTN_ARG_RANGE = 16, DTN_ARG_P = 32, DTN_ARG_VALUE = 64, DTN_ARG_DTYPE = 128,
    DTN_ARG_REDUCTION = 256
};

/* The size that an output has along the dimensions of args.dim. */
enum dtn_size {
    DTN_SIZE_SAME,                /* that of the first input                  */
    DTN_SIZE_SUM,                 /* of all inputs together                   */
    DTN_SIZE_COUNT,               /* args.count                               */
    DTN_SIZE_COUNTED,             /* as SAME, but args.count is a place in it */
    DTN_SIZE_PIECE,               /* args.count, what is left in the last     */
    DTN_SIZE_RANGE,               /* from args.start to args.end              */
    DTN_SIZE_PAD,                 /* with args.start and args.end more        */
    DTN_SIZE_INDEX                /* all sizes are those of the second input  */
};

struct dtn_rule;

/* Which rule of a family holds for a call: the part of its name after "/". */
typedef const char *dtn_variant_f(const struct dtensor_op_call *call);

/* A rule.
 *
 * `letters` has an operand for each input and output, "mk,kn->mn", and in an
 * operand for each dimension:
 *   a letter   a dimension.  In inputs and output it may be sharded; if it is
 *              missing in the output and sharded, the output is a term; inputs
 *              without it are whole.  A capital is never sharded.
 *   *          all dimensions left over, aligned at the right, of size 1 where
 *              an operand lacks them: a letter for each
 *   *!         the same, but those of args.dim are never sharded
 *   *-         the same without those of args.dim (or with size 1: args.keep)
 *   *&i        the same with the letter i in place of args.dim
 *   *&#        the same with all dimensions of the index there: placed.h
 *   #          all dimensions of an index, a letter for each; one operand for
 *              each dimension of args.dim
 *   #!         the same, but they are never sharded
 *   @          args.count dimensions that are never sharded; all that are left,
 *              in an operand without *
 *   1          a dimension of size 1
 *   .          an output that is whole, whatever is sharded
 * "+" between inputs, for ",": the terms of a sum.  "~" before an operand: its
 * dimensions may be 1, or lack at the left.
 *
 * `terms` has rows with terms, "s.>s .s>s": of each input and output s sum, a
 * average, x maximum, n minimum, p product; L stands for s and a, A for s, a, x
 * and n, one row each; . is a replica.  Averages of integers are rounded, so
 * that rows with a and L do not have them; A copies.
 *
 * `types` has the dtype of each input and output.  The common one is t; n if it
 * has to be a number (not bool), s one with a sign, r one that is not complex,
 * f a float or complex one.  b is bool, i an index (of an output i64), c
 * args.dtype, w f32 or, if the common one is f64, f64; ? any.  The last one
 * stands for all that follow.
 *
 * `collective` says what the operator can reduce over the ranks by itself: then
 * a dimension that is never sharded ("!", "@", a capital) may be sharded after
 * all, and an output without it is whole.  "x ss" is an allreduce of a maximum
 * and one of two sums, each a f64 for each row of the first input that has
 * rows; "" is none: a rank does its part with what it has.
 */
struct dtn_rule {
    const char *const *names;     /* of the operators; the last is NULL       */
    const char *letters;          /* see above; NULL: engine without          */
    const char *terms;            /* see above; NULL: terms are reduced first */
    const char *types;            /* see above; NULL: "t>t"                   */
    const char *collective;       /* see above; NULL: nothing                 */
    unsigned flags;               /* DTN_RULE_                                */
    unsigned reads;               /* DTN_ARG_                                 */
    enum dtensor_redop reduce;    /* what makes a whole of parts that were    */
                                  /* reduced along a sharded dimension        */
    enum dtn_size size;           /* of outputs along args.dim                */
    enum dtn_engine engine;       /* how its rows are found                   */
    int least;                    /* inputs that it needs; 0: all of letters  */
    dtn_variant_f *variant;       /* NULL, or the rules are NAME/WORD         */
};

/* The rule that holds for a call: that of its name, or of its variant.
 * Errors: EINVAL  no operator of that name
 */
int dtn_rule_of(const struct dtensor_op_call *call,
                const struct dtn_rule **rulep, struct dtensor_error *err);

/* Has the library an operator of that name? */
bool dtn_rule_known(const char *name);

extern const struct dtn_rule dtn_rules[];
extern const int dtn_nrules;

#endif
