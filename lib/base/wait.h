/* wait.h - time, and how to wait: spin, yield, sleep */
#ifndef DTN_BASE_WAIT_H
#define DTN_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

int64_t dtn_now_ns(void);                   /* CLOCK_MONOTONIC               */

/* The state of one wait: it first spins, then yields, then sleeps.  With
 * `oversubscribed` (more ranks than CPUs) it yields after one pause.
 */
enum { DTN_WAIT_POLLED = -1 };
struct dtn_wait {
    int64_t timeout_ns;           /* of the whole wait, in ns                 */
    int64_t start_ns;             /* first reading of the clock; 0: none yet; */
                                  /* DTN_WAIT_POLLED: none yet, polled once   */
    int64_t next_look_ns;         /* time of the next look                    */
    uint32_t npauses;             /* calls of dtn_wait_pause() so far         */
    bool checked;                 /* the first LOOK was returned              */
    bool sleeping;                /* so was the second: sleep between polls   */
    bool oversubscribed;          /* oversubscribed: do not spin              */
    bool *sharing;                /* NULL, or a flag kept between waits:      */
                                  /* a peer runs on the same CPU              */
};

void dtn_wait_init(struct dtn_wait *wait, int64_t timeout_ns,
                   bool oversubscribed);

/* A part of what is awaited has come: do not sleep for the next 1 to 2 ms. */
static inline void dtn_wait_wake(struct dtn_wait *wait)
{
    wait->sleeping = wait->checked = false;
}

/* What the caller should do after this pause. */
enum dtn_wait_next {
    DTN_WAIT_POLL,                          /* test the awaited flag only    */
    DTN_WAIT_CHECK,                         /* also check that peers live    */
    DTN_WAIT_EXPIRED                        /* the deadline has passed       */
};
enum dtn_wait_next dtn_wait_pause(struct dtn_wait *wait);

#endif
