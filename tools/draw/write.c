/* write.c - writes a picture as SVG or as text */
#include "tools/draw/write.h"
#include "tools/draw/screen.h"
#include "tools/draw/svg.h"
#include "tools/draw/text.h"

#include <string.h>

enum { WRITE_SVG_COLUMNS = 140 };

struct draw_room draw_room_of(bool svg, const char *prefix, FILE *stream)
{
    return (struct draw_room){
        .fine = svg, .columns = svg ? WRITE_SVG_COLUMNS
            : draw_screen_of(stream).columns - (int)strlen(prefix) };
}

int draw_write(const struct picture *pic, bool svg, const char *title,
               const char *prefix, FILE *stream)
{
    const struct draw_screen screen = draw_screen_of(stream);

    return svg ? draw_svg(pic, title, stream)
               : draw_text(pic, &screen, prefix, stream);
}
