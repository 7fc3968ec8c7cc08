/* probe.h - does the network carry packets as long as both ports say? */
#ifndef DTN_TRANSPORT_VERBS_PROBE_H
#define DTN_TRANSPORT_VERBS_PROBE_H

#include "dtensor.h"

struct dtn_verbs;

/* On each rail, one write of 8 bytes and one of the path's MTU: both must be
 * answered before anything else is sent there.  Errors: EAGAIN, EPEER, ESYS
 */
int dtn_verbs_probe(struct dtn_verbs *verbs, int rank,
                    struct dtensor_error *err);

#endif
