/* play.h - what the schedules of a call take, by the constants of the model */
#ifndef PLAY_H
#define PLAY_H

#include "coll/model.h"

enum { PLAY_RANKS_MAX = 17 };

/* All n ranks to their ends: the last one's time in ns, INFINITY if some wait for
 * ever.  `whole` is what the call has in bytes, for the caches.
 */
double play_all(const struct dtn_sched scheds[], int n, double whole,
                const struct dtn_model *model);

#endif
