/* coll_cases.h - collectives to check: a call, its schedules on all ranks, and
 * what every element of every OUT must then be, said without the library's
 * own arithmetic of blocks.
 */
#ifndef TESTS_COLL_CASES_H
#define TESTS_COLL_CASES_H

#include "sched/call.h"
#include "sched/check.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_cell;
struct dtn_emitter;
struct dtn_step;

#define CASE_RANKS_MAX 17
#define CASE_TREES 65536

struct coll_case {
    const struct dtn_emitter *emitter;
    struct dtn_call call;         /* me is filled in                          */
    struct dtn_sched scheds[CASE_RANKS_MAX];
};

/* Rank r's view of the call: of ALL_TO_ALL its own row and column. */
struct dtn_call case_call(const struct coll_case *c, int r);
int case_emit(struct coll_case *c, struct dtensor_error *err);
void case_fini(struct coll_case *c);
bool case_in_place_ok(enum dtn_coll coll);

/* dtn_sched_check() of the schedules as they are. */
int case_check(const struct coll_case *c, int rounds, bool in_place,
               struct dtensor_error *err);

/* The same of their steps for private memory, if they have some; they have no
 * others then.
 */
int case_check_hidden(struct coll_case *c, int rounds, bool in_place,
                      struct dtensor_error *err);

#endif
