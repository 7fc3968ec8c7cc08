/* play.c - simulate the time that schedules take
 *
 * Each rank has a clock and goes through its lines until it waits for a signal
 * that has not been sent.  Inside a host its CPU moves the bytes.  Between
 * hosts it only posts: the message then takes the links of its route one after
 * another, each as soon as its head has come in and the link is free, while
 * the rest follows (cut-through).  Example: two messages of 1000 bytes from
 * hosts 0 and 1 to host 2 at 10 bytes per ns, 500 ns away: both leave at 0,
 * their heads are at the port of host 2 at 500, it takes the first from 500 to
 * 600 and the second from 600 to 700.
 *
 * An event is a rank that goes on, or a message whose head comes to a link.  A
 * rank may be ahead of the events if no other rank uses its port; else it stops
 * at each post until the events are as far, so that a port serves in order.
 */
#include "sched/play.h"
#include "base/array.h"
#include "base/error.h"
#include "sched/play/events.h"
#include "sched/play/program.h"
#include "sched/play/topology.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A put or signal that is on its way. */
struct message {
    uint32_t channel;             /* its way; free: the next free message     */
    uint8_t links, at;            /* of the path, and the next one            */
    bool is_signal;               /* or a put                                 */
    double bytes;                 /* of data, stretched                       */
    double tail_ns;               /* when its last byte comes to the next     */
    uint32_t path[DTN_ROUTE_MAX]; /* links                                    */
};

/* A signal that has not been taken: when it is seen. */
struct notice {
    double seen_ns;
    uint32_t next;                /* of its channel, or of the free ones      */
};

struct player {
    const struct dtn_play_machine *machine;
    const struct dtn_play_job *jobs;
    struct dtn_topology topology;
    struct dtn_program program;
    struct dtn_events events;
    double *free_ns;              /* [links] when the link is free            */
    int *port;                    /* [ranks of the world]                     */
    bool shared;                  /* some port has several parts              */
    struct message *message;      /* pool                                     */
    int nmessages, messages_capacity;
    uint32_t free_message;        /* first free one, or NONE                  */
    struct notice *notice;        /* pool                                     */
    int nnotices, notices_capacity;
    uint32_t free_notice;         /* first free one, or NONE                  */
    bool failed;                  /* out of memory                            */
    uint64_t messages;            /* so far                                   */
};

#define MESSAGE_EVENT 0x80000000u /* events of messages have this bit         */

static int host_of(const struct dtn_play_machine *machine, int rank)
{
    return machine->host ? machine->host[rank] : rank / machine->per_host;
}

/* -------------------------------------------------------------- notices --- */

/* A signal is there, or will be at seen_ns. */
static void notice_add(struct player *p, struct dtn_channel *channel,
                       double seen_ns)
{
    struct dtn_play_part *to = &p->program.part[channel->to];
    uint32_t number = p->free_notice;

    if (number != DTN_NOTICE_NONE) {
        p->free_notice = p->notice[number].next;
    } else if (dtn_array_reserve(&p->notice, &p->notices_capacity,
                                 p->nnotices + 1, sizeof p->notice[0])) {
        number = (uint32_t)p->nnotices++;
    } else {
        p->failed = true;
        return;
    }
    p->notice[number] = (struct notice){ seen_ns, DTN_NOTICE_NONE };
    if (channel->first == DTN_NOTICE_NONE)
        channel->first = number;
    else
        p->notice[channel->last].next = number;
    channel->last = number;
    if (to->waits == (uint32_t)(channel - p->program.channel)) {
        to->waits = DTN_NOTICE_NONE;
        dtn_events_push(&p->events, fmax(seen_ns, to->clock_ns),
                        (uint32_t)channel->to);
    }
}

/* Take the next signal; false: there is none. */
static bool notice_take(struct player *p, struct dtn_channel *channel,
                        double *seen_ns)
{
    const uint32_t number = channel->first;

    if (number == DTN_NOTICE_NONE)
        return false;
    *seen_ns = p->notice[number].seen_ns;
    channel->first = p->notice[number].next;
    p->notice[number].next = p->free_notice;
    p->free_notice = number;
    return true;
}

/* ------------------------------------------------------------- messages --- */

/* The link takes a message whose head comes at head_ns: when it starts.  A
 * signal in a host is a line of its own, and waits for no other rank's bytes.
 */
static double link_take(struct player *p, const struct message *m,
                        double head_ns)
{
    const struct dtn_level *level = dtn_link_level(&p->topology,
                                                   m->path[m->at]);
    double *free_ns = &p->free_ns[m->path[m->at]];
    const double start = m->links == 1 && m->bytes == 0
                       ? head_ns : fmax(head_ns, *free_ns);

    *free_ns = fmax(*free_ns, start + fmax(level->gap_ns,
                                           m->bytes * level->byte_ns));
    return start;
}

