/* text.c - a picture as lines of text
 *
 * Each cell knows in which directions lines leave it, so that a border that two
 * boxes share, and a crossing, get the right character: north, east and south
 * is "├", or "+" in ASCII.  Slanting lines are dots.
 */
#include "tools/draw/text.h"
#include "tools/draw/palette.h"
#include "tools/draw/picture.h"
#include "tools/draw/screen.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NORTH = 1, EAST = 2, SOUTH = 4, WEST = 8, NGLYPHS = 16 };
enum { HEAD_RIGHT = NGLYPHS, HEAD_LEFT, HEAD_UP, HEAD_DOWN, DOT, HATCH,
       NSIGNS };

static const char *const signs_utf8[NSIGNS] = {
    " ", "│", "─", "└", "│", "│", "┌", "├", "─", "┘", "─", "┴", "┐", "┤", "┬",
    "┼", "▶", "◀", "▲", "▼", "•", "╱"
};
static const char *const signs_ascii[NSIGNS] = {
    " ", "|", "-", "+", "|", "|", "+", "+", "-", "+", "-", "+", "+", "+", "+",
    "+", ">", "<", "^", "v", "*", "/"
};

struct text_cell {
    unsigned char lines;          /* directions in which lines leave it       */
    unsigned char sign;           /* if not 0, instead of them                */
    bool strong, faint;
    int ground, colour;           /* DRAW_NO_COLOUR: the terminal's           */
    char word[8];                 /* a character of words, instead of all     */
};

struct text {
    const struct draw_screen *screen;
    struct text_cell *cells;
    int width, height;
};

static struct text_cell *text_at(struct text *t, int x, int y)
{
    static struct text_cell outside;

    return x >= 0 && x < t->width && y >= 0 && y < t->height
           ? &t->cells[y * t->width + x] : &outside;
}

static void text_across(struct text *t, int x1, int x2, int y, int colour)
{
    for (int x = x1; x <= x2; x++) {
        text_at(t, x, y)->lines |= (unsigned char)((x > x1 ? WEST : 0)
                                                   | (x < x2 ? EAST : 0));
        text_at(t, x, y)->colour = colour;
    }
}

static void text_down(struct text *t, int x, int y1, int y2, int colour)
{
    for (int y = y1; y <= y2; y++) {
        text_at(t, x, y)->lines |= (unsigned char)((y > y1 ? NORTH : 0)
                                                   | (y < y2 ? SOUTH : 0));
        text_at(t, x, y)->colour = colour;
    }
}

static void text_box(struct text *t, const struct draw_box *box)
{
    const int right = box->x + box->w, below = box->y + box->h;

    for (int y = box->y + 1; y < below; y++)
        for (int x = box->x + 1; x < right; x++) {
            text_at(t, x, y)->ground = box->colour;
            if (box->hatched)
                text_at(t, x, y)->sign = HATCH;
        }
    text_across(t, box->x, right, box->y, DRAW_NO_COLOUR);
    text_across(t, box->x, right, below, DRAW_NO_COLOUR);
    text_down(t, box->x, box->y, below, DRAW_NO_COLOUR);
    text_down(t, right, box->y, below, DRAW_NO_COLOUR);
}

static void text_slant(struct text *t, const struct draw_line *line)
{
    const double dx = line->x2 - line->x1, dy = line->y2 - line->y1;
    const int n = (int)ceil(fmax(fabs(dx), fabs(dy)));

    for (int i = 0; i <= n; i++) {
        struct text_cell *cell = text_at(t, (int)lround(line->x1 + dx * i / n),
                                         (int)lround(line->y1 + dy * i / n));

        cell->sign = DOT;
        cell->colour = line->colour;
    }
}

static void text_line(struct text *t, const struct draw_line *line)
{
    const int x1 = (int)lround(line->x1), x2 = (int)lround(line->x2);
    const int y1 = (int)lround(line->y1), y2 = (int)lround(line->y2);

    if (x1 != x2 && y1 != y2) {
        text_slant(t, line);
        return;
    }
    if (y1 == y2)
        text_across(t, x1 < x2 ? x1 : x2, x1 < x2 ? x2 : x1, y1, line->colour);
    else
        text_down(t, x1, y1 < y2 ? y1 : y2, y1 < y2 ? y2 : y1, line->colour);
    if (line->arrow)
        text_at(t, x2, y2)->sign = y1 == y2 ? (x1 < x2 ? HEAD_RIGHT : HEAD_LEFT)
                                            : (y1 < y2 ? HEAD_DOWN : HEAD_UP);
}

