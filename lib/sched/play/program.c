/* program.c - the schedules of all ranks, as short as a simulation needs
 *
 * A schedule is made, read and freed before that of the next rank is made: of
 * 131,072 ranks only lines of 16 bytes and channels are kept.  A recursive
 * doubling of that size has 17 levels of 5 lines: 180 MB, where the schedules
 * would take 1.7 GB.
 *
 * Where ranks p and p + period do the same with shifted peers, only those from
 * 0 to period - 1 are kept.  A ring of 131,072 ranks has 10^11 steps, but with
 * a period of 1 only rank 0 is played: what arrives from its left neighbour
 * arrives when its own messages arrive at the right one.  So the channel from
 * position q to p is that from q modulo period to p, shifted as far.
 */
#include "sched/play/program.h"
#include "base/array.h"
#include "base/box.h"
#include "base/error.h"
#include "base/ranks.h"
#include "sched/play/channels.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A program that is being made. */
struct maker {
    struct dtn_program *program;
    struct dtn_channels channels;
    const struct dtn_play_job *job;
    int period;                   /* ranks of the job that are kept           */
    int first;                    /* part of its position 0                   */
    bool keeps;                   /* schedules are kept                       */
    bool failed;                  /* out of memory                            */
    bool full;                    /* more lines than DTN_LINES_MAX            */
};

static int job_rank(const struct dtn_play_job *job, int position)
{
    return job->ranks ? dtn_ranks_at(job->ranks, position) : position;
}

/* ------------------------------------------------------------- channels --- */

static int class_of(const struct maker *maker, int position)
{
    return maker->first + position % maker->period;
}

/* The channel between two positions; 0 after a failure. */
static uint32_t channel_between(struct maker *maker, int from, int to)
{
    struct dtn_program *program = maker->program;
    const int n = maker->job->n, shift = from - from % maker->period;
    const int near = from - shift, far = (to - shift + n) % n;
    const uint32_t fresh = (uint32_t)program->nchannels;
    const uint32_t *number = dtn_channels_find(
        &maker->channels, maker->first + near, far, fresh);

    if (number && *number < fresh)
        return *number;
    if (!number || !dtn_array_reserve(&program->channel,
                                      &program->channels_capacity,
                                      program->nchannels + 1,
                                      sizeof program->channel[0])) {
        maker->failed = true;
        return 0;
    }
    program->channel[program->nchannels++] = (struct dtn_channel){
        .from = maker->first + near, .to = class_of(maker, far),
        .from_rank = job_rank(maker->job, near),
        .to_rank = job_rank(maker->job, far),
        .first = DTN_NOTICE_NONE, .last = DTN_NOTICE_NONE,
        .posting = DTN_NOTICE_NONE, .posted = DTN_NOTICE_NONE };
    return *number;
}

/* ---------------------------------------------------------------- lines --- */

static void line_add(struct maker *maker, enum dtn_line_op op, int step,
                     uint32_t channel, uint64_t bytes)
{
    struct dtn_program *program = maker->program;

    maker->full = maker->full || program->nlines == DTN_LINES_MAX;
    if (maker->full)
        return;
    if (!dtn_array_reserve(&program->line, &program->lines_capacity,
                           program->nlines + 1, sizeof program->line[0])) {
        maker->failed = true;
        return;
    }
    program->line[program->nlines++] = (struct dtn_play_line){
        .bytes = bytes, .channel = channel, .op = op & 7u,
        .step = (uint32_t)step & 0x1fffffffu };
}

static void line_local(struct maker *maker, enum dtn_line_op op, int step,
                       uint64_t bytes)
{
    if (bytes > 0)
        line_add(maker, op, step, 0, bytes);
}

static void line_load(struct maker *maker, int step, int position,
                      uint64_t bytes)
{
    if (bytes > 0)
        line_add(maker, DTN_LINE_LOAD, step,
                 (uint32_t)job_rank(maker->job, position), bytes);
}

static uint64_t step_bytes(const struct dtn_sched *sched,
                           const struct dtn_step *step)
{
    return step->box < 0 ? step->bytes
                         : (uint64_t)dtn_box_count(&sched->boxes[step->box])
                           * dtensor_dtype_size(sched->dtype);
}

/* Terms of own memory are read once; others are loaded first. */
static void lines_of_fold(struct maker *maker, const struct dtn_sched *sched,
                          const struct dtn_step *step, int at)
{
    const bool own = step->src.rank >= 0;
    const int n = own ? step->terms : sched->terms ? sched->nterms : sched->n;

    for (int t = 0; t < n && !own; t++) {
        const int from = sched->terms ? sched->terms[t] : t;

        if (from != sched->me)
            line_load(maker, at, from, step->bytes);
    }
    line_local(maker, DTN_LINE_FOLD, at, (uint64_t)n * step->bytes);
}

static void lines_of_copy(struct maker *maker, const struct dtn_sched *sched,
                          const struct dtn_step *step, int at)
{
    const uint64_t bytes = step_bytes(sched, step);
    const bool own = step->src.rank == sched->me;

    if (!own)
        line_load(maker, at, step->src.rank, bytes);
    if (step->op == DTN_OP_REDUCE)
        line_local(maker, DTN_LINE_FOLD, at, 2 * bytes);
    else if (own)
        line_local(maker, DTN_LINE_COPY, at, bytes);
}

