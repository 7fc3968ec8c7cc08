/* schedule.c - the picture of a collective: who sends what to whom, and when
 *
 * A space-time diagram: each rank is a line downward, time goes down, and what
 * is sent is an arrow from its start at the sender to its arrival.  As SVG,
 * time is to scale, signals are dashed, and reductions thicken the line of a
 * rank.  As text each message has a line of its own, in order of its start,
 * and signals without data are left out.
 */
#include "tools/draw/schedule.h"
#include "tools/draw/bytes.h"
#include "tools/draw/play.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LANES_FINE = 16, LANE_TEXT = 5, LANE_LEFT = 10, LINES_TEXT = 64,
       LINES_FINE = 56, TICKS = 10, CHART_GREY = 9 };

struct chart {
    struct picture *pic;
    const struct dtensor_mesh *mesh;
    const struct play *play;
    struct draw_room room;
    int n, lane;                  /* ranks that are drawn, cells between them */
    int left, top;                /* of the first lane                        */
};

static int chart_x(const struct chart *c, int position)
{
    return c->left + position * c->lane;
}

static void chart_heads(const struct chart *c)
{
    const bool wide = c->lane > 10;

    if (c->room.fine && !wide)
        picture_words(c->pic, 0, c->top - 1, DRAW_LEFT, DRAW_STRONG, "rank");
    for (int p = 0; p < c->n; p++)
        picture_words(c->pic, chart_x(c, p), c->top - 1, DRAW_CENTRE,
                      DRAW_STRONG, "%s%d", wide ? "rank " : "",
                      dtensor_mesh_rank(c->mesh, p));
}

static void chart_lanes(const struct chart *c, int lines)
{
    for (int p = 0; p < c->n; p++)
        picture_line(c->pic, (struct draw_line){
            chart_x(c, p), c->top, chart_x(c, p), c->top + lines,
            CHART_GREY, false, false });
}

/* ----------------------------------------------------------------- SVG --- */

static double chart_y(const struct chart *c, double ns)
{
    return c->top + (c->play->end_ns > 0 ? ns / c->play->end_ns : 0)
                    * LINES_FINE;
}

/* 1, 2 or 5 times a power of ten: of 174 us, ticks are 20 us apart. */
static double chart_step(double end_ns)
{
    const double least = end_ns / TICKS, ten = pow(10, floor(log10(least)));

    return least <= ten ? ten : least <= 2 * ten ? 2 * ten
         : least <= 5 * ten ? 5 * ten : 10 * ten;
}

static void chart_ticks(const struct chart *c)
{
    const double end = c->play->end_ns, step = end > 0 ? chart_step(end) : 1;
    char text[32];

    for (int i = 0; i * step <= end; i++)
        picture_words(c->pic, 0, chart_y(c, i * step), DRAW_LEFT, DRAW_FAINT,
                      "%s", draw_time(i * step / 1e3, text, sizeof text));
}

/* A reduction is a thick piece of the line of its rank. */
static void chart_local(const struct chart *c, const struct play_event *event)
{
    const double x = chart_x(c, event->from);

    for (double side = -0.25; side < 0.5; side += 0.25)
        picture_line(c->pic, (struct draw_line){
            x + side, chart_y(c, event->start_ns), x + side,
            chart_y(c, event->end_ns), event->from, false, false });
}

static void chart_fine(const struct chart *c)
{
    chart_heads(c);
    chart_ticks(c);
    chart_lanes(c, LINES_FINE);
    for (int i = 0; i < c->play->n; i++) {
        const struct play_event *event = &c->play->event[i];

        if (event->from >= c->n || event->to >= c->n)
            continue;
        if (event->kind == PLAY_LOCAL)
            chart_local(c, event);
        else
            picture_line(c->pic, (struct draw_line){
                chart_x(c, event->from), chart_y(c, event->start_ns),
                chart_x(c, event->to), chart_y(c, event->end_ns),
                event->kind == PLAY_DATA ? event->from : CHART_GREY, true,
                event->kind == PLAY_SIGNAL });
    }
}

/* ---------------------------------------------------------------- text --- */

static bool chart_has_data(const struct play *play)
{
    for (int i = 0; i < play->n; i++)
        if (play->event[i].kind == PLAY_DATA)
            return true;
    return false;
}

