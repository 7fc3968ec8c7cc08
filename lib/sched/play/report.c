/* report.c - what a simulation tells: events, and the busiest links */
#include "sched/play/player.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

void dtn_play_tell(const struct dtn_player *p,
                   const struct dtensor_simulated_event *event)
{
    if (p->watch && p->watch->visit)
        p->watch->visit(event, p->watch->arg);
}

/* The busiest link of a level; busy_ns 0: none. */
static struct dtensor_link_load link_busiest(const struct dtn_player *p,
                                             const struct dtn_level *level)
{
    struct dtensor_link_load most = { .kind = level->name };

    for (int i = 0; i < level->count; i++)
        if (p->busy_ns[level->first + i] > most.busy_ns) {
            most.busy_ns = p->busy_ns[level->first + i];
            most.number = i;
        }
    return most;
}

void dtn_play_links(const struct dtn_player *p, struct dtn_play_result *result)
{
    for (int l = 0; l < p->topology.nlevels; l++) {
        struct dtensor_link_load load = link_busiest(p, &p->topology.level[l]);

        if (load.busy_ns > 0)
            result->link[result->nlinks++] = load;
    }
}
