/* path.c - the critical path: what the last rank had waited for
 *
 * The path begins at the last step of the slowest rank.  It goes back to the
 * wait before it that took time, to the signal that ended this wait, to the
 * rank that sent the signal, and so on.  To make the call faster, something on
 * this path must become faster.
 */
#include "base/array.h"
#include "base/error.h"
#include "sched/play/player.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

static bool path_add(struct dtn_play_result *result, int *capacity,
                     struct dtensor_simulated_event event)
{
    if (!dtn_array_reserve(&result->path, capacity, result->npath + 1,
                           sizeof event))
        return false;
    result->path[result->npath++] = event;
    return true;
}

/* The last wait of a part before a line, or -1.  The path goes back in time, so
 * the search goes on where it was last in the waits of the part.
 */
static int waited_before(const struct dtn_player *p, int at[],
                         const struct dtn_play_part *part, uint32_t line)
{
    int *w = &at[part - p->program.part];

    while (*w >= 0 && p->waited[*w].line >= line)
        *w = p->waited[*w].before;
    return *w;
}

/* The work of a part up to a line, from the wait before it; and the signal that
 * ended that wait.
 */
static bool path_piece(const struct dtn_player *p,
                       struct dtn_play_result *result, int *capacity,
                       const struct dtn_play_part *part, uint32_t line,
                       double end_ns, int w)
{
    const struct dtn_play_waited *waited = w < 0 ? NULL : &p->waited[w];
    const struct dtn_play_line *at = &p->program.line[line];
    const struct dtn_channel *channel;
    const struct dtn_play_line *sent;

    if (!path_add(result, capacity, (struct dtensor_simulated_event){
            .kind = DTENSOR_STEP_LOCAL, .rank = part->rank, .peer = part->rank,
            .call = part->job, .step = (int)at->step, .end_ns = end_ns,
            .start_ns = waited ? waited->seen_ns
                               : p->jobs[part->job].start_ns }))
        return false;
    if (!waited)
        return true;
    sent = &p->program.line[waited->sent_line];
    channel = &p->program.channel[sent->channel];
    return path_add(result, capacity, (struct dtensor_simulated_event){
        .kind = DTENSOR_STEP_SIGNAL, .rank = channel->from_rank,
        .peer = channel->to_rank, .call = part->job,
        .step = (int)sent->step,
        .start_ns = waited->sent_ns, .end_ns = waited->seen_ns,
        .bytes = sent->bytes });
}

static void path_turn(struct dtn_play_result *result)
{
    for (int i = 0, j = result->npath - 1; i < j; i++, j--) {
        struct dtensor_simulated_event event = result->path[i];

        result->path[i] = result->path[j];
        result->path[j] = event;
    }
}

/* From the end of the last part back to the start; false: out of memory.  at[]
 * has the last wait of each part.
 */
static bool path_follow(const struct dtn_player *p, int at[],
                        struct dtn_play_result *result)
{
    const struct dtn_play_part *part = p->program.part;
    int capacity = 0, w;
    uint32_t line;
    double end_ns;

    for (int i = 1; i < p->program.nparts; i++)
        if (p->program.part[i].clock_ns > part->clock_ns)
            part = &p->program.part[i];
    if (part->end == 0)
        return true;
    line = (uint32_t)part->end - 1;
    end_ns = part->clock_ns;
    w = waited_before(p, at, part, line + 1);
    while (path_piece(p, result, &capacity, part, line, end_ns, w)) {
        if (w < 0)
            return true;
        line = p->waited[w].sent_line;
        end_ns = p->waited[w].sent_ns;
        part = &p->program.part[
            p->program.channel[p->program.line[line].channel].from];
        w = waited_before(p, at, part, line);
    }
    return false;
}

int dtn_play_path(const struct dtn_player *p, struct dtn_play_result *result,
                  struct dtensor_error *err)
{
    const size_t n = (size_t)p->program.nparts;
    int *at = malloc((n + 1) * sizeof *at);
    bool followed;

    for (size_t i = 0; at && i < n; i++)
        at[i] = p->program.part[i].waited;
    followed = at && path_follow(p, at, result);
    free(at);
    if (!followed)
        return dtn_fail_nomem(err, "play", n * sizeof *at);
    path_turn(result);
    return 0;
}