/* What is hatched leaves a blank around words. */
static void text_words(struct text *t, const struct draw_words *words)
{
    const char *p = words->text;

    for (int i = -1; i <= words->length; i++)
        if (text_at(t, words->x + i, words->y)->sign == HATCH)
            text_at(t, words->x + i, words->y)->sign = 0;
    for (int x = words->x; *p; x++) {
        struct text_cell *cell = text_at(t, x, words->y);
        size_t n = 1;

        while ((p[n] & 0xc0) == 0x80 && n + 1 < sizeof cell->word)
            n++;
        memcpy(cell->word, p, n);
        cell->word[n] = '\0';
        cell->strong = words->ink == DRAW_STRONG;
        cell->faint = words->ink == DRAW_FAINT;
        p += n;
    }
}

/* ------------------------------------------------------------- writing --- */

static bool text_same(const struct text_cell *a, const struct text_cell *b)
{
    return a->ground == b->ground && a->colour == b->colour &&
           a->strong == b->strong && a->faint == b->faint;
}

static void text_style(const struct text_cell *cell, FILE *stream)
{
    fputs("\033[0", stream);
    if (cell->strong)
        fputs(";1", stream);
    if (cell->ground >= 0)
        fprintf(stream, ";30;48;5;%d",
                draw_palette[cell->ground % DRAW_COLOURS].light_code);
    else if (cell->faint)
        fputs(";2", stream);
    else if (cell->colour >= 0)
        fprintf(stream, ";38;5;%d",
                draw_palette[cell->colour % DRAW_COLOURS].dark_code);
    fputc('m', stream);
}

static const char *text_sign(const struct text *t, const struct text_cell *cell)
{
    const char *const *signs = t->screen->utf8 ? signs_utf8 : signs_ascii;

    return cell->word[0] ? cell->word
                         : signs[cell->sign ? cell->sign : cell->lines];
}

static void text_row(const struct text *t, int y, FILE *stream)
{
    const struct text_cell *row = &t->cells[y * t->width];
    struct text_cell style = { .ground = DRAW_NO_COLOUR,
                               .colour = DRAW_NO_COLOUR };
    const struct text_cell plain = style;
    int n = t->width;

    while (n > 0 && strcmp(text_sign(t, &row[n - 1]), " ") == 0 &&
           (!t->screen->colour || row[n - 1].ground < 0))
        n--;
    for (int x = 0; x < n; x++) {
        if (t->screen->colour && !text_same(&style, &row[x])) {
            text_style(&row[x], stream);
            style = row[x];
        }
        fputs(text_sign(t, &row[x]), stream);
    }
    if (!text_same(&style, &plain))
        fputs("\033[0m", stream);
    fputc('\n', stream);
}

int draw_text(const struct picture *pic, const struct draw_screen *screen,
              const char *prefix, FILE *stream)
{
    struct text t = { .screen = screen, .width = pic->width,
                      .height = pic->height };

    if (screen->terminal && t.width > screen->columns)
        t.width = screen->columns;
    t.cells = calloc((size_t)t.width * (size_t)t.height + 1, sizeof *t.cells);
    if (pic->failed || !t.cells) {
        free(t.cells);
        return ENOMEM;
    }
    for (int i = 0; i < t.width * t.height; i++)
        t.cells[i].ground = t.cells[i].colour = DRAW_NO_COLOUR;
    for (int i = 0; i < pic->nboxes; i++)
        text_box(&t, &pic->boxes[i]);
    for (int i = 0; i < pic->nlines; i++)
        text_line(&t, &pic->lines[i]);
    for (int i = 0; i < pic->nwords; i++)
        text_words(&t, &pic->words[i]);
    for (int y = 0; y < t.height; y++) {
        fputs(prefix, stream);
        text_row(&t, y, stream);
    }
    free(t.cells);
    return 0;
}
