/* play.c - simulate the time that schedules take
 *
 * Each rank has a clock and goes through its lines until it waits for a signal
 * that has not been sent.  Inside a host its CPU moves the bytes.  Between
 * hosts it only posts: the message then takes the links of its route one after
 * another, each as soon as its head has come in and the link is free, while
 * the rest follows (messages.c).
 *
 * An event is a rank that goes on, or a message whose head comes to a link.  A
 * rank may be ahead of the events if no other rank and no piece of a message
 * uses its port; else it stops at each post until the events are as far, so
 * that a port serves in order.
 */
#include "sched/play.h"
#include "base/array.h"
#include "base/error.h"
#include "sched/caches.h"
#include "sched/play/player.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* --------------------------------------------------------------- lines --- */

static double stretch_of(const struct dtn_player *p,
                         const struct dtn_play_part *part)
{
    const double stretch = p->jobs[part->job].stretch;

    return stretch > 0 ? stretch : 1;
}

/* The CPU of a part is busy. */
static void part_busy(struct dtn_player *p, struct dtn_play_part *part,
                      double ns)
{
    const int number = (int)(part - p->program.part);

    if (p->noise)
        part->clock_ns = dtn_noise_after(p->machine->noise, &p->noise[number],
                                         part->clock_ns, ns * part->slow);
    else
        part->clock_ns += ns * part->slow;
}

/* Where lines are decides, if the caches are known.  Then a step that loads and
 * folds takes all its time as it folds.
 */
static double bytes_ns(const struct dtn_player *p,
                       const struct dtn_play_part *part,
                       const struct dtn_play_line *line, double byte_ns)
{
    const struct dtn_step *step;

    if (!part->sched)
        return byte_ns * stretch_of(p, part) * (double)line->bytes;
    step = &part->sched->steps[line->step];
    return line->op == DTN_LINE_LOAD && step->op != DTN_OP_COPY
         ? 0 : dtn_caches_step(p->machine->caches, part->sched, step,
                             part->clock_ns);
}

/* It passes over the bytes of a line. */
static void part_work(struct dtn_player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line, double byte_ns)
{
    const double start = part->clock_ns;

    part_busy(p, part, bytes_ns(p, part, line, byte_ns));
    dtn_play_tell(p, &(struct dtensor_simulated_event){
        .kind = line->op == DTN_LINE_LOAD ? DTENSOR_STEP_LOAD
                                          : DTENSOR_STEP_LOCAL,
        .rank = part->rank, .call = part->job, .step = (int)line->step,
        .peer = line->op == DTN_LINE_LOAD ? (int)line->channel : part->rank,
        .reduces = line->op == DTN_LINE_FOLD, .start_ns = start,
        .end_ns = part->clock_ns, .bytes = line->bytes });
}

static bool is_near(const struct dtn_player *p,
                    const struct dtn_channel *channel)
{
    return dtn_play_host(p->machine, channel->from_rank)
        == dtn_play_host(p->machine, channel->to_rank);
}

static void post_near(struct dtn_player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line)
{
    const struct dtn_play_wire *near = &p->machine->near;
    double bytes = stretch_of(p, part) * (double)line->bytes, start, ns;

    part_busy(p, part, near->post_ns);
    part->sent = true;
    start = part->clock_ns;
    ns = bytes_ns(p, part, line, near->byte_ns);
    if (part->sched && bytes > 0)
        bytes = ns / near->byte_ns;
    part_busy(p, part, ns);
    dtn_message_near(p, line, bytes, start, part->clock_ns);
}

/* It goes on at that time. */
static void part_later(struct dtn_player *p, const struct dtn_play_part *part,
                       double ns)
{
    dtn_events_push(&p->events, ns, (uint32_t)(part - p->program.part));
}

