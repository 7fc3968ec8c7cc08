/* change.c - the picture of a redistribute: before, what moves, after
 *
 * The pictures of up to 8 ranks stand side by side if they fit, with the steps
 * on the arrow between them.  Below them is shown how much each rank sends to
 * whom: in SVG as an arrow for each of up to 64 pairs, otherwise as a line for
 * each sender.
 */
#include "tools/draw/change.h"
#include "tools/draw/bytes.h"
#include "tools/draw/ranks.h"
#include "tools/draw/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGE_ARROW = 28, CHANGE_SIDE = 28, CHANGE_RANKS_MAX = 16,
       CHANGE_LEAST = 34, CHANGE_BESIDE_MAX = 8, CHANGE_PAIRS_MAX = 64 };

struct change {
    struct picture *pic;
    const struct dtensor_plan *plan;
    const struct dtensor_mesh *mesh;
    struct draw_room room;
};

/* --------------------------------------------------------------- arrow --- */

/* The steps at (x, y), one below another, `width` wide; then the arrow. */
static int change_steps(const struct change *c, int x, int y, int width)
{
    struct dtensor_plan_info info;
    struct dtensor_plan_step step;
    char bytes[32], text[120];
    uint64_t moved;

    dtensor_plan_info(c->plan, &info);
    for (int i = 0; i < info.nsteps; i++) {
        if (dtensor_plan_step(c->plan, i, &step, NULL) != 0)
            continue;
        moved = dtensor_plan_bytes(c->plan, i, -1, -1);
        snprintf(text, sizeof text, "%s%s%s", step.what, moved ? " " : "",
                 moved ? draw_bytes((double)moved, bytes, sizeof bytes) : "");
        y += picture_wrapped(c->pic, x, y, width, DRAW_STRONG, text);
    }
    picture_words(c->pic, x, y++, DRAW_LEFT, DRAW_PLAIN, "%s",
                  draw_time(info.predicted_us, bytes, sizeof bytes));
    return y;
}

static void change_beside(const struct change *c, int x, int y)
{
    int below = change_steps(c, x + 1, y, CHANGE_ARROW - 4);

    picture_line(c->pic, (struct draw_line){ x + 1, below, x + CHANGE_ARROW - 4,
                                             below, DRAW_NO_COLOUR, true,
                                             false });
}

static int change_below(const struct change *c, int y)
{
    int below = change_steps(c, 6, y, c->room.columns - 6);

    picture_line(c->pic, (struct draw_line){ 3, y, 3, below - 1,
                                             DRAW_NO_COLOUR, true, false });
    return below + 1;
}

/* --------------------------------------------------------------- flows --- */

static double change_bytes(const struct change *c, int from, int to)
{
    return (double)dtensor_plan_bytes(c->plan, -1,
                                      dtensor_mesh_rank(c->mesh, from),
                                      dtensor_mesh_rank(c->mesh, to));
}

/* "0 -> 1-3   16.0 MiB each": the receivers of the same amount in a line. */
static int change_sender(const struct change *c, int from, int n, int y)
{
    int to[CHANGE_RANKS_MAX], told[CHANGE_RANKS_MAX] = { 0 };
    char list[80], bytes[32];

    for (int j = 0; j < n; j++) {
        double amount = change_bytes(c, from, j);
        int nto = 0;

        if (told[j] || amount <= 0)
            continue;
        for (int k = j; k < n; k++)
            if (change_bytes(c, from, k) == amount) {
                told[k] = 1;
                to[nto++] = dtensor_mesh_rank(c->mesh, k);
            }
        picture_words(c->pic, 2, y++, DRAW_LEFT, DRAW_PLAIN,
                      "%d -> %s  %s%s", dtensor_mesh_rank(c->mesh, from),
                      draw_ranks(to, nto, list, sizeof list),
                      draw_bytes(amount, bytes, sizeof bytes),
                      nto > 1 ? " each" : "");
    }
    return y;
}

static void change_list(const struct change *c, int n, int y)
{
    picture_words(c->pic, 0, y++, DRAW_LEFT, DRAW_STRONG,
                  "who sends how much to whom");
    for (int i = 0; i < n; i++)
        y = change_sender(c, i, n, y);
}

