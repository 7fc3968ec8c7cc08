/* explain.h - what a case does, in pictures and bytes */
#ifndef BENCH_EXPLAIN_H
#define BENCH_EXPLAIN_H

#include "dtensor.h"

struct bench;
struct bench_case;
struct report;

/* The call of a collective, with blocks of equal size. */
struct dtensor_call explain_call(const struct bench *b,
                                 const struct bench_case *c);

/* Of a redistribute what has to move, and with --draw the picture; of a
 * collective with --draw its schedule.
 */
int explain_case(struct report *report, struct bench *b,
                 const struct bench_case *c, struct dtensor_error *err);

#endif