static void message_land(struct player *p, struct dtn_channel *channel,
                         bool is_signal, double ns)
{
    channel->landed_ns = fmax(channel->landed_ns, ns);
    if (is_signal)
        notice_add(p, channel, channel->landed_ns);
}

/* Its head is at the next link of its path. */
static void message_go(struct player *p, uint32_t number, double head_ns)
{
    struct message *m = &p->message[number];
    const struct dtn_level *level = dtn_link_level(&p->topology,
                                                   m->path[m->at]);
    const double start = link_take(p, m, head_ns);
    const double last = start + m->bytes * level->byte_ns;
    struct dtn_channel *channel = &p->program.channel[m->channel];

    if (m->at == 0)
        channel->left_ns = last;
    m->tail_ns = fmax(m->tail_ns, last) + level->latency_ns;
    if (++m->at < m->links) {
        dtn_events_push(&p->events, start + level->latency_ns,
                        number | MESSAGE_EVENT);
        return;
    }
    channel->flying--;
    message_land(p, channel, m->is_signal, m->tail_ns);
    m->channel = p->free_message;
    p->free_message = number;
}

static uint32_t message_new(struct player *p)
{
    uint32_t number = p->free_message;

    if (number != DTN_NOTICE_NONE) {
        p->free_message = p->message[number].channel;
        return number;
    }
    if (!dtn_array_reserve(&p->message, &p->messages_capacity,
                           p->nmessages + 1, sizeof p->message[0])) {
        p->failed = true;
        return DTN_NOTICE_NONE;
    }
    return (uint32_t)p->nmessages++;
}

/* A message of a line; its path is not set.  NULL: out of memory. */
static struct message *message_of(struct player *p,
                                  const struct dtn_play_line *line,
                                  double stretch, uint32_t *numberp)
{
    const uint32_t number = message_new(p);

    if (number == DTN_NOTICE_NONE)
        return NULL;
    p->message[number] = (struct message){
        .channel = line->channel, .is_signal = line->op == DTN_LINE_SIGNAL,
        .bytes = (double)line->bytes * stretch };
    p->program.channel[line->channel].flying++;
    *numberp = number;
    return &p->message[number];
}

/* Between hosts: the port does it. */
static void post_far(struct player *p, struct dtn_play_part *part,
                     const struct dtn_play_line *line)
{
    struct dtn_channel *channel = &p->program.channel[line->channel];
    uint32_t number;
    struct message *m = message_of(p, line, 1, &number);

    part->clock_ns += p->machine->far.post_ns;
    if (!m)
        return;
    m->links = (uint8_t)dtn_topology_route(
        &p->topology, p->port[channel->from_rank], p->port[channel->to_rank],
        m->path);
    message_go(p, number, part->clock_ns);
}

static double stretch_of(const struct player *p,
                         const struct dtn_play_part *part)
{
    const double stretch = p->jobs[part->job].stretch;

    return stretch > 0 ? stretch : 1;
}

/* Inside a host: the CPU does it. */
static void post_near(struct player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line)
{
    struct dtn_channel *channel = &p->program.channel[line->channel];
    const struct dtn_play_wire *near = &p->machine->near;
    const double stretch = stretch_of(p, part);
    const double start = part->clock_ns + near->post_ns;
    uint32_t number;
    struct message *m;

    part->clock_ns = start + near->byte_ns * stretch * (double)line->bytes;
    if (line->bytes == 0 && channel->flying == 0) {
        message_land(p, channel, line->op == DTN_LINE_SIGNAL,
                     part->clock_ns + near->latency_ns);
        return;
    }
    m = message_of(p, line, stretch, &number);
    if (!m)
        return;
    m->links = 1;
    m->path[0] = dtn_topology_memory(&p->topology, channel->to_rank);
    dtn_events_push(&p->events, start, number | MESSAGE_EVENT);
}

/* ---------------------------------------------------------------- lines --- */

static bool is_near(const struct player *p, const struct dtn_channel *channel)
{
    return host_of(p->machine, channel->from_rank)
        == host_of(p->machine, channel->to_rank);
}

/* A put or a signal; false: not before the events are as far. */
static bool line_post(struct player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line, double now_ns)
{
    if (is_near(p, &p->program.channel[line->channel])) {
        post_near(p, part, line);
    } else if (p->shared && part->clock_ns > now_ns) {
        dtn_events_push(&p->events, part->clock_ns, (uint32_t)
                        (part - p->program.part));
        return false;
    } else {
        post_far(p, part, line);
    }
    p->messages++;
    return true;
}

/* The CPU passes over the bytes of a line. */
static void part_work(const struct player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line, double byte_ns)
{
    part->clock_ns += byte_ns * stretch_of(p, part) * (double)line->bytes;
}

/* false: the signal has not been sent. */
static bool line_wait(struct player *p, struct dtn_play_part *part,
                      const struct dtn_play_line *line)
{
    struct dtn_channel *channel = &p->program.channel[line->channel];
    const struct dtn_play_wire *wire = is_near(p, channel) ? &p->machine->near
                                                           : &p->machine->far;
    double seen_ns;

    if (!notice_take(p, channel, &seen_ns)) {
        part->waits = line->channel;
        return false;
    }
    part->clock_ns = fmax(part->clock_ns, seen_ns) + wire->notice_ns;
    part_work(p, part, line, p->machine->copied_ns);
    return true;
}

