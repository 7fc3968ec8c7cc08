/* picture.h - a picture: boxes, lines and words on a grid of cells
 *
 * A cell is one character on a terminal, and 8 by 16 pixels in SVG.  x counts
 * cells to the right, y downward, both from 0.  What draws a tensor or a mesh
 * makes a picture; text.h and svg.h write it.  So a word that fits into its box
 * fits in all forms.
 */
#ifndef DRAW_PICTURE_H
#define DRAW_PICTURE_H

#include <stdbool.h>

/* Colours are numbers from 0; those of ranks and hosts repeat after so many. */
enum { DRAW_COLOURS = 12, DRAW_NO_COLOUR = -1, DRAW_GRID = -2 };

enum draw_ink { DRAW_PLAIN, DRAW_STRONG, DRAW_FAINT };
enum draw_anchor { DRAW_LEFT, DRAW_CENTRE, DRAW_RIGHT };

/* Its border runs through the cells x and x + w, y and y + h; boxes side by
 * side share one.
 */
struct draw_box {
    int x, y, w, h;               /* cells                                    */
    int colour;                   /* DRAW_NO_COLOUR: as the ground            */
    bool hatched;                 /* holds terms, not values                  */
};

/* From the centre of a cell to the centre of another. */
struct draw_line {
    double x1, y1, x2, y2;        /* cells                                    */
    int colour;                   /* DRAW_NO_COLOUR: that of words; _GRID:    */
                                  /* light, behind what is shown              */
    bool arrow;                   /* with a head at its end                   */
    bool dashed;                  /* a signal, or a bound                     */
};

struct draw_words {
    int x, y;                     /* cell of the first character              */
    int length;                   /* characters                               */
    double middle, line;          /* where SVG has them, also between cells   */
    enum draw_ink ink;            /* how they are written                     */
    char *text;                   /* one line of UTF-8                        */
};

struct picture {
    struct draw_box *boxes;       /* [nboxes] the later above the earlier     */
    struct draw_line *lines;      /* [nlines] above boxes                     */
    struct draw_words *words;     /* [nwords] above all                       */
    int nboxes, nlines, nwords;   /* used                                     */
    int width, height;            /* cells that are used                      */
    bool failed;                  /* out of memory: the writers say so        */
};

/* How much room there is, and whether slanting lines look well. */
struct draw_room {
    int columns;                  /* cells in a row                           */
    bool fine;                    /* SVG                                      */
};

void picture_init(struct picture *pic);
void picture_fini(struct picture *pic);

void picture_box(struct picture *pic, struct draw_box box);
void picture_line(struct picture *pic, struct draw_line line);

/* x is the first cell of the words, their middle or their last cell; y may be
 * between two cells, as in the middle of a box.
 */
void picture_words(struct picture *pic, double x, double y,
                   enum draw_anchor anchor, enum draw_ink ink,
                   const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* The same in lines of at most `columns`, cut at blanks; how many lines. */
int picture_wrapped(struct picture *pic, int x, int y, int columns,
                    enum draw_ink ink, const char *text);

/* The uppermost box around a cell, or NULL. */
const struct draw_box *picture_box_at(const struct picture *pic, int x, int y);

/* Characters of UTF-8. */
int picture_length(const char *text);

#endif
