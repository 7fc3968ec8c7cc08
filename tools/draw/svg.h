/* svg.h - a picture as SVG */
#ifndef DRAW_SVG_H
#define DRAW_SVG_H

#include <stdio.h>

struct picture;

/* `title` is what screen readers and browsers call it.  0, or ENOMEM. */
int draw_svg(const struct picture *pic, const char *title, FILE *stream);

#endif
