/* write.h - a picture in the form that was asked for */
#ifndef DRAW_WRITE_H
#define DRAW_WRITE_H

#include "tools/draw/picture.h"

#include <stdio.h>

/* The room of an SVG, or of the screen behind `stream` less the prefix. */
struct draw_room draw_room_of(bool svg, const char *prefix, FILE *stream);

/* As SVG with that title, or as text whose lines begin with `prefix`.  0, or
 * ENOMEM.
 */
int draw_write(const struct picture *pic, bool svg, const char *title,
               const char *prefix, FILE *stream);

#endif
