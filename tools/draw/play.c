/* play.c - what each rank of a call does, and when
 *
 * The schedules are simulated by dtensor_simulate(), with the costs and hosts
 * of the context: pictures, and dtensor-plan --simulate, speak of the same
 * machine.
 */
#include "tools/draw/play.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLAY_CHUNK = 256 };

/* The events of a mesh that are being kept. */
struct collector {
    const struct dtensor_mesh *mesh;
    struct play *play;
    bool failed;                  /* out of memory                            */
};

static enum play_kind kind_of(const struct dtensor_simulated_event *event)
{
    switch (event->kind) {
    case DTENSOR_STEP_SIGNAL:
        return event->bytes > 0 ? PLAY_DATA : PLAY_SIGNAL;
    case DTENSOR_STEP_PUT: case DTENSOR_STEP_LOAD:
        return PLAY_DATA;
    default:
        return PLAY_LOCAL;
    }
}

static dtensor_simulated_f collect;

/* A put goes to the peer, a load comes from it. */
static void collect(const struct dtensor_simulated_event *event, void *arg)
{
    struct collector *collector = arg;
    struct play *play = collector->play;
    const int me = dtensor_mesh_index(collector->mesh, event->rank);
    const int peer = dtensor_mesh_index(collector->mesh, event->peer);
    const bool load = event->kind == DTENSOR_STEP_LOAD;

    if (play->n % PLAY_CHUNK == 0 && !collector->failed) {
        void *room = realloc(play->event, ((size_t)play->n + PLAY_CHUNK)
                                          * sizeof play->event[0]);

        collector->failed = !room;
        play->event = room ? room : play->event;
    }
    if (collector->failed)
        return;
    play->event[play->n++] = (struct play_event){
        .kind = kind_of(event), .from = load ? peer : me,
        .to = load ? me : peer, .reduces = event->reduces,
        .start_ns = event->start_ns, .end_ns = event->end_ns,
        .bytes = (size_t)event->bytes };
}

static int compare(const void *a, const void *b)
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

int play_call(const struct dtensor_mesh *mesh, const struct dtensor_call *call,
              const char *algorithm, struct play *play,
              struct dtensor_error *err)
{
    const struct dtensor_simulated asked = { .mesh = mesh, .call = call,
                                             .algorithm = algorithm };
    struct collector collector = { .mesh = mesh, .play = play };
    struct dtensor_simulation result = { .ns = 0 };
    int rc;

    *play = (struct play){ .n = 0 };
    rc = dtensor_simulate(NULL, &asked, 1, collect, &collector, &result, err);
    play->end_ns = result.ns;
    dtensor_simulation_fini(&result);
    if (rc == 0 && collector.failed)
        rc = play_nomem(err);
    if (rc == 0 && play->n > 0)
        qsort(play->event, (size_t)play->n, sizeof *play->event, compare);
    return rc;
}

void play_fini(struct play *play)
{
    free(play->event);
}
