/* fail.h - one failure for all ranks; private to this room */
#ifndef DTN_BOOT_FAIL_H
#define DTN_BOOT_FAIL_H

#include "boot/frame.h"
#include "boot/state.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

/* Record a failure, if it is the first, and propose it upward: rank 0 decides,
 * so that all ranks return the same one.
 */
void dtn_boot_fail_propose(struct dtn_boot *boot,
                           const struct dtensor_error *error);

/* This is the verdict: send it to the children, then end. */
void dtn_boot_fail_final(struct dtn_boot *boot,
                         const struct dtensor_error *error);
void dtn_boot_fail_send(struct dtn_boot *boot, struct dtn_boot_link *link);
void dtn_boot_fail_post(struct dtn_frame_stream *io, uint32_t seq,
                        const struct dtensor_error *error);
bool dtn_boot_fail_parse(const struct dtn_frame *frame,
                         struct dtensor_error *error);

/* The deadline of a rank has passed: this rank says so to all around it, and
 * that it runs.
 */
void dtn_boot_fail_expire(struct dtn_boot *boot, int64_t now);
bool dtn_boot_fail_post_expired(struct dtn_boot *boot);

/* This rank cannot take part: its neighbours receive its error and send it to
 * all others.
 */
void dtn_boot_fail_own(struct dtn_boot *boot,
                       const struct dtensor_error *error);

void dtn_boot_fail_alone(struct dtn_boot *boot);

/* How long to wait for the verdict after the deadline, in ns. */
int64_t dtn_boot_fail_wait_ns(const struct dtn_boot *boot);

/* Failures and their texts. */
void dtn_boot_fail_closed(struct dtn_boot *boot, int rank);
void dtn_boot_fail_garbage(struct dtn_boot *boot, int rank);
void dtn_boot_fail_nomem(struct dtn_boot *boot);
void dtn_boot_fail_nofds(struct dtn_boot *boot);
void dtn_boot_fail_twice(struct dtn_boot *boot, int rank, uint32_t pid1,
                         uint32_t pid2);

/* Connections that were refused may be those of missing ranks: "; 2 connections
 * were refused: they have different keys (...)" for each reason, or "".
 */
char *dtn_boot_fail_refused_text(const struct dtn_boot *boot, char *buf,
                                 size_t size);

/* This rank has joined, and then did not answer. */
void dtn_boot_fail_silent(struct dtn_boot *boot, int rank);

/* These ranks are missing; `culprit` is the one to name. */
void dtn_boot_fail_missing(struct dtn_boot *boot, const int ranks[], int n,
                           int culprit);

#endif
