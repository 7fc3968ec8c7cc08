/* seat.h - a rank is one process; private to this room */
#ifndef DTN_JOB_SEAT_H
#define DTN_JOB_SEAT_H

struct dtensor_error;
struct dtn_world;

/* Take the place of this rank in its job: *fdp is a socket that keeps it, to be
 * closed by the caller, or -1.
 * Errors: ECONF  a process that this one descends from has it
 */
int dtn_seat_take(const struct dtn_world *world, int *fdp,
                  struct dtensor_error *err);

#endif
