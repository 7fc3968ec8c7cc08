/* random.h - operators that make tensors of random numbers */
#ifndef DTN_OP_LOCAL_RANDOM_H
#define DTN_OP_LOCAL_RANDOM_H

#include "op/local/local.h"

/* `which` of the local function. */
enum dtn_random_kind {
    DTN_RANDOM_UNIFORM,           /* from 0 to 1                              */
    DTN_RANDOM_NORMAL             /* of mean 0 and deviation 1                */
};
dtn_local_fill_f dtn_local_random, dtn_local_dropout;

#endif
