/* env.h - numbers in environment variables */
#ifndef DTN_CLUSTER_ENV_H
#define DTN_CLUSTER_ENV_H

#include "dtensor.h"

/* Read a variable that is set into *out: a number, min..max.  Else ECONF:
 * `DTN_RANK is "x", expected 0 to 7`.
 */
int dtn_env_number(const char *variable, int min, int max, int *out,
                   struct dtensor_error *err);

#endif
