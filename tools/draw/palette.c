/* palette.c - twelve colours; neighbours in the list differ most */
#include "tools/draw/palette.h"

const struct draw_colour draw_palette[DRAW_COLOURS] = {
    { "#a6cbe8", "#1f6fb2", 153, 25 },   { "#fbd09b", "#c96a00", 223, 166 },
    { "#b5dfae", "#2c8a2c", 151, 28 },   { "#f4b3b0", "#c23230", 217, 160 },
    { "#d3c3e8", "#7449b3", 183, 97 },   { "#e3cdb8", "#84522f", 187, 94 },
    { "#f5c3e0", "#c0448f", 218, 162 },  { "#a9e3df", "#12807c", 159, 30 },
    { "#eee79a", "#8d8100", 229, 100 },  { "#c9d3dc", "#52667a", 252, 60 },
    { "#cfe69a", "#5f8700", 193, 64 },   { "#c2c9f2", "#4350b8", 147, 62 },
};
