/* play.h - simulate the time of a call's schedules */
#ifndef PLAY_H
#define PLAY_H

#include "sched/sched.h"

struct dtn_model;

enum { PLAY_RANKS_MAX = 17 };

/* Run all n ranks to their ends: the time of the last one in ns, INFINITY if
 * some wait for ever.  `whole` is the size of the call in bytes, for the
 * caches.
 */
double play_all(const struct dtn_sched scheds[], int n, double whole,
                const struct dtn_model *model);

#endif
