/* screen.h - what shows the text: its characters, colours and width */
#ifndef DRAW_SCREEN_H
#define DRAW_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

struct draw_screen {
    bool utf8;                    /* else ASCII                               */
    bool colour;                  /* a terminal, and NO_COLOR is not set      */
    bool terminal;                /* longer lines would be broken             */
    int columns;                  /* its width; 80 if unknown                 */
};

struct draw_screen draw_screen_of(FILE *stream);

#endif
