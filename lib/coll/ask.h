/* ask.h - a call that is only asked about */
#ifndef DTN_COLL_ASK_H
#define DTN_COLL_ASK_H

#include "dtensor.h"

struct dtn_call;
struct dtn_model;

/* The call as schedules know it, checked but for its buffers, and the model of
 * its group.  A process outside of the mesh asks for its first member.
 * Errors: EINVAL, ENOMEM
 */
int dtn_ask(const struct dtensor_mesh *mesh, const struct dtensor_call *call,
            struct dtn_call *asked, const struct dtn_model **modelp,
            struct dtensor_error *err);

#endif