/* A put or a signal; false: not before the events are as far. */
static bool line_post(struct dtn_player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line, double now_ns)
{
    if (is_near(p, &p->program.channel[line->channel])) {
        post_near(p, part, line);
    } else if (part->clock_ns > now_ns
               && (p->shared || p->pieces[p->port[part->rank]] > 0)) {
        part_later(p, part, part->clock_ns);
        return false;
    } else {
        part_busy(p, part, p->machine->far.post_ns);
        dtn_message_far(p, line, part->clock_ns);
    }
    p->messages++;
    return true;
}

/* Remember a wait that took time, for the critical path. */
static void wait_note(struct dtn_player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line,
                      const struct dtn_play_notice *notice)
{
    if (!dtn_array_reserve(&p->waited, &p->waited_capacity, p->nwaited + 1,
                           sizeof p->waited[0])) {
        p->failed = true;
        return;
    }
    p->waited[p->nwaited] = (struct dtn_play_waited){
        part->waited, (uint32_t)(line - p->program.line), notice->line,
        notice->sent_ns, notice->seen_ns };
    part->waited = p->nwaited++;
}

/* It is told where the memory of the sender begins: the time in ns. */
static double take_ready(struct dtn_player *p,
                         const struct dtn_play_part *part,
                         const struct dtn_channel *channel,
                         const struct dtn_play_notice *notice)
{
    const struct dtn_play_part *from = &p->program.part[channel->from];
    const struct dtn_play_line *sent = &p->program.line[notice->line];

    return dtn_caches_ready(p->machine->caches, part->rank, channel->from_rank,
                            from->sched, &from->sched->steps[sent->step]);
}

/* false: the signal has not been sent. */
static bool line_wait(struct dtn_player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line)
{
    struct dtn_channel *channel = &p->program.channel[line->channel];
    const struct dtn_play_wire *wire = is_near(p, channel) ? &p->machine->near
                                                           : &p->machine->far;
    struct dtn_play_notice notice;
    double named_ns = 0;

    if (!dtn_notice_take(p, channel, &notice)) {
        part->waits = line->channel;
        return false;
    }
    if (part->sched && part->sched->steps[line->step].tag == DTN_TAG_READY)
        named_ns = take_ready(p, part, channel, &notice);
    if (wire == &p->machine->near && !channel->begun
        && part->clock_ns + wire->post_ns >= notice.sent_ns)
        notice.seen_ns += (part->sent ? p->machine->crossed_ns : 0)
                        - p->machine->early_ns;
    channel->begun = true;
    if (notice.seen_ns > part->clock_ns) {
        if (p->watch && p->watch->path)
            wait_note(p, part, line, &notice);
        part->clock_ns = notice.seen_ns;
    }
    part_busy(p, part, wire->notice_ns + named_ns);
    if (line->bytes > 0)
        part_work(p, part, line, p->machine->copied_ns);
    return true;
}

/* false: pieces are still to come; it is asked again after the next one. */
static bool line_flush(struct dtn_player *p, struct dtn_play_part *part,
                       const struct dtn_play_line *line)
{
    const struct dtn_channel *channel = &p->program.channel[line->channel];

    if (channel->posting != DTN_NOTICE_NONE) {
        part_later(p, part, channel->left_ns);
        return false;
    }
    part->clock_ns = fmax(part->clock_ns, channel->left_ns);
    return true;
}

/* false: the part goes on later, with the same line. */
static bool line_run(struct dtn_player *p, struct dtn_play_part *part,
                     const struct dtn_play_line *line, double now_ns)
{
    const struct dtn_play_machine *machine = p->machine;

    switch (line->op) {
    case DTN_LINE_PUT: case DTN_LINE_SIGNAL:
        return line_post(p, part, line, now_ns);
    case DTN_LINE_WAIT:
        return line_wait(p, part, line);
    case DTN_LINE_FLUSH:
        return line_flush(p, part, line);
    case DTN_LINE_LOAD:
        part_work(p, part, line, machine->near.byte_ns);
        break;
    case DTN_LINE_FOLD:
        part_work(p, part, line, machine->folded_ns);
        break;
    default:
        part_work(p, part, line, machine->copied_ns);
    }
    return true;
}

