/* spec.h - the picture of a tensor: which rank holds which elements */
#ifndef DRAW_SPEC_H
#define DRAW_SPEC_H

#include "tools/draw/picture.h"
#include "dtensor.h"

struct draw_area { int w, h; };

/* Draw it at (x, y), at most room.columns wide, under the title `what` and the
 * spec's own words.  Returns how much of the picture it takes.
 */
struct draw_area draw_spec(struct picture *pic, const char *what,
                           const struct dtensor_spec *spec, int x, int y,
                           struct draw_room room);

#endif
