/* schedule.h - what any rank does in a plan, as one schedule to be simulated */
#ifndef DTN_REDIST_SCHEDULE_H
#define DTN_REDIST_SCHEDULE_H

struct dtensor_error;
struct dtensor_plan;
struct dtn_sched;

/* What the ranks of a plan have in common.  The plan must outlive it. */
struct dtn_schedules;

int dtn_schedules_create(const struct dtensor_plan *plan,
                         struct dtn_schedules **sp, struct dtensor_error *err);
void dtn_schedules_destroy(struct dtn_schedules *s);        /* NULL: no-op    */

/* All steps of a position of plan->all, with peers as positions there, into
 * *sched, which is initialised here.   Errors: ENOMEM
 */
int dtn_schedules_emit(struct dtn_schedules *s, int position,
                       struct dtn_sched *sched, struct dtensor_error *err);

#endif
