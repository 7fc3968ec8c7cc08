/* combine.h - what an operator accepts on all mesh dimensions together */
#ifndef DTN_OP_COMBINE_H
#define DTN_OP_COMBINE_H

#include "op/row.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* What one mesh dimension may be: a row, sharded in one way. */
struct dtn_option {
    const struct dtn_rule_row *row;              /* of the rows               */
    struct dtensor_placement shard;              /* for SHARD in the row,     */
                                  /* whose dim holds                          */
    bool still;                   /* no input moves, nothing is sent          */
    bool never;                   /* a sharded input would become a term      */
                                  /* or has another reduction                 */
    uint64_t terms;               /* 4 bits for each kind of operand, then of */
                                  /* result: 15 if it is a term               */
    uint64_t redops;              /* in the same bits the reduction           */
};

enum { DTN_OPTIONS_MAX = 96 };
struct dtn_options {
    const struct dtn_signature *sig;             /* of the call               */
    int ndim;                     /* mesh dimensions                          */
    int n[DTENSOR_MAX_DIMS];      /* entries for each mesh dimension          */
    bool reduces;                 /* some options are of collective rows      */
    bool lengths;                 /* some options shard by chosen lengths     */
    bool small;                   /* some combinations cut into more parts    */
                                  /* than there are elements                  */
    struct dtn_option option[DTENSOR_MAX_DIMS][DTN_OPTIONS_MAX]; /* in order  */
};

/* One option for each mesh dimension. */
struct dtn_tuple {
    unsigned char at[DTENSOR_MAX_DIMS];          /* index of the option       */
};

/* The options of a call; `rows` must outlive them. */
void dtn_options_make(const struct dtn_signature *sig,
                      const struct dtn_rowset *rows,
                      struct dtn_options *options);

/* Which combinations: those that move nothing; those that an operator takes; or
 * also those with an option that is NEVER, which it takes if there is no other.
 */
enum dtn_which { DTN_STILL, DTN_USUAL, DTN_ALL };

/* Show combinations that the operator accepts to `see`, in order: the first
 * mesh dimension changes slowest.  It ends early if `see` returns false.
 */
typedef bool dtn_see_f(void *arg, const struct dtn_tuple *choice);
void dtn_choices_visit(const struct dtn_options *options, enum dtn_which which,
                       dtn_see_f *see, void *arg);

/* The placements of input i, or of output i, with a choice. */
void dtn_choice_input(const struct dtn_options *options,
                      const struct dtn_tuple *choice, int i,
                      struct dtensor_placement placement[]);
void dtn_choice_output(const struct dtn_options *options,
                       const struct dtn_tuple *choice, int i,
                       struct dtensor_placement placement[]);

#endif