/* The least and the most that a pair moves; how many pairs do. */
static int change_range(const struct change *c, int n, double *least,
                        double *most)
{
    int pairs = 0;

    *least = *most = 0;
    for (int i = 0; i < n * n; i++) {
        double amount = change_bytes(c, i / n, i % n);

        if (amount <= 0)
            continue;
        if (pairs == 0 || amount < *least)
            *least = amount;
        if (amount > *most)
            *most = amount;
        pairs++;
    }
    return pairs;
}

static void change_rank(const struct change *c, int i, int x, int y,
                        const char *verb, double bytes)
{
    char amount[32];

    picture_box(c->pic, (struct draw_box){ x, y, CHANGE_SIDE, 2, i, false });
    picture_words(c->pic, x + CHANGE_SIDE / 2.0, y + 1, DRAW_CENTRE,
                  DRAW_PLAIN, "rank %d %s %s", dtensor_mesh_rank(c->mesh, i),
                  verb, draw_bytes(bytes, amount, sizeof amount));
}

/* Senders on the left, receivers on the right, an arrow for each pair. */
static void change_graph(const struct change *c, int n, int y)
{
    const int right = c->pic->width - CHANGE_SIDE > 70
                    ? c->pic->width - CHANGE_SIDE - 1 : 70;
    double least, most;
    char low[32], high[32];
    int pairs = change_range(c, n, &least, &most);

    draw_bytes(least, low, sizeof low);
    draw_bytes(most, high, sizeof high);
    if (least == most)
        picture_words(c->pic, 0, y, DRAW_LEFT, DRAW_STRONG, "each of %d "
                      "arrows: %s", pairs, low);
    else
        picture_words(c->pic, 0, y, DRAW_LEFT, DRAW_STRONG, "%d arrows: %s to "
                      "%s", pairs, low, high);
    for (int i = 0; i < n; i++) {
        const int rank = dtensor_mesh_rank(c->mesh, i), at = y + 2 + 3 * i;

        change_rank(c, i, 0, at, "sends",
                    (double)dtensor_plan_bytes(c->plan, -1, rank, -1));
        change_rank(c, i, right, at, "gets",
                    (double)dtensor_plan_bytes(c->plan, -1, -1, rank));
    }
    for (int i = 0; i < n * n; i++)
        if (change_bytes(c, i / n, i % n) > 0)
            picture_line(c->pic, (struct draw_line){
                CHANGE_SIDE, y + 3 + 3 * (i / n), right, y + 3 + 3 * (i % n),
                i / n, true, false });
}

void draw_change(struct picture *pic, const struct dtensor_plan *plan,
                 const struct dtensor_spec *from,
                 const struct dtensor_spec *to, struct draw_room room)
{
    const struct change c = { pic, plan, from->mesh, room };
    const int n = dtensor_mesh_size(from->mesh);
    struct draw_room half = room;
    struct draw_area left, right;
    double least, most;
    int y;

    half.columns = (room.columns - CHANGE_ARROW) / 2;
    if (half.columns < CHANGE_LEAST || n > CHANGE_BESIDE_MAX) {
        left = draw_spec(pic, "before", from, 0, 0, room);
        y = change_below(&c, left.h);
        right = draw_spec(pic, "after", to, 0, y, room);
        y += right.h + 1;
    } else {
        left = draw_spec(pic, "before", from, 0, 0, half);
        change_beside(&c, left.w + 1, left.h > 9 ? left.h / 2 - 1 : 3);
        right = draw_spec(pic, "after", to, left.w + CHANGE_ARROW, 0, half);
        y = (left.h > right.h ? left.h : right.h) + 1;
    }
    if (from->mesh != to->mesh || n > CHANGE_RANKS_MAX ||
        dtensor_plan_bytes(plan, -1, -1, -1) == 0)
        return;
    if (room.fine && change_range(&c, n, &least, &most) <= CHANGE_PAIRS_MAX)
        change_graph(&c, n, y);
    else
        change_list(&c, n, y);
}
