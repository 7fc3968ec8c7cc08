/* exec.h - schedules made ready, and run */
#ifndef DTN_COLL_EXEC_H
#define DTN_COLL_EXEC_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_call_record;

struct dtn_call;
struct dtn_group;
struct dtn_sched;

/* A schedule made ready to run again and again over a group: connected to
 * every peer it names, TMP allocated, nothing left to allocate.
 */
struct dtn_plan;

/* Make it.  Takes over *sched (zeroed) on success. */
int dtn_plan_create(const struct dtn_group *group, struct dtn_sched *sched,
                    struct dtn_plan **planp, struct dtensor_error *err);
void dtn_plan_set_record(struct dtn_plan *plan,
                         const struct dtn_call_record *said);
void dtn_plan_destroy(struct dtn_plan *plan);
const struct dtn_sched *dtn_plan_sched(const struct dtn_plan *plan);

/* Connect to the ranks the schedule names, which the first run does otherwise.
 * Collective: yes, these ranks.   Blocks: until connected.
 */
int dtn_plan_connect(struct dtn_plan *plan, struct dtensor_error *err);

/* Run it once.  `fingerprint` is compared with every peer's before its data
 * is taken; see dtn_fingerprint().  Memory that peers must reach and cannot
 * is staged through the context's bounce buffers.
 */
int dtn_plan_run(struct dtn_plan *plan, const void *in, void *out,
                 uint64_t fingerprint, struct dtensor_error *err);

/* The same in pieces: start it - EAGAIN: another run has the bounce buffer that
 * it needs, or a peer is not connected yet - then poll until it returns other
 * than EAGAIN.  Neither waits for a peer: each does what can be done now.
 * One run of a plan at a time; `in` and `out` stay as they are until it is over.
 */
int dtn_plan_start(struct dtn_plan *plan, const void *in, void *out,
                   uint64_t fingerprint, struct dtensor_error *err);
int dtn_plan_poll(struct dtn_plan *plan, struct dtensor_error *err);

/* Have what a run of it with such buffers needs, so that it allocates nothing. */
int dtn_plan_warm(struct dtn_plan *plan, const void *in, void *out,
                  struct dtensor_error *err);

/* A plan of its own for a call, n and me filled in, and its fingerprint; the
 * caller destroys it.
 */
int dtn_call_plan(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_plan **planp, uint64_t *fingerprintp,
                  struct dtensor_error *err);

/* Do this rank and that at a position load from each other?  And every pair of
 * the group?
 */
bool dtn_group_maps(const struct dtn_group *group, int position);
bool dtn_group_mapped(const struct dtn_group *group);

/* The name of the wire it uses: "shm", "tcp", ..., or "shm+net" for both. */
const char *dtn_group_wire(const struct dtn_group *group);

/* Check the arguments and carry out the call; n and me are filled in here.
 * The group's ranks array identifies it: it must live as long as the context.
 * Collective, blocks, errors: as the public function of that name.
 */
int dtn_call_run(const struct dtn_group *group, struct dtn_call *call,
                 const void *in, void *out, struct dtensor_error *err);

/* The checks and the plan of a call that is to be made now, and what to do when
 * there is none: the others may have made theirs and wait, so they are told.
 */
struct dtn_cached_plan;
int dtn_call_find(const struct dtn_group *group, struct dtn_call *call,
                  const void *in, void *out, struct dtn_cached_plan **cachedp,
                  struct dtensor_error *err);
int dtn_call_nomem(struct dtensor_ctx *ctx, const char *what, size_t bytes,
                   struct dtensor_error *err);    /* of a message or group */

#endif
