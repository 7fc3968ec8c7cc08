/* bind.h - bound steps: steps with an index for each base address
 *
 * A step names bytes of a space, such as bytes 64 to 127 of a peer's OUT.  A
 * bound step names an entry of exec->base, which holds the address of that
 * space in this run, and the offset from there.
 */
#ifndef DTN_EXEC_BIND_H
#define DTN_EXEC_BIND_H

#include "base/reduce.h"
#include "coll/exec/peer.h"
#include "sched/sched.h"

#include <stddef.h>
#include <stdint.h>

struct dtensor_error;
struct dtn_exec;
struct dtn_exec_run;
struct dtn_exec_step;

/* A function that runs a step.  EAGAIN: it cannot end now, and the run does not
 * wait.  Any other code: the context is poisoned.
 */
typedef int dtn_exec_step_f(struct dtn_exec_run *run,
                            const struct dtn_exec_step *bound);

/* exec->base: the addresses of this rank's spaces; of the exposed OUT; and of
 * the mapped spaces of each peer.
 */
enum { DTN_EXEC_OUT_EXPOSED = DTN_NSPACES, DTN_EXEC_PEERS };

static inline int dtn_exec_peer_base(int position, int name)
{
    return DTN_EXEC_PEERS + position * DTN_EXEC_NNAMES + name;
}

/* The place of a span of memory. */
struct dtn_exec_at {
    int base;                     /* index in exec->base                      */
    size_t offset;                /* bytes from there                         */
};

/* A bound step, with all that running it needs. */
struct dtn_exec_step {
    const struct dtn_step *step;  /* the step of the schedule                 */
    dtn_exec_step_f *run;         /* runs it                                  */
    struct dtn_exec_peer *peer;       /* of PUT, FLUSH, SIGNAL, WAIT          */
    struct dtn_exec_at dst, src;  /* destination and source                   */
    size_t bytes;                 /* of memory, at this rank's end            */
    size_t count;                 /* elements                                 */
    const struct dtn_exec_at *terms;  /* [nterms] of a reduction              */
    dtn_fold_f *fold;             /* of a reduction that is this loop over    */
                                  /* two terms in host memory; or NULL        */
    int nterms;                   /* number of terms                          */
    uint16_t partial;             /* bit set: which are partial results, see  */
                                  /* dtn_fold()                               */
    uint16_t nputs;               /* of a FOLD: as many puts of its result    */
                                  /* follow                                   */
};

/* Bind the steps of an executable, whose peers and scale are known.
 * Errors: ENOMEM
 */
int dtn_exec_bind(struct dtn_exec *exec, struct dtensor_error *err);

#endif
