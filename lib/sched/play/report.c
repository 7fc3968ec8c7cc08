/* report.c - what a simulation reports: events, ends of jobs, busiest links */
#include "base/error.h"
#include "sched/play/player.h"
#include "dtensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dtn_play_tell(const struct dtn_player *p,
                   const struct dtensor_simulated_event *event)
{
    if (p->watch && p->watch->visit)
        p->watch->visit(event, p->watch->arg);
}

int dtn_play_ends(const struct dtn_player *p, int njobs,
                  struct dtn_play_result *result, struct dtensor_error *err)
{
    const size_t n = (size_t)njobs;

    result->job_ns = calloc(n, sizeof *result->job_ns);
    if (!result->job_ns)
        return dtn_fail_nomem(err, "play", n * sizeof *result->job_ns);
    for (int i = 0; i < p->program.nparts; i++) {
        double *ns = &result->job_ns[p->program.part[i].job];

        *ns = fmax(*ns, p->program.part[i].clock_ns);
    }
    return 0;
}

void dtn_play_result_fini(struct dtn_play_result *result)
{
    free(result->path);
    free(result->job_ns);
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
