/* member.h - a simulated rank that joins and gathers, without a context */
#ifndef TESTS_SIM_MEMBER_H
#define TESTS_SIM_MEMBER_H

#include "base/log.h"
#include "cluster/world.h"
#include "dtensor.h"

#include <stdbool.h>

struct dtn_boot;

struct sim_member {
    struct dtn_world world;
    struct dtn_log log;
    struct dtn_boot *boot;        /* NULL: it could not join                  */
};

/* Join with what sim_job says; all ranks must have the same `identity`.  Close
 * it, also after a failure.
 */
int sim_member_open(struct sim_member *member, const char *identity,
                    struct dtensor_error *err);
void sim_member_close(struct sim_member *member);

/* Gather the number of each rank, and share the page of the heartbeats with the
 * ranks of the host.  *right: were they the numbers?
 */
int sim_member_gather(struct sim_member *member, bool *right,
                      struct dtensor_error *err);

/* Another exchange, as transports make one, in which ranks see each other. */
int sim_member_meet(struct sim_member *member, struct dtensor_error *err);

#endif
