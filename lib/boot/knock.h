/* knock.h - the first frames between hosts: who is there, and proof of it;
 * private to this room
 */
#ifndef DTN_BOOT_KNOCK_H
#define DTN_BOOT_KNOCK_H

#include "boot/auth.h"
#include "boot/frame.h"
#include "boot/state.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* What the other side says of itself.  Nothing of it is proved yet. */
struct dtn_knock {
    unsigned version;             /* of its protocol                          */
    uint32_t mode;                /* enum dtn_auth                            */
    uint32_t rank;                /* its rank                                 */
    char host[DTN_HOST_MAX];      /* where it runs                            */
    char job[DTN_FRAME_JOB_MAX];  /* its job                                  */
    bool same_job;                /* that is this rank's                      */
};

/* Knock at a new connection.  False: no memory. */
bool dtn_boot_knock(struct dtn_boot *boot, struct dtn_boot_link *link);

/* The one that connected: the other side knocked.  Send the proof, and from now
 * on sealed frames.
 *
 * Errors: EMISMATCH  another version or way to prove, or another job: *foreign
 *         other      this rank has no proof
 */
int dtn_boot_knock_prove(struct dtn_boot *boot, struct dtn_boot_link *link,
                         const struct dtn_frame *frame, bool *foreign,
                         struct dtensor_error *err);

/* The one that listens: a KNOCK came.  Answer it; false: go no further. */
bool dtn_boot_knock_answer(struct dtn_boot *boot, struct dtn_boot_link *link,
                           const struct dtn_frame *frame);

/* A PROOF came; false: it was refused. */
bool dtn_boot_knock_check(struct dtn_boot *boot, struct dtn_boot_link *link,
                          const struct dtn_frame *frame);

/* Words for a connection to `target` that was refused, for that reason. */
int dtn_boot_knock_refused(const struct dtn_boot *boot, int target,
                           uint32_t reason, struct dtensor_error *err);

#endif
