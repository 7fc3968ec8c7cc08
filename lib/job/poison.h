/* poison.h - private to this room: how a failure is recorded and spread */
#ifndef DTN_JOB_POISON_H
#define DTN_JOB_POISON_H

#include "boot/boot.h"
#include "dtensor.h"

#include <stdint.h>

/* How long a wait allows for failure notices over the tree, and for the last
 * messages of a rank that failed.
 */
#define DTN_FAILURE_NOTICE_NS INT64_C(200000000)

/* dtn_poison() in two steps: record the text, notify the other ranks. */
int dtn_poison_record(struct dtensor_ctx *ctx, int code, int culprit,
                      const char *what);
void dtn_poison_tell(struct dtensor_ctx *ctx, int code, int culprit);

/* The code in the word that transports carry for a rank that gives up. */
int dtn_poison_code(int word);

/* The health of a connected peer, as its transport says.  EABORT: it gave up
 * with *code, and its *culprit was lost in the way *loss, if it was; else they
 * stay as they are.
 */
int dtn_peer_health(struct dtensor_ctx *ctx, int peer, int *culprit, int *code,
                    enum dtn_loss *loss);

/* A peer is gone.  Which rank reported whom to blame (*culprit, *code): the
 * peer itself, or the first rank that failed; -1: none. Blocks:
 * DTN_FAILURE_NOTICE_NS at most
 */
int dtn_peer_failure_wait(struct dtensor_ctx *ctx, int peer, int *culprit,
                          int *code);

/* A peer has given this rank up: wait until the leader of this host has found
 * that the link is lost.  Blocks: DTN_FAILURE_NOTICE_NS at most
 */
void dtn_peer_failure_wait_own(struct dtensor_ctx *ctx);

/* The rank of these, not connected yet, whose failure the tree reported first;
 * -1: none.
 */
int dtn_peer_failure_first(struct dtensor_ctx *ctx, const int ranks[], int n);

#endif
