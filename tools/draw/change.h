/* change.h - the picture of a redistribute: before, what moves, after */
#ifndef DRAW_CHANGE_H
#define DRAW_CHANGE_H

#include "tools/draw/picture.h"
#include "dtensor.h"

void draw_change(struct picture *pic, const struct dtensor_plan *plan,
                 const struct dtensor_spec *from,
                 const struct dtensor_spec *to, struct draw_room room);

#endif
