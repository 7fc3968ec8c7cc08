/* wait.h - time, and how to wait: spin, yield, sleep */
#ifndef DTN_BASE_WAIT_H
#define DTN_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

int64_t dtn_now_ns(void);                   /* CLOCK_MONOTONIC               */

/* Patience of one wait: first spin (pause), then yield, then sleep a little.
 * With `crowded` (more ranks than CPUs) it yields from the start.
 */
struct dtn_wait {
    int64_t timeout_ns;
    int64_t start_ns;                       /* of the first look, 0 before   */
    int64_t next_look_ns;                   /* used by dtn_wait_pause()      */
    uint32_t turns;
    bool looked;                            /* one look has passed           */
    bool sleeping;                          /* two have: sleep between polls */
    bool crowded;
    bool *sharing;                          /* NULL, or what was learned: a  */
                                            /* peer runs on the same CPU     */
};

void dtn_wait_init(struct dtn_wait *wait, int64_t timeout_ns, bool crowded);

/* What the waiter should do after this pause. */
enum dtn_turn {
    DTN_TURN_POLL,                          /* look at the awaited line only */
    DTN_TURN_LOOK,                          /* also at peers' health         */
    DTN_TURN_EXPIRED                        /* the deadline has passed       */
};
enum dtn_turn dtn_wait_pause(struct dtn_wait *wait);

#endif
