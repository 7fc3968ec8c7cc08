/* combine.h - what an operator accepts on all mesh dimensions together */
#ifndef DTN_OP_COMBINE_H
#define DTN_OP_COMBINE_H

#include "op/option.h"
#include "dtensor.h"

#include <stdbool.h>

/* One option for each mesh dimension. */
struct dtn_tuple {
    unsigned char at[DTENSOR_MAX_DIMS];          /* index of the option       */
};

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
