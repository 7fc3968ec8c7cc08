/* suspects.h - the file that tells a script which hosts a failed job blames */
#ifndef DTN_JOB_SUSPECTS_H
#define DTN_JOB_SUSPECTS_H

#include "boot/boot.h"
#include "cluster/world.h"
#include "dtensor.h"

/* Write the failure to the file that DTN_REPORT names, unless another rank has.
 * boot: who else is lost; NULL: nothing is known of others.  loss: how the
 * culprit was lost; NONE: it was not, or not found to be.
 */
void dtn_suspects_write(const struct dtn_world *world,
                        const struct dtn_boot *boot, enum dtn_loss loss,
                        const struct dtensor_error *failure);

#endif
