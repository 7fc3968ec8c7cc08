/* messages.c - puts and signals on their way, link by link
 *
 * Example: two messages of 1000 bytes from hosts 0 and 1 to host 2 at 10 bytes
 * per ns, 500 ns away: both leave at 0, their heads are at the port of host 2
 * at 500, it takes the first from 500 to 600 and the second from 600 to 700.
 *
 * A rank that posts to several peers has a queue for each, and its port takes
 * them in turn, as a network device its queue pairs and a kernel its sockets: a
 * long message goes in up to 16 pieces, each at the end of the port's queue.
 * In order and whole, messages for one link can all be behind messages for
 * another, which stays idle.  All messages have pieces of about one length: if
 * each had 16, one of 16 MiB would have 16 times the bandwidth of one of 1 MiB.
 */
#include "base/array.h"
#include "base/compiler.h"
#include "sched/play/player.h"
#include "sched/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* -------------------------------------------------------------- notices --- */

/* A place for a notice; DTN_NOTICE_NONE: out of memory. */
static uint32_t notice_new(struct dtn_player *p)
{
    const uint32_t number = p->free_notice;

    if (number != DTN_NOTICE_NONE) {
        p->free_notice = p->notice[number].next;
        return number;
    }
    if (dtn_array_reserve(&p->notice, &p->notices_capacity, p->nnotices + 1,
                          sizeof p->notice[0]))
        return (uint32_t)p->nnotices++;
    p->failed = true;
    return DTN_NOTICE_NONE;
}

