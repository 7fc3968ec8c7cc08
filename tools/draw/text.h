/* text.h - a picture as lines of text */
#ifndef DRAW_TEXT_H
#define DRAW_TEXT_H

#include <stdio.h>

struct draw_screen;
struct picture;

/* Lines begin with `prefix`.  0, or ENOMEM. */
int draw_text(const struct picture *pic, const struct draw_screen *screen,
              const char *prefix, FILE *stream);

#endif
