/* svg.c - a picture as SVG
 *
 * Only rect, line and text elements are used, with classes that say what they
 * are, so any viewer and any test can read them.  A cell is 8 by 16 pixels.
 * Texts have a fixed-width font of that width.  On hatched ground a text has a
 * rectangle of the ground's colour behind it.
 */
#include "tools/draw/svg.h"
#include "tools/draw/palette.h"
#include "tools/draw/picture.h"

#include <errno.h>

enum { CELL_X = 8, CELL_Y = 16, MARGIN = 16 };

#define SVG_INK "#222222"

static double svg_x(double x)
{
    return MARGIN + (x + 0.5) * CELL_X;
}

static double svg_y(double y)
{
    return MARGIN + (y + 0.5) * CELL_Y;
}

/* Bytes that mean something to XML are spelled out; controls are left out. */
static void svg_escaped(const char *text, FILE *stream)
{
    for (; *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", stream); break;
        case '>': fputs("&gt;", stream); break;
        case '&': fputs("&amp;", stream); break;
        case '"': fputs("&quot;", stream); break;
        default:
            if ((unsigned char)*text >= ' ')
                fputc(*text, stream);
        }
    }
}

static const char *svg_light(int colour)
{
    return colour < 0 ? "#ffffff" : draw_palette[colour % DRAW_COLOURS].light;
}

static const char *svg_dark(int colour)
{
    return colour == DRAW_GRID ? "#dddddd"
         : colour < 0 ? SVG_INK : draw_palette[colour % DRAW_COLOURS].dark;
}

static void svg_head(const struct picture *pic, const char *title,
                     FILE *stream)
{
    int width = 2 * MARGIN + pic->width * CELL_X;
    int height = 2 * MARGIN + pic->height * CELL_Y;

    fprintf(stream, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
            "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"DejaVu Sans Mono,Liberation Mono,monospace\" "
            "font-size=\"13.3\">\n<title>", width, height, width, height);
    svg_escaped(title, stream);
    fprintf(stream, "</title>\n<defs>\n"
            "<pattern id=\"hatch\" width=\"8\" height=\"8\" "
            "patternUnits=\"userSpaceOnUse\">"
            "<path d=\"M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4\" "
            "stroke=\"#777777\" stroke-width=\"1\"/></pattern>\n");
    for (int c = -1; c < DRAW_COLOURS; c++)
        fprintf(stream, "<marker id=\"head%d\" viewBox=\"0 0 8 8\" refX=\"8\" "
                "refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
                "markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
                "<path d=\"M0,0.5 L8,4 L0,7.5 z\" fill=\"%s\"/></marker>\n", c,
                svg_dark(c));
    fprintf(stream, "</defs>\n<rect class=\"ground\" width=\"%d\" "
            "height=\"%d\" fill=\"#ffffff\"/>\n", width, height);
}

static void svg_rect(const struct draw_box *box, const char *class,
                     const char *fill, FILE *stream)
{
    fprintf(stream, "<rect class=\"%s\" x=\"%g\" y=\"%g\" width=\"%d\" "
            "height=\"%d\" fill=\"%s\" stroke=\"" SVG_INK "\"/>\n", class,
            svg_x(box->x), svg_y(box->y), box->w * CELL_X, box->h * CELL_Y,
            fill);
}

static void svg_box(const struct draw_box *box, FILE *stream)
{
    svg_rect(box, "box", svg_light(box->colour), stream);
    if (box->hatched)
        svg_rect(box, "partial", "url(#hatch)", stream);
}

static void svg_line(const struct draw_line *line, FILE *stream)
{
    int colour = line->colour < 0 ? line->colour
                                  : line->colour % DRAW_COLOURS;

    fprintf(stream, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
            "stroke=\"%s\" stroke-width=\"%s\"", svg_x(line->x1),
            svg_y(line->y1), svg_x(line->x2), svg_y(line->y2),
            svg_dark(colour), line->dashed ? "1" : "1.5");
    if (line->dashed)
        fputs(" stroke-dasharray=\"5 4\"", stream);
    if (line->arrow)
        fprintf(stream, " marker-end=\"url(#head%d)\"", colour);
    fputs("/>\n", stream);
}

static void svg_words(const struct picture *pic, const struct draw_words *words,
                      FILE *stream)
{
    static const char *const style[] = {
        [DRAW_PLAIN] = "class=\"plain\" fill=\"" SVG_INK "\"",
        [DRAW_STRONG] = "class=\"strong\" fill=\"#000\" font-weight=\"bold\"",
        [DRAW_FAINT] = "class=\"faint\" fill=\"#555555\""
    };
    const struct draw_box *under = picture_box_at(pic, words->x, words->y);
    const double middle = svg_x(words->middle);
    const double top = MARGIN + words->line * CELL_Y;

    if (under && under->hatched)
        fprintf(stream, "<rect class=\"plate\" x=\"%g\" y=\"%g\" "
                "width=\"%d\" height=\"%d\" fill=\"%s\"/>\n",
                middle - words->length * CELL_X / 2.0 - 3, top,
                words->length * CELL_X + 6, CELL_Y, svg_light(under->colour));
    fprintf(stream, "<text %s x=\"%g\" y=\"%g\" text-anchor=\"middle\" "
            "xml:space=\"preserve\">", style[words->ink],
            middle, top + 12.5);
    svg_escaped(words->text, stream);
    fputs("</text>\n", stream);
}

int draw_svg(const struct picture *pic, const char *title, FILE *stream)
{
    if (pic->failed)
        return ENOMEM;
    svg_head(pic, title, stream);
    for (int i = 0; i < pic->nboxes; i++)
        svg_box(&pic->boxes[i], stream);
    for (int i = 0; i < pic->nlines; i++)
        svg_line(&pic->lines[i], stream);
    for (int i = 0; i < pic->nwords; i++)
        svg_words(pic, &pic->words[i], stream);
    fputs("</svg>\n", stream);
    return 0;
}
