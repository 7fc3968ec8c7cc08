/* key.h - the key of a job, from the environment or a file */
#ifndef DTN_CLUSTER_KEY_H
#define DTN_CLUSTER_KEY_H

#include "base/seal.h"
#include "dtensor.h"

#include <stdbool.h>

/* Read the key that DTN_KEY gives: 64 hex digits, or the absolute path of a
 * file that has them.  *found: there is one.
 *
 * Errors: ECONF  it is malformed, or others could read the file
 */
int dtn_key_read(unsigned char key[DTN_SECRET_BYTES], bool *found,
                 struct dtensor_error *err);

#endif
