/* exec.h - executables: schedules that are ready to run */
#ifndef DTN_COLL_EXEC_H
#define DTN_COLL_EXEC_H

#include "base/ranks.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_call_record;

struct dtn_call;
struct dtn_group;
struct dtn_sched;

/* An executable is a schedule that can run again and again over a group: it is
 * connected to every peer that it names, has its scratch, and allocates nothing
 * any more.
 */
struct dtn_exec;

/* Make an executable.  On success it takes over *sched, which is zeroed. */
int dtn_exec_create(const struct dtn_group *group, struct dtn_sched *sched,
                    struct dtn_exec **execp, struct dtensor_error *err);
void dtn_exec_set_record(struct dtn_exec *exec,
                         const struct dtn_call_record *said,
                         double predicted_ns);
void dtn_exec_destroy(struct dtn_exec *exec);

/* The call of a direct emitter may go through a window, see exec/window.c, if
 * dtn_window_suits().   Errors: ENOMEM
 */
int dtn_exec_set_window(struct dtn_exec *exec, const struct dtn_call *call,
                        struct dtensor_error *err);
const struct dtn_sched *dtn_exec_sched(const struct dtn_exec *exec);

/* The positions that its steps name, and that of this rank. */
struct dtn_ranks dtn_exec_met(const struct dtn_exec *exec);

/* Connect to the ranks that the schedule names; otherwise the first run does
 * so.
 * Collective: yes, these ranks.   Blocks: until connected.
 */
int dtn_exec_connect(struct dtn_exec *exec, struct dtensor_error *err);

/* Run the executable once.  `fingerprint` is compared with every peer's
 * fingerprint before its data is accepted; see dtn_fingerprint().  If peers
 * must access memory that they cannot reach, it is staged through bounce
 * buffers of this run.
 */
int dtn_exec_run(struct dtn_exec *exec, const void *in, void *out,
                 uint64_t fingerprint, struct dtensor_error *err);

/* The same for a call that is a step of a redistribute: errors have the `text`
 * of that, see dtn_record_forget().  `base` is the fingerprint without number.
 */
int dtn_exec_run_step(struct dtn_exec *exec, const void *in, void *out,
                      uint64_t base, uint32_t number, const char *text,
                      struct dtensor_error *err);

/* The executable belongs to such a step. */
void dtn_exec_set_text(struct dtn_exec *exec, uint64_t base, const char *text);

/* The same without blocking: start the run, then poll until it returns
 * something other than EAGAIN.  Start returns EAGAIN if the arena is full and
 * other runs will give bounce buffers back, or if a peer is not connected yet.
 * Neither function waits for a peer.  An executable has one run at a time; `in`
 * and `out` must stay unchanged until it ends.
 */
int dtn_exec_start(struct dtn_exec *exec, const void *in, void *out,
                   uint64_t fingerprint, struct dtensor_error *err);
int dtn_exec_poll(struct dtn_exec *exec, struct dtensor_error *err);

/* Go on with a started run, and wait for its peers: no other run is under way.
 * It returns EAGAIN where it cannot wait, as poll does.
 */
int dtn_exec_finish(struct dtn_exec *exec, struct dtensor_error *err);

/* Allocate what a run with these buffers needs, so that the run allocates
 * nothing.
 */
int dtn_exec_warm(struct dtn_exec *exec, const void *in, void *out,
                  struct dtensor_error *err);

/* The executable is run many times with the same buffers: record what a device
 * does.   Errors: ENOMEM
 */
int dtn_exec_repeats(struct dtn_exec *exec, struct dtensor_error *err);

/* The context is poisoned or has ended: a device that waits for peers in a
 * started run goes on.
 */
void dtn_exec_give_up(struct dtensor_ctx *ctx);

/* An executable for one call, with n and me filled in, and its fingerprint.  It
 * is not cached; the caller destroys it.
 */
int dtn_call_exec(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_exec **execp, uint64_t *fingerprintp,
                  struct dtensor_error *err);

/* Do this rank and the rank at a position load from each other?  Two ranks of
 * the world?  Every pair of the group?
 */
bool dtn_group_maps(const struct dtn_group *group, int position);
bool dtn_ranks_map(const struct dtensor_ctx *ctx, int a, int b);
bool dtn_group_mapped(const struct dtn_group *group);

/* The name of the wires of the group: "shm", "tcp", ..., or "shm+net" for both.
 */
const char *dtn_group_wire(const struct dtn_group *group);

/* Check the arguments and run the call; n and me are filled in here.  The
 * address of the group's ranks array identifies the group, so it must live as
 * long as the context.
 * Collective, blocks, errors: as the public function of that name.
 */
int dtn_call_run(const struct dtn_group *group, struct dtn_call *call,
                 const void *in, void *out, struct dtensor_error *err);

/* check_buffers: may this rank use them?  See dtn_ctx_check_buffer().
 * prepare: check a call; n, me, on_device and the reduction are filled in here.
 * find: the same for a call that is to run now; find its executable.
 */
struct dtn_cached_exec;
int dtn_call_check_buffers(const struct dtn_group *group,
                           const struct dtn_call *call, const void *in,
                           const void *out, struct dtensor_error *err);
int dtn_call_prepare(const struct dtn_group *group, struct dtn_call *call,
                     const void *in, const void *out,
                     struct dtensor_error *err);
int dtn_call_find(const struct dtn_group *group, struct dtn_call *call,
                  const void *in, void *out, struct dtn_cached_exec **cachedp,
                  struct dtensor_error *err);

#endif