static void part_run(struct dtn_player *p, struct dtn_play_part *part,
                     double now_ns)
{
    while (part->at < part->end && !p->cut
           && line_run(p, part, &p->program.line[part->at], now_ns)) {
        part->at++;
        if (p->machine->caches && part->clock_ns > now_ns) {
            part_later(p, part, part->clock_ns);
            return;               /* ranks use their caches in order of time  */
        }
    }
}

/* ---------------------------------------------------------- the machine --- */

static int hosts_of(const struct dtn_play_machine *machine)
{
    int hosts = 0;

    for (int r = 0; r < machine->ranks; r++)
        if (dtn_play_host(machine, r) >= hosts)
            hosts = dtn_play_host(machine, r) + 1;
    return hosts;
}

/* Give each rank a port: of its host, in turn. */
static int ports_make(struct dtn_player *p, struct dtensor_error *err)
{
    const struct dtn_play_machine *machine = p->machine;
    const int rails = machine->rails, hosts = hosts_of(machine);
    int *seen = calloc((size_t)hosts + 1, sizeof *seen);

    p->port = calloc((size_t)machine->ranks + 1, sizeof *p->port);
    p->pieces = calloc((size_t)hosts * (size_t)rails + 1, sizeof *p->pieces);
    if (!p->port || !p->pieces || !seen) {
        free(seen);
        return dtn_fail_nomem(err, "play", (size_t)machine->ranks
                                           * sizeof *p->port);
    }
    for (int r = 0; r < machine->ranks; r++) {
        const int host = dtn_play_host(machine, r);

        p->port[r] = host * rails + seen[host]++ % rails;
        p->shared = p->shared || seen[host] > rails;
    }
    free(seen);
    return dtn_topology_read(machine->topology, hosts, machine, &p->topology,
                             err);
}

int dtn_play_unit(const struct dtn_play_machine *machine, int *unit,
                  struct dtensor_error *err)
{
    const int hosts = hosts_of(machine);
    const int per_host = hosts > 0 ? machine->ranks / hosts : 0;
    struct dtn_topology topology;
    int rc = dtn_topology_read(machine->topology, hosts, machine, &topology,
                               err);
    bool regular = !machine->noise && !machine->slow && !machine->failed;

    for (int r = 0; regular && r < machine->ranks; r++)
        regular = dtn_play_host(machine, r) == r / per_host;
    if (rc == 0)
        *unit = regular && topology.hosts == hosts ? per_host * topology.unit
                                                   : 0;
    return rc;
}

/* One job that repeats does so in the machine, too. */
static int player_make(struct dtn_player *p, int njobs,
                       struct dtensor_error *err)
{
    const int period = p->jobs[0].period;
    size_t links, parts = (size_t)p->program.nparts + 1;

    if (njobs == 1 && period > 0)
        dtn_topology_fold(&p->topology, (int)((int64_t)p->topology.hosts
                                              * period / p->machine->ranks));
    else
        p->shared = p->shared || p->program.nparts > p->machine->ranks;
    links = (size_t)p->topology.nlinks + 1;
    p->free_ns = calloc(links, sizeof *p->free_ns);
    p->busy_ns = calloc(links, sizeof *p->busy_ns);
    if (p->machine->noise)
        p->noise = calloc(parts, sizeof *p->noise);
    if (!p->free_ns || !p->busy_ns || (p->machine->noise && !p->noise))
        return dtn_fail_nomem(err, "play", 2 * links * sizeof *p->free_ns);
    for (int i = 0; i < p->program.nparts; i++) {
        struct dtn_play_part *part = &p->program.part[i];

        if (p->noise)
            dtn_noise_begin(p->machine->noise, part->rank, &p->noise[i]);
        if (p->machine->slow)
            part->slow = p->machine->slow[part->rank];
    }
    return dtn_topology_fail(p->machine->failed, &p->topology, err);
}

/* --------------------------------------------------------------- whole --- */

