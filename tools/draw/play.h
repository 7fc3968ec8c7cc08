/* play.h - what each rank of a call does, and when */
#ifndef DRAW_PLAY_H
#define DRAW_PLAY_H

#include "dtensor.h"

#include <stddef.h>

enum play_kind { PLAY_DATA, PLAY_SIGNAL, PLAY_LOCAL };

struct play_event {
    enum play_kind kind;          /* what it is                               */
    int from, to;                 /* positions; LOCAL: both are the rank      */
    int reduces;                  /* LOCAL: 1: terms are combined             */
    double start_ns, end_ns;      /* at `from` and at `to`                    */
    size_t bytes;                 /* of data                                  */
};

struct play {
    struct play_event *event;     /* by start                                 */
    int n;                        /* number of them                           */
    double end_ns;                /* of the slowest rank                      */
};

/* Simulate the schedules of all ranks of the mesh.  play_fini() in any case.
 * Errors: those of dtensor_simulate()
 */
int play_call(const struct dtensor_mesh *mesh, const struct dtensor_call *call,
              const char *algorithm, struct play *play,
              struct dtensor_error *err);
void play_fini(struct play *play);

#endif
