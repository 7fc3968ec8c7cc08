/* fail.h - the way of a failure; private to this room */
#ifndef DTN_BOOT_FAIL_H
#define DTN_BOOT_FAIL_H

#include "boot/frame.h"
#include "boot/state.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* This failure is known here: the first one stays.  Below rank 0 it is
 * proposed upward, so that all ranks hear the same.
 */
void dtn_boot_fail_propose(struct dtn_boot *boot,
                           const struct dtensor_error *error);

/* These are the words for good: pass them on downward, and part. */
void dtn_boot_fail_final(struct dtn_boot *boot,
                         const struct dtensor_error *error);
void dtn_boot_fail_send(struct dtn_boot *boot, struct dtn_boot_link *link);
void dtn_boot_fail_post(struct dtn_frame_stream *io, uint32_t seq,
                        const struct dtensor_error *error);
bool dtn_boot_fail_parse(const struct dtn_frame *frame,
                         struct dtensor_error *error);
void dtn_boot_fail_expire(struct dtn_boot *boot, int64_t now);

/* This rank cannot take part: its neighbours receive its error and send it to
 * all others.
 */
void dtn_boot_fail_own(struct dtn_boot *boot,
                       const struct dtensor_error *error);

void dtn_boot_fail_alone(struct dtn_boot *boot);

/* How long after the deadline a verdict is waited for. */
int64_t dtn_boot_fail_patience(const struct dtn_boot *boot);

/* The words. */
void dtn_boot_fail_closed(struct dtn_boot *boot, int rank);
void dtn_boot_fail_garbage(struct dtn_boot *boot, int rank);
void dtn_boot_fail_nomem(struct dtn_boot *boot);
void dtn_boot_fail_nofds(struct dtn_boot *boot);
void dtn_boot_fail_foreign(const struct dtn_boot *boot,
                           struct dtn_frame_stream *io, uint32_t rank,
                           const char *host, const char *job);
void dtn_boot_fail_twice(struct dtn_boot *boot, int rank, uint32_t pid1,
                         uint32_t pid2);
void dtn_boot_fail_missing(struct dtn_boot *boot, const int ranks[], int n);

#endif
