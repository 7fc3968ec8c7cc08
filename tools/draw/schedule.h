/* schedule.h - the picture of a collective: who sends what to whom, and when */
#ifndef DRAW_SCHEDULE_H
#define DRAW_SCHEDULE_H

#include "tools/draw/picture.h"
#include "dtensor.h"

enum { DRAW_SCHEDULE_RANKS = 64 };    /* more are refused                     */

struct draw_call {
    const char *title;            /* the first line                           */
    const struct dtensor_mesh *mesh;           /* its ranks                   */
    const struct dtensor_call *call;           /* what they do                */
    const char *algorithm;        /* NULL: the one that the call takes        */
};

/* Errors: EINVAL  too many ranks, or as dtensor_simulate();  ENOMEM */
int draw_schedule(struct picture *pic, const struct draw_call *call,
                  struct draw_room room, struct dtensor_error *err);

#endif
