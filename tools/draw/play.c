/* play.c - a schedule played: when each step of each rank begins and ends
 *
 * Each rank has a clock and goes through its steps until it waits for a signal
 * that was not sent yet; then the next rank goes on.  What a signal, a message
 * and a byte cost is taken from the predictions of dtensor_call_ways(), so that
 * the picture and the table speak of the same machine.
 */
#include "tools/draw/play.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAY_CHUNK = 256, PLAY_WAYS_MAX = 32 };

struct play_steps {
    struct dtensor_call_step *step;
    int n, at;                    /* steps, and the next one                  */
    double clock_ns;
    bool failed;
};

/* Arrivals of signals on one way between two ranks, in order. */
struct play_queue {
    double *arrival_ns;
    int n, taken;
};

struct player {
    struct play *play;
    const int *host;
    int n;
    struct play_steps *rank;      /* [n]                                      */
    struct play_queue *queue;     /* [n * n]: from, to                        */
    double unit_ns[DTENSOR_NCOSTS];
    bool failed;
};

/* The array of n entries, with room for one more; NULL: out of memory. */
static void *play_room(void *array, int n, size_t size)
{
    return n % PLAY_CHUNK ? array
         : realloc(array, ((size_t)n + PLAY_CHUNK) * size);
}

static void play_collect(const struct dtensor_call_step *step, void *arg)
{
    struct play_steps *steps = arg;
    void *room = steps->failed ? NULL
               : play_room(steps->step, steps->n, sizeof *step);

    if (!room) {
        steps->failed = true;
        return;
    }
    steps->step = room;
    steps->step[steps->n++] = *step;
}

/* --------------------------------------------------------------- costs --- */

/* What one of each costs, from a prediction that has some of it. */
static int play_costs(const struct dtensor_mesh *mesh,
                      const struct dtensor_call *call, struct player *player,
                      struct dtensor_error *err)
{
    struct dtensor_way ways[PLAY_WAYS_MAX];
    int n, rc = dtensor_call_ways(mesh, call, ways, PLAY_WAYS_MAX, &n, err);

    for (int c = 0; rc == 0 && c < DTENSOR_NCOSTS; c++)
        for (int i = 0; i < n && i < PLAY_WAYS_MAX; i++)
            if (ways[i].amount[c] > 0)
                player->unit_ns[c] = ways[i].part_ns[c] / ways[i].amount[c];
    return rc;
}

static double play_unit(const struct player *player, enum dtensor_cost cost,
                        int from, int to)
{
    const int between = DTENSOR_COST_INTER_HOPS - DTENSOR_COST_INTRA_HOPS;

    return player->unit_ns[cost + (player->host[from] != player->host[to]
                                   ? between : 0)];
}

/* ------------------------------------------------------------- playing --- */

static void play_note(struct player *player, struct play_event event)
{
    struct play *play = player->play;
    void *room = player->failed ? NULL
               : play_room(play->event, play->n, sizeof event);

    if (!room) {
        player->failed = true;
        return;
    }
    play->event = room;
    play->event[play->n++] = event;
    if (event.end_ns > play->end_ns)
        play->end_ns = event.end_ns;
}

static void play_signal(struct player *player, int me, int to, size_t bytes)
{
    struct play_queue *queue = &player->queue[me * player->n + to];
    struct play_steps *rank = &player->rank[me];
    const double start = rank->clock_ns;
    void *room = play_room(queue->arrival_ns, queue->n, sizeof(double));

    if (!room) {
        player->failed = true;
        return;
    }
    rank->clock_ns += play_unit(player, DTENSOR_COST_INTRA_MESSAGES, me, to)
        + (double)bytes * play_unit(player, DTENSOR_COST_INTRA_BYTES, me, to);
    queue->arrival_ns = room;
    queue->arrival_ns[queue->n++] = rank->clock_ns
        + play_unit(player, DTENSOR_COST_INTRA_HOPS, me, to);
    play_note(player, (struct play_event){
        bytes ? PLAY_DATA : PLAY_SIGNAL, me, to, 0, start,
        queue->arrival_ns[queue->n - 1], bytes });
}

