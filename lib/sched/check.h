/* check.h - the proof that schedules are right */
#ifndef DTN_SCHED_CHECK_H
#define DTN_SCHED_CHECK_H

#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Run the schedules of all n ranks on symbolic elements, `rounds` times in a
 * row, for every order that the signals allow, without any transport.  This
 * proves:
 *
 *   - no deadlock with queues of DTN_QUEUE_DEPTH;
 *   - no read of a byte before the signal that orders the read after its write,
 *     and no unordered pair of accesses;
 *   - no access outside a space, to one that is not exposed, or before READY;
 *   - the source of a put is not touched until it is flushed;
 *   - no peer touches a rank's memory after that rank's last step;
 *   - tags match.
 *
 * Then `expect` is called for every OUT element.
 *
 * A symbolic element is undefined, or it is the set of ranks whose element
 * `index` of IN was reduced into it, as bits.  To reduce the same rank in twice
 * is an error.  To finalise a result twice (divide and round it) is an error
 * too.  `tree` is a hash of the order in which the terms were combined: equal
 * trees mean equal bits.
 */
#define DTN_CHECK_RANKS_MAX 256
struct dtn_cell {
    bool defined;                 /* false: nobody has written it             */
    bool finalised;               /* it is finalised: a result, no term       */
    uint32_t ranks[DTN_CHECK_RANKS_MAX / 32];  /* bit r: rank r contributed   */
    int64_t index;                /* index in IN; -1: neutral element, no     */
                                  /* rank                                     */
    uint64_t tree;                /* hash of the order of the reduction       */
};
typedef bool dtn_check_expect_f(int rank, size_t elem,
                                const struct dtn_cell *cell, const void *arg);

/* 0, or EINVAL with a message about the first violation: rank, step, bytes.
 * alias NULL: IN and OUT are apart.  Else the call is in place: OUT begins
 * alias[r] bytes after IN on rank r (0 for allreduce; less than 0 for
 * allgather).
 */
int dtn_sched_check(const struct dtn_sched scheds[], int n, int rounds,
                    const int64_t alias[], dtn_check_expect_f *expect,
                    const void *arg, struct dtensor_error *err);

/* The tree of element `index` when it is folded from rank 0 to rank n-1. */
uint64_t dtn_check_tree(int n, int64_t index);

#endif
