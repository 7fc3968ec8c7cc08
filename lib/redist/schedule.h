/* schedule.h - what any rank does in a plan, as one schedule to be simulated */
#ifndef DTN_REDIST_SCHEDULE_H
#define DTN_REDIST_SCHEDULE_H

struct dtensor_error;
struct dtensor_plan;
struct dtn_sched;

/* All steps of a position of plan->all, with peers as positions there, into
 * *sched, which is initialised here.   Errors: ENOMEM
 */
int dtn_plan_schedule(const struct dtensor_plan *plan, int position,
                      struct dtn_sched *sched, struct dtensor_error *err);

#endif