/* A put goes to the peer, a load comes from it. */
static void play_move(struct player *player, int me,
                      const struct dtensor_call_step *step)
{
    const bool put = step->kind == DTENSOR_STEP_PUT;
    const int peer = step->peer;
    double *clock = &player->rank[me].clock_ns, start = *clock;

    if (put)
        *clock += play_unit(player, DTENSOR_COST_INTRA_MESSAGES, me, peer);
    *clock += (double)step->bytes
            * play_unit(player, DTENSOR_COST_INTRA_BYTES, me, peer);
    play_note(player, (struct play_event){
        PLAY_DATA, put ? me : peer, put ? peer : me, 0, start,
        *clock + (put ? play_unit(player, DTENSOR_COST_INTRA_HOPS, me, peer)
                      : 0), step->bytes });
}

static void play_local(struct player *player, int me,
                       const struct dtensor_call_step *step)
{
    double *clock = &player->rank[me].clock_ns, start = *clock;

    *clock += (double)step->bytes * player->unit_ns[step->reduces
                                    ? DTENSOR_COST_FOLDED
                                    : DTENSOR_COST_COPIED];
    play_note(player, (struct play_event){ PLAY_LOCAL, me, me, step->reduces,
                                           start, *clock, step->bytes });
}

/* false: it waits for a signal that was not sent yet. */
static bool play_step(struct player *player, int me)
{
    struct play_steps *rank = &player->rank[me];
    const struct dtensor_call_step *step = &rank->step[rank->at];
    struct play_queue *queue;

    switch (step->kind) {
    case DTENSOR_STEP_SIGNAL:
        play_signal(player, me, step->peer, step->bytes);
        break;
    case DTENSOR_STEP_WAIT:
        queue = &player->queue[step->peer * player->n + me];
        if (queue->taken == queue->n)
            return false;
        if (queue->arrival_ns[queue->taken] > rank->clock_ns)
            rank->clock_ns = queue->arrival_ns[queue->taken];
        queue->taken++;
        break;
    case DTENSOR_STEP_PUT: case DTENSOR_STEP_LOAD:
        play_move(player, me, step);
        break;
    default:
        play_local(player, me, step);
    }
    rank->at++;
    return true;
}

static void play_run(struct player *player)
{
    bool moved = true;

    while (moved && !player->failed) {
        moved = false;
        for (int me = 0; me < player->n; me++)
            while (player->rank[me].at < player->rank[me].n &&
                   !player->failed && play_step(player, me))
                moved = true;
    }
}

/* --------------------------------------------------------------- whole --- */

static int play_compare(const void *a, const void *b)
{
    const struct play_event *x = a, *y = b;

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->from != y->from ? x->from - y->from : x->to - y->to;
}

static int play_nomem(struct dtensor_error *err)
{
    *err = (struct dtensor_error){ .code = DTENSOR_ENOMEM,
                                    .rank = -1 };
    snprintf(err->text, sizeof err->text, "schedule: out of memory");
    return DTENSOR_ENOMEM;
}

static void player_fini(struct player *player)
{
    for (int i = 0; player->rank && i < player->n; i++)
        free(player->rank[i].step);
    for (int i = 0; player->queue && i < player->n * player->n; i++)
        free(player->queue[i].arrival_ns);
    free(player->rank);
    free(player->queue);
}

int play_call(const struct dtensor_mesh *mesh, const struct dtensor_call *call,
              const char *algorithm, const int host[], struct play *play,
              struct dtensor_error *err)
{
    const size_t n = (size_t)dtensor_mesh_size(mesh);
    struct player player = { .play = play, .host = host, .n = (int)n,
                             .rank = calloc(n, sizeof *player.rank),
                             .queue = calloc(n * n, sizeof *player.queue) };
    int rc;

    *play = (struct play){ .n = 0 };
    player.failed = !player.rank || !player.queue;
    rc = player.failed ? play_nomem(err)
                       : play_costs(mesh, call, &player, err);
    for (int p = 0; rc == 0 && p < player.n; p++) {
        rc = dtensor_call_steps(mesh, call, algorithm, p, play_collect,
                                &player.rank[p], err);
        player.failed = player.failed || player.rank[p].failed;
    }
    if (rc == 0)
        play_run(&player);
    if (rc == 0 && player.failed)
        rc = play_nomem(err);
    player_fini(&player);
    if (rc == 0 && play->n > 0)
        qsort(play->event, (size_t)play->n, sizeof *play->event, play_compare);
    return rc;
}

void play_fini(struct play *play)
{
    free(play->event);
}