/* A signal is there, or will be when it is seen. */
static void notice_add(struct dtn_player *p, struct dtn_channel *channel,
                       uint32_t line, double sent_ns, double seen_ns)
{
    struct dtn_play_part *to = &p->program.part[channel->to];
    const uint32_t number = notice_new(p);

    if (number == DTN_NOTICE_NONE)
        return;
    p->notice[number] = (struct dtn_play_notice){ sent_ns, seen_ns, line,
                                                  DTN_NOTICE_NONE };
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

bool dtn_notice_take(struct dtn_player *p, struct dtn_channel *channel,
                     struct dtn_play_notice *notice)
{
    const uint32_t number = channel->first;

    if (number == DTN_NOTICE_NONE)
        return false;
    *notice = p->notice[number];
    channel->first = notice->next;
    p->notice[number].next = p->free_notice;
    p->free_notice = number;
    return true;
}

/* ---------------------------------------------------------------- links --- */

/* The link takes a message whose head comes at head_ns: when it starts.  A
 * signal in a host is a line of its own, and waits for no other rank's bytes.
 */
static double link_take(struct dtn_player *p, const struct dtn_play_message *m,
                        double head_ns)
{
    const uint32_t link = m->path[m->at];
    const struct dtn_level *level = dtn_link_level(&p->topology, link);
    const double bytes_ns = m->bytes * level->byte_ns;
    const double start = m->links == 1 && m->bytes == 0
                       ? head_ns : fmax(head_ns, p->free_ns[link]);

    p->free_ns[link] = fmax(p->free_ns[link],
                            start + fmax(level->gap_ns, bytes_ns));
    p->busy_ns[link] += bytes_ns;
    return start;
}

static void message_land(struct dtn_player *p, uint32_t line, double sent_ns,
                         double ns)
{
    const struct dtn_play_line *what = &p->program.line[line];
    struct dtn_channel *channel = &p->program.channel[what->channel];
    const bool is_signal = what->op == DTN_LINE_SIGNAL;

    channel->landed_ns = fmax(channel->landed_ns, ns);
    if (is_signal)
        notice_add(p, channel, line, sent_ns, channel->landed_ns);
    dtn_play_tell(p, &(struct dtensor_simulated_event){
        .kind = is_signal ? DTENSOR_STEP_SIGNAL : DTENSOR_STEP_PUT,
        .rank = channel->from_rank, .peer = channel->to_rank,
        .call = p->program.part[channel->from].job,
        .step = (int)what->step, .start_ns = sent_ns, .end_ns = ns,
        .bytes = what->bytes });
}

void dtn_message_go(struct dtn_player *p, uint32_t number, double head_ns)
{
    struct dtn_play_message *m = &p->message[number];
    const struct dtn_level *level = dtn_link_level(&p->topology,
                                                   m->path[m->at]);
    const double start = link_take(p, m, head_ns);
    const double last = start + m->bytes * level->byte_ns;
    struct dtn_channel *channel =
        &p->program.channel[p->program.line[m->line].channel];
    const uint32_t line = m->line;

    if (m->at == 0)
        channel->left_ns = last;
    m->tail_ns = fmax(m->tail_ns, last) + level->latency_ns;
    if (++m->at < m->links) {
        dtn_events_push(&p->events, start + level->latency_ns,
                        number | DTN_MESSAGE_EVENT);
        return;
    }
    channel->flying--;
    m->line = p->free_message;
    p->free_message = number;
    if (m->last)
        message_land(p, line, m->sent_ns, m->tail_ns);
}

/* ------------------------------------------------------------- messages --- */

/* A message of a line; its path is not set.  NULL: out of memory. */
static struct dtn_play_message *message_new(struct dtn_player *p,
                                            const struct dtn_play_line *line,
                                            uint32_t *numberp)
{
    uint32_t number = p->free_message;

    if (number != DTN_NOTICE_NONE) {
        p->free_message = p->message[number].line;
    } else if (dtn_array_reserve(&p->message, &p->messages_capacity,
                                 p->nmessages + 1, sizeof p->message[0])) {
        number = (uint32_t)p->nmessages++;
    } else {
        p->failed = true;
        return NULL;
    }
    p->message[number] = (struct dtn_play_message){
        .line = (uint32_t)(line - p->program.line),
        .bytes = (double)line->bytes, .last = true,
        .piece = (double)line->bytes, .next = DTN_NOTICE_NONE };
    p->program.channel[line->channel].flying++;
    *numberp = number;
    return &p->message[number];
}

/* --------------------------------------------------------------- pieces --- */

/* About as long as those of the longest message: a port gives all peers as many
 * bytes in a turn.  Parts of a buffer differ by a cache line for each of their
 * blocks, and have as many.
 */
static double piece_bytes(const struct dtn_player *p, double bytes)
{
    const double longest = fmax((double)p->program.longest, bytes);

    return bytes / fmax(1, floor(fmin(longest, 1.02 * bytes + DTN_CACHE_LINE)
                                 / longest * dtn_pieces(longest)));
}

/* All of it is one piece, but for rounding. */
static bool message_is_last(const struct dtn_play_message *m)
{
    return m->bytes < 1.5 * m->piece || m->piece <= 0;
}

/* A message of its own for the next piece.  false: out of memory. */
static bool piece_new(struct dtn_player *p, uint32_t whole, uint32_t *numberp)
{
    const struct dtn_play_line *line =
        &p->program.line[p->message[whole].line];
    struct dtn_play_message *piece = message_new(p, line, numberp), *m;

    if (!piece)
        return false;
    m = &p->message[whole];
    *piece = *m;
    piece->bytes = m->piece;
    piece->last = false;
    m->bytes -= m->piece;
    return true;
}

void dtn_message_next(struct dtn_player *p, uint32_t number, double now_ns)
{
    struct dtn_channel *channel =
        &p->program.channel[p->program.line[p->message[number].line].channel];
    uint32_t piece, next;

    while (message_is_last(&p->message[number])) {
        next = p->message[number].next;
        dtn_message_go(p, number, now_ns);
        if (next == DTN_NOTICE_NONE) {
            channel->posting = DTN_NOTICE_NONE;
            p->pieces[p->port[channel->from_rank]]--;
            return;
        }
        number = next;
    }
    channel->posting = number;
    if (!piece_new(p, number, &piece))
        return;
    dtn_message_go(p, piece, now_ns);
    dtn_events_push(&p->events, channel->left_ns, number | DTN_PIECE_EVENT);
}

/* It is at its port now, or after what waits there for the same peer. */
static void message_post(struct dtn_player *p, struct dtn_channel *channel,
                         uint32_t number, double now_ns)
{
    const bool whole = message_is_last(&p->message[number]);

    if (channel->posting != DTN_NOTICE_NONE) {
        p->message[channel->posted].next = number;
        channel->posted = number;
    } else if (whole) {
        dtn_message_go(p, number, now_ns);
    } else {
        channel->posted = number;
        p->pieces[p->port[channel->from_rank]]++;
        dtn_message_next(p, number, now_ns);
    }
}

/* ------------------------------------------------- between and inside hosts */

void dtn_message_far(struct dtn_player *p, const struct dtn_play_line *line,
                     double now_ns)
{
    struct dtn_channel *channel = &p->program.channel[line->channel];
    uint32_t number;
    struct dtn_play_message *m = message_new(p, line, &number);
    int links;

    if (!m)
        return;
    links = dtn_topology_route(&p->topology, p->port[channel->from_rank],
                               p->port[channel->to_rank], m->path);
    if (links < 0) {
        p->cut = channel;
        return;
    }
    m->links = (uint8_t)links;
    m->sent_ns = now_ns;
    m->piece = piece_bytes(p, m->bytes);
    message_post(p, channel, number, now_ns);
}

void dtn_message_near(struct dtn_player *p, const struct dtn_play_line *line,
                      double bytes, double start_ns, double end_ns)
{
    const struct dtn_channel *channel = &p->program.channel[line->channel];
    uint32_t number;
    struct dtn_play_message *m;

    if (line->bytes == 0 && channel->flying == 0) {
        message_land(p, (uint32_t)(line - p->program.line), end_ns,
                     end_ns + p->machine->near.latency_ns);
        return;
    }
    m = message_new(p, line, &number);
    if (!m)
        return;
    m->links = 1;
    m->path[0] = dtn_topology_link(&p->topology, DTN_LEVEL_MEMORY,
                                   channel->to_rank);
    m->bytes = bytes;
    m->sent_ns = line->op == DTN_LINE_PUT ? start_ns : end_ns;
    dtn_events_push(&p->events, start_ns, number | DTN_MESSAGE_EVENT);
}
