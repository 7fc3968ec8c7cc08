/* palette.h - the colours of ranks, hosts and curves
 *
 * Light ones for areas, on which black words can be read, and dark ones of the
 * same hue for lines on white.  A terminal gets the nearest of its 256.
 */
#ifndef DRAW_PALETTE_H
#define DRAW_PALETTE_H

#include "tools/draw/picture.h"

struct draw_colour {
    const char *light, *dark;     /* of SVG                                   */
    int light_code, dark_code;    /* of a terminal                            */
};

extern const struct draw_colour draw_palette[DRAW_COLOURS];

#endif
