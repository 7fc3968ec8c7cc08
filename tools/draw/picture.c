/* picture.c - a picture as a list of boxes, lines and texts
 *
 * If memory runs out, the picture remembers it.  So the functions that draw
 * need no checks, and the function that writes the picture reports the error.
 */
#include "tools/draw/picture.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURE_CHUNK = 64 };

void picture_init(struct picture *pic)
{
    *pic = (struct picture){ .width = 0 };
}

void picture_fini(struct picture *pic)
{
    for (int i = 0; i < pic->nwords; i++)
        free(pic->words[i].text);
    free(pic->words);
    free(pic->lines);
    free(pic->boxes);
}

int picture_length(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* Room for one more of `size` bytes in an array of n; NULL: out of memory. */
static void *picture_grow(struct picture *pic, void *array, int n, size_t size)
{
    void *grown = array;

    if (n % PICTURE_CHUNK == 0)
        grown = realloc(array, ((size_t)n + PICTURE_CHUNK) * size);
    if (!grown)
        pic->failed = true;
    return grown;
}

static void picture_reach(struct picture *pic, int x, int y)
{
    if (x + 1 > pic->width)
        pic->width = x + 1;
    if (y + 1 > pic->height)
        pic->height = y + 1;
}

void picture_box(struct picture *pic, struct draw_box box)
{
    struct draw_box *boxes = picture_grow(pic, pic->boxes, pic->nboxes,
                                          sizeof box);

    if (!boxes)
        return;
    pic->boxes = boxes;
    boxes[pic->nboxes++] = box;
    picture_reach(pic, box.x + box.w, box.y + box.h);
}

void picture_line(struct picture *pic, struct draw_line line)
{
    struct draw_line *lines = picture_grow(pic, pic->lines, pic->nlines,
                                           sizeof line);

    if (!lines)
        return;
    pic->lines = lines;
    lines[pic->nlines++] = line;
    picture_reach(pic, (int)(line.x1 + 0.5), (int)(line.y1 + 0.5));
    picture_reach(pic, (int)(line.x2 + 0.5), (int)(line.y2 + 0.5));
}

/* Takes the text. */
static void picture_add(struct picture *pic, double x, double y,
                        enum draw_anchor anchor, enum draw_ink ink, char *text)
{
    struct draw_words *words = picture_grow(pic, pic->words, pic->nwords,
                                            sizeof *words);
    const int line = (int)floor(y + 0.5);
    int length, first;

    if (!words || !text || !*text) {
        pic->failed = pic->failed || !text;
        free(text);
        return;
    }
    length = picture_length(text);
    if (anchor == DRAW_LEFT)
        x += (length - 1) / 2.0;
    if (anchor == DRAW_RIGHT)
        x -= (length - 1) / 2.0;
    first = (int)floor(x - (length - 1) / 2.0 + 0.5);
    pic->words = words;
    words[pic->nwords++] = (struct draw_words){ first, line, length, x, y,
                                                ink, text };
    picture_reach(pic, first + length - 1, (int)ceil(y));
}

void picture_words(struct picture *pic, double x, double y,
                   enum draw_anchor anchor, enum draw_ink ink,
                   const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int length;

    va_start(ap, fmt);
    length = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    text = malloc((size_t)length + 1);
    if (text) {
        va_start(ap, fmt);
        vsnprintf(text, (size_t)length + 1, fmt, ap);
        va_end(ap);
    }
    picture_add(pic, x, y, anchor, ink, text);
}

/* Bytes of the first line: to the last blank within `columns`. */
static size_t wrapped_line(const char *text, int columns)
{
    size_t cut = 0;

    for (size_t i = 0; (int)i < columns; i++) {
        if (!text[i])
            return i;
        if (text[i] == ' ')
            cut = i;
    }
    return text[columns] == ' ' || !text[columns] || !cut ? (size_t)columns
                                                          : cut;
}

int picture_wrapped(struct picture *pic, int x, int y, int columns,
                    enum draw_ink ink, const char *text)
{
    int lines = 0;

    while (*text) {
        size_t n = wrapped_line(text, columns);

        picture_words(pic, x, y + lines++, DRAW_LEFT, ink, "%.*s", (int)n,
                      text);
        text += n;
        text += strspn(text, " ");
    }
    return lines;
}

const struct draw_box *picture_box_at(const struct picture *pic, int x, int y)
{
    for (int i = pic->nboxes - 1; i >= 0; i--) {
        const struct draw_box *box = &pic->boxes[i];

        if (x > box->x && x < box->x + box->w && y > box->y &&
            y < box->y + box->h)
            return box;
    }
    return NULL;
}
