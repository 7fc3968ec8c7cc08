/* play.h - simulate the time of a call's schedules */
#ifndef TESTS_SCHED_PLAY_H
#define TESTS_SCHED_PLAY_H

#include <stddef.h>

struct coll_case;
struct dtn_model;

/* Play all ranks of the call to their ends: the time of the last one in ns,
 * INFINITY if that fails.  `whole` is the size of the call in bytes, for the
 * caches.
 */
double play_case(struct coll_case *c, size_t whole,
                 const struct dtn_model *model);

#endif