static void player_run(struct dtn_player *p)
{
    struct dtn_play_event event;

    for (int i = 0; i < p->program.nparts; i++)
        dtn_events_push(&p->events, p->program.part[i].clock_ns, (uint32_t)i);
    while (!p->failed && !p->cut && dtn_events_pop(&p->events, &event))
        if (event.what & DTN_MESSAGE_EVENT)
            dtn_message_go(p, event.what & ~DTN_MESSAGE_EVENT, event.ns);
        else if (event.what & DTN_PIECE_EVENT)
            dtn_message_next(p, event.what & ~DTN_PIECE_EVENT, event.ns);
        else
            part_run(p, &p->program.part[event.what], event.ns);
}

static int player_stuck(const struct dtn_player *p,
                        const struct dtn_play_part *part,
                        struct dtensor_error *err)
{
    const struct dtn_play_line *line = &p->program.line[part->at];

    return dtn_fail_rank(err, DTENSOR_EINVAL, part->rank, "play: rank %d waits "
                         "for ever for rank %d in step %u of its schedule",
                         part->rank,
                         p->program.channel[line->channel].from_rank,
                         (unsigned)line->step);
}

static int player_ended(const struct dtn_player *p, double *nsp,
                        struct dtensor_error *err)
{
    double ns = 0;

    if (p->failed || p->events.failed
        || (p->machine->caches && dtn_caches_failed(p->machine->caches)))
        return dtn_fail_nomem(err, "play", (size_t)p->nmessages
                                           * sizeof p->message[0]);
    if (p->cut)
        return dtn_fail_rank(err, DTENSOR_EINVAL, p->cut->from_rank, "play: no "
                             "way from rank %d to rank %d: links are down",
                             p->cut->from_rank, p->cut->to_rank);
    for (int i = 0; i < p->program.nparts; i++) {
        if (p->program.part[i].at < p->program.part[i].end)
            return player_stuck(p, &p->program.part[i], err);
        ns = fmax(ns, p->program.part[i].clock_ns);
    }
    *nsp = ns;
    return p->machine->noise ? dtn_noise_covers(p->machine->noise, ns, err) : 0;
}

static int player_result(const struct dtn_player *p, int njobs,
                         struct dtn_play_result *result,
                         struct dtensor_error *err)
{
    struct dtn_play_result made = { .ranks = p->program.nparts,
                                    .steps = (uint64_t)p->program.nlines,
                                    .messages = p->messages };
    int rc = player_ended(p, &made.ns, err);

    if (rc == 0 && p->watch && p->watch->ends)
        rc = dtn_play_ends(p, njobs, &made, err);
    if (rc == 0 && p->watch && p->watch->path)
        rc = dtn_play_path(p, &made, err);
    if (rc == 0) {
        dtn_play_links(p, &made);
        *result = made;
    } else {
        dtn_play_result_fini(&made);
    }
    return rc;
}

static void player_fini(struct dtn_player *p)
{
    dtn_program_fini(&p->program);
    dtn_events_fini(&p->events);
    free(p->noise);
    free(p->free_ns);
    free(p->busy_ns);
    free(p->port);
    free(p->pieces);
    free(p->message);
    free(p->notice);
    free(p->waited);
}

int dtn_play(const struct dtn_play_machine *machine,
             const struct dtn_play_job jobs[], int njobs,
             const struct dtn_play_watch *watch,
             struct dtn_play_result *result, struct dtensor_error *err)
{
    struct dtn_player p = { .machine = machine, .jobs = jobs, .watch = watch,
                            .free_message = DTN_NOTICE_NONE,
                            .free_notice = DTN_NOTICE_NONE };
    int rc = ports_make(&p, err);

    if (rc == 0)
        rc = dtn_program_make(&p.program, jobs, njobs, machine->caches != NULL,
                              err);
    if (rc == 0)
        rc = player_make(&p, njobs, err);
    if (rc == 0) {
        player_run(&p);
        rc = player_result(&p, njobs, result, err);
    }
    player_fini(&p);
    return rc;
}