/* false: the part goes on later, with the same line. */
static bool line_run(struct player *p, struct dtn_play_part *part,
                     const struct dtn_play_line *line, double now_ns)
{
    const struct dtn_play_machine *machine = p->machine;

    switch (line->op) {
    case DTN_LINE_PUT: case DTN_LINE_SIGNAL:
        return line_post(p, part, line, now_ns);
    case DTN_LINE_WAIT:
        return line_wait(p, part, line);
    case DTN_LINE_FLUSH:
        part->clock_ns = fmax(part->clock_ns,
                              p->program.channel[line->channel].left_ns);
        break;
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

static void part_run(struct player *p, struct dtn_play_part *part,
                     double now_ns)
{
    while (part->at < part->end
           && line_run(p, part, &p->program.line[part->at], now_ns))
        part->at++;
}

/* ---------------------------------------------------------------- whole --- */

/* Give each rank a port: of its host, in turn. */
static int ports_make(struct player *p, int rails, struct dtensor_error *err)
{
    const struct dtn_play_machine *machine = p->machine;
    const size_t n = (size_t)machine->ranks;
    int *seen, hosts = 0;

    p->port = calloc(n, sizeof *p->port);
    for (int r = 0; r < machine->ranks; r++)
        if (host_of(machine, r) >= hosts)
            hosts = host_of(machine, r) + 1;
    seen = calloc((size_t)hosts, sizeof *seen);
    if (!p->port || !seen) {
        free(seen);
        return dtn_fail_nomem(err, "play", n * sizeof *p->port);
    }
    for (int r = 0; r < machine->ranks; r++) {
        const int host = host_of(machine, r);

        p->port[r] = host * rails + seen[host]++ % rails;
        p->shared = p->shared || seen[host] > rails;
    }
    free(seen);
    if (!machine->topology)
        dtn_topology_flat(&p->topology, hosts, rails, machine);
    return 0;
}

/* One job alone repeats in the machine as its ranks do. */
static void player_fold(struct player *p, int njobs)
{
    const int period = p->jobs[0].period;

    if (njobs == 1 && period > 0)
        dtn_topology_fold(&p->topology,
                          period / p->machine->per_host > 0
                          ? period / p->machine->per_host : 1);
    p->shared = p->shared || p->program.nparts > p->machine->ranks;
}

static int player_stuck(const struct player *p,
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

static int player_result(const struct player *p, struct dtn_play_result *result,
                         struct dtensor_error *err)
{
    double ns = 0;

    if (p->failed || p->events.failed)
        return dtn_fail_nomem(err, "play", (size_t)p->nmessages
                                           * sizeof(struct message));
    for (int i = 0; i < p->program.nparts; i++) {
        const struct dtn_play_part *part = &p->program.part[i];

        if (part->at < part->end)
            return player_stuck(p, part, err);
        ns = fmax(ns, part->clock_ns);
    }
    *result = (struct dtn_play_result){ .ns = ns,
        .steps = (uint64_t)p->program.nlines, .messages = p->messages };
    return 0;
}

static void player_run(struct player *p)
{
    struct dtn_play_event event;

    for (int i = 0; i < p->program.nparts; i++)
        dtn_events_push(&p->events, p->program.part[i].clock_ns, (uint32_t)i);
    while (!p->failed && dtn_events_pop(&p->events, &event))
        if (event.what & MESSAGE_EVENT)
            message_go(p, event.what & ~MESSAGE_EVENT, event.ns);
        else
            part_run(p, &p->program.part[event.what], event.ns);
}

int dtn_play(const struct dtn_play_machine *machine,
             const struct dtn_play_job jobs[], int njobs,
             struct dtn_play_result *result, struct dtensor_error *err)
{
    struct player p = { .machine = machine, .jobs = jobs,
                        .free_message = DTN_NOTICE_NONE,
                        .free_notice = DTN_NOTICE_NONE };
    int rc = ports_make(&p, machine->rails, err);

    if (rc == 0)
        rc = dtn_program_make(&p.program, jobs, njobs, err);
    if (rc == 0) {
        player_fold(&p, njobs);
        p.free_ns = calloc((size_t)p.topology.nlinks, sizeof *p.free_ns);
        if (!p.free_ns)
            rc = dtn_fail_nomem(err, "play", (size_t)p.topology.nlinks
                                             * sizeof *p.free_ns);
    }
    if (rc == 0) {
        player_run(&p);
        rc = player_result(&p, result, err);
    }
    dtn_program_fini(&p.program);
    dtn_events_fini(&p.events);
    free(p.free_ns);
    free(p.port);
    free(p.message);
    free(p.notice);
    return rc;
}