static void chart_message(const struct chart *c, const struct play_event *event,
                          int y)
{
    char time[32], bytes[32];

    picture_line(c->pic, (struct draw_line){
        chart_x(c, event->from), y, chart_x(c, event->to), y, event->from,
        true, false });
    picture_words(c->pic, chart_x(c, c->n - 1) + 3, y, DRAW_LEFT, DRAW_FAINT,
                  "%s %s", draw_time(event->start_ns / 1e3, time, sizeof time),
                  event->bytes ? draw_bytes((double)event->bytes, bytes,
                                            sizeof bytes) : "signal");
}

static void chart_text(const struct chart *c)
{
    const enum play_kind kind = chart_has_data(c->play) ? PLAY_DATA
                                                        : PLAY_SIGNAL;
    int lines = 0, more = 0;

    chart_heads(c);
    for (int i = 0; i < c->play->n; i++) {
        const struct play_event *event = &c->play->event[i];

        if (event->kind != kind || event->from >= c->n || event->to >= c->n)
            continue;
        if (lines == LINES_TEXT)
            more++;
        else
            chart_message(c, event, c->top + lines++);
    }
    if (lines > 0)
        chart_lanes(c, lines - 1);
    if (more)
        picture_words(c->pic, 0, c->top + lines, DRAW_LEFT, DRAW_FAINT,
                      "... and %d more messages", more);
}

/* --------------------------------------------------------------- whole --- */

/* Sizes of the messages, and how long it takes. */
static void chart_legend(struct chart *c)
{
    size_t least = 0, most = 0;
    char low[32], high[32], time[32], sizes[80] = "no data", text[300];

    for (int i = 0; i < c->play->n; i++) {
        const struct play_event *event = &c->play->event[i];

        if (event->kind != PLAY_DATA)
            continue;
        if (most == 0 || event->bytes < least)
            least = event->bytes;
        if (event->bytes > most)
            most = event->bytes;
    }
    draw_bytes((double)least, low, sizeof low);
    draw_bytes((double)most, high, sizeof high);
    draw_time(c->play->end_ns / 1e3, time, sizeof time);
    if (most > 0)
        snprintf(sizes, sizeof sizes, "messages of %s%s%s", low, least < most
                 ? " to " : "", least < most ? high : "");
    snprintf(text, sizeof text, "%s when played step by step; %s%s%s", time,
             sizes, c->n < dtensor_mesh_size(c->mesh)
             ? "; the first ranks are drawn" : "", c->room.fine
             ? "; dashed: signals; thick: local copies and reductions" : "");
    c->top += picture_wrapped(c->pic, 0, c->top, c->room.columns, DRAW_FAINT,
                              text);
}

static void chart_draw(struct chart *c, const char *title)
{
    int room;

    c->top = picture_wrapped(c->pic, 0, 0, c->room.columns, DRAW_STRONG, title);
    chart_legend(c);
    c->left = c->room.fine ? LANE_LEFT + 3 : 2;
    room = (c->room.columns - c->left - (c->room.fine ? 4 : 22));
    c->n = dtensor_mesh_size(c->mesh);
    c->lane = c->room.fine ? 8 : LANE_TEXT;
    if (c->n > room / c->lane + 1)
        c->n = room / c->lane < 1 ? 2 : room / c->lane + 1;
    if (c->room.fine && c->n > LANES_FINE)
        c->n = LANES_FINE;
    if (c->room.fine && c->n > 1 && room / (c->n - 1) > c->lane)
        c->lane = room / (c->n - 1) < 24 ? room / (c->n - 1) : 24;
    c->top += 2;
    if (c->room.fine)
        chart_fine(c);
    else
        chart_text(c);
}

int draw_schedule(struct picture *pic, const struct draw_call *call,
                  struct draw_room room, struct dtensor_error *err)
{
    struct play play;
    struct chart c = { .pic = pic, .mesh = call->mesh, .play = &play,
                       .room = room, .n = dtensor_mesh_size(call->mesh) };
    int rc;

    if (c.n > DRAW_SCHEDULE_RANKS) {
        *err = (struct dtensor_error){ .code = DTENSOR_EINVAL,
                                        .rank = -1 };
        snprintf(err->text, sizeof err->text, "schedule: %d ranks (at most %d "
                 "are drawn: give a smaller mesh)", c.n, DRAW_SCHEDULE_RANKS);
        return DTENSOR_EINVAL;
    }
    rc = play_call(call->mesh, call->call, call->algorithm, &play, err);
    if (rc == 0)
        chart_draw(&c, call->title);
    play_fini(&play);
    return rc;
}
