/* check.h - the proof that schedules are right */
#ifndef DTN_SCHED_CHECK_H
#define DTN_SCHED_CHECK_H

#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Run the schedules of all n ranks on symbolic elements, `rounds` times in a
 * row, for every order the signals allow, without any transport.  Proves: no
 * deadlock with queues of DTN_QUEUE_DEPTH; no read of a byte before the
 * signal that orders it after its write, no unordered pair of accesses; no
 * access outside a space, or to a space not exposed, or before READY; put
 * sources untouched until flushed; no peer touches a rank's memory after its
 * last step; tags match.  Then calls `expect` for every OUT element.
 *
 * Symbolic element: which ranks' element `index` of IN is in it, as a bit set
 * (reducing the same rank in twice is refused), or undefined.  `dropped`: it
 * is a result, which was divided or rounded or whatever the reduction does at
 * its end (to do that twice is refused).  `tree` is a hash of the order in
 * which they were put together: equal trees, equal bits.
 */
#define DTN_CHECK_RANKS_MAX 256
struct dtn_cell {
    bool defined;
    bool dropped;
    uint32_t ranks[DTN_CHECK_RANKS_MAX / 32];  /* bit r: rank r contributed    */
    int64_t index;                /* of IN; -1: neutral, no rank is in it      */
    uint64_t tree;
};
typedef bool dtn_expect_f(int rank, size_t elem, const struct dtn_cell *cell,
                          const void *arg);

/* 0, or EINVAL with the first violation in words: which rank, step, bytes.
 * alias NULL: IN and OUT are apart; else in place: OUT begins alias[r] bytes
 * after IN on rank r (0 for allreduce; less than 0 for allgather).
 */
int dtn_sched_check(const struct dtn_sched scheds[], int n, int rounds,
              const int64_t alias[], dtn_expect_f *expect, const void *arg,
              struct dtensor_error *err);

/* The tree of element `index` folded from the left, rank 0 to rank n-1. */
uint64_t dtn_check_tree(int n, int64_t index);

#endif
