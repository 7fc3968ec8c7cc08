/* stall.h - a wait that lasts long */
#ifndef DTN_JOB_STALL_H
#define DTN_JOB_STALL_H

#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* The last wait that lasted long. */
struct dtn_stall {
    int peer;                     /* for which it waited                      */
    int64_t since_ns;             /* when it began; 0: there was none         */
    int64_t asked_ns;             /* when the peer was asked what it does     */
    uint64_t logged;              /* the call that was logged, once; 0: none  */
};

/* Answer from now on what this rank does. */
void dtn_stall_open(struct dtensor_ctx *ctx);

/* This rank waits for `peer` since then.  After [transport] stall_after ask the
 * peer what it does, and log both sides, once for each call.
 */
void dtn_stall_check(struct dtensor_ctx *ctx, int peer, int64_t since_ns);

/* " and waits in barrier, no. 7 over 4 ranks": what the peer has said since
 * then; "": nothing.
 */
char *dtn_stall_words(const struct dtensor_ctx *ctx, int peer, int64_t since_ns,
                      char *buf, size_t size);

#endif
