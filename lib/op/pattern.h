/* pattern.h - the letters of a rule, cut up; see rule.h */
#ifndef DTN_OP_PATTERN_H
#define DTN_OP_PATTERN_H

#include "op/rule.h"

#include <stdbool.h>

/* One operand or output of a rule. */
struct dtn_pattern {
    bool star;                    /* it begins with "*"                       */
    char mark;                    /* what follows "*": '!', '-', '&', or 0    */
    char with;                    /* the letter, or #, after "*&"             */
    bool index;                   /* "#"; "!" is its mark                     */
    bool loose;                   /* "~": dimensions may be 1, or lack        */
    bool constant;                /* ".": an output that is whole             */
    int sum;                      /* which term of a sum it is a factor of    */
    int n;                        /* entries of letter                        */
    char letter[DTENSOR_MAX_DIMS];         /* after that: a, A, @ or 1        */
};

struct dtn_patterns {
    int nin, nout;                /* entries                                  */
    int nsums;                    /* terms of the sum                         */
    struct dtn_pattern in[DTN_RULE_IN];          /* of operands               */
    struct dtn_pattern out[DTN_RULE_OUT];        /* of results                */
};

/* Cut up the letters of a rule, which are right: the test looks at all. */
void dtn_patterns_read(const char *letters, struct dtn_patterns *patterns);

/* Dimensions of a pattern beside those of "*", where "@" and "1" stand for
 * `count` each; in a pattern without "*", "@" stands for what is left of ndim.
 */
int dtn_pattern_fixed(const struct dtn_pattern *pattern, int count, int ndim);

/* Dimensions that its entry i stands for, in the same way. */
int dtn_pattern_span(const struct dtn_pattern *pattern, int i, int count,
                     int ndim);

#endif