static void lines_of_step(struct maker *maker, const struct dtn_sched *sched,
                          int at)
{
    const struct dtn_step *step = &sched->steps[at];
    const int me = sched->me, peer = step->peer;
    const bool eager = step->tag == DTN_TAG_EAGER;
    const uint64_t put = step->op == DTN_OP_PUT ? step_bytes(sched, step) : 0;

    if (put > maker->program->longest)
        maker->program->longest = put;
    switch (step->op) {
    case DTN_OP_PUT:
        line_add(maker, DTN_LINE_PUT, at, channel_between(maker, me, peer),
                 put);
        break;
    case DTN_OP_FLUSH:
        line_add(maker, DTN_LINE_FLUSH, at, channel_between(maker, me, peer),
                 0);
        break;
    case DTN_OP_SIGNAL:
        line_add(maker, DTN_LINE_SIGNAL, at, channel_between(maker, me, peer),
                 eager ? step->bytes : 0);
        break;
    case DTN_OP_WAIT:
        line_add(maker, DTN_LINE_WAIT, at, channel_between(maker, peer, me),
                 eager ? step->bytes : 0);
        break;
    case DTN_OP_COPY: case DTN_OP_REDUCE:
        lines_of_copy(maker, sched, step, at);
        break;
    case DTN_OP_FOLD:
        lines_of_fold(maker, sched, step, at);
        break;
    default:                      /* SCALE and NEUTRAL pass over own memory   */
        line_local(maker, DTN_LINE_COPY, at, step->bytes);
    }
}

/* ---------------------------------------------------------------- parts --- */

static int maker_nomem(struct dtensor_error *err, const struct maker *maker)
{
    return dtn_fail_nomem(err, "play", (size_t)maker->program->nlines
                                       * sizeof(struct dtn_play_line));
}

/* The schedule becomes that of the last part, and is empty. */
static void sched_keep(struct maker *maker, struct dtn_sched *sched)
{
    struct dtn_play_part *part =
        &maker->program->part[maker->program->nparts - 1];

    part->sched = malloc(sizeof *part->sched);
    if (!part->sched) {
        maker->failed = true;
        return;
    }
    *part->sched = *sched;
    *sched = (struct dtn_sched){ .n = 0 };
}

/* The lines of one position. */
static int part_make(struct maker *maker, int number, int position,
                     struct dtensor_error *err)
{
    struct dtn_program *program = maker->program;
    struct dtn_sched sched;
    int rc;

    if (!dtn_array_reserve(&program->part, &program->parts_capacity,
                           program->nparts + 1, sizeof program->part[0]))
        return maker_nomem(err, maker);
    rc = maker->job->emit(maker->job->arg, position, &sched, err);
    if (rc != 0)
        return rc;
    program->part[program->nparts++] = (struct dtn_play_part){
        .job = number, .position = position,
        .rank = job_rank(maker->job, position), .at = program->nlines,
        .waits = DTN_NOTICE_NONE, .waited = -1, .slow = 1,
        .clock_ns = maker->job->start_ns };
    for (int s = 0; s < sched.nsteps && !maker->failed && !maker->full; s++)
        lines_of_step(maker, &sched, s);
    program->part[program->nparts - 1].end = program->nlines;
    if (maker->keeps)
        sched_keep(maker, &sched);
    dtn_sched_fini(&sched);
    if (maker->full)
        return dtn_fail(err, DTENSOR_EINVAL, "play: more than %d steps (fewer "
                        "ranks, or an algorithm with fewer messages)",
                        DTN_LINES_MAX);
    return maker->failed ? maker_nomem(err, maker) : 0;
}

int dtn_program_make(struct dtn_program *program,
                     const struct dtn_play_job jobs[], int njobs, bool keeps,
                     struct dtensor_error *err)
{
    struct maker maker = { .program = program, .keeps = keeps };
    int rc = 0;

    *program = (struct dtn_program){ .nparts = 0 };
    for (int j = 0; j < njobs && rc == 0; j++) {
        maker.job = &jobs[j];
        maker.first = program->nparts;
        maker.period = jobs[j].period ? jobs[j].period : jobs[j].n;
        if (jobs[j].n < 1 || jobs[j].n % maker.period != 0)
            rc = dtn_fail(err, DTENSOR_EINVAL, "play: %d ranks that repeat "
                          "after %d (which must divide them)", jobs[j].n,
                          maker.period);
        for (int p = 0; p < maker.period && rc == 0; p++)
            rc = part_make(&maker, j, p, err);
    }
    dtn_channels_fini(&maker.channels);
    return rc;
}

void dtn_program_fini(struct dtn_program *program)
{
    for (int i = 0; i < program->nparts; i++)
        if (program->part[i].sched) {
            dtn_sched_fini(program->part[i].sched);
            free(program->part[i].sched);
        }
    free(program->part);
    free(program->line);
    free(program->channel);
}
