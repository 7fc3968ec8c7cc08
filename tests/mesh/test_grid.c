/* test_grid.c - the algebra of sizes and strides
 *
 * Its published cases, and brute force over all small grids.
 *
 * Without this test, a flattened or sliced mesh could number its ranks
 * wrongly.
 */
#include "base/compiler.h"
#include "mesh/grid.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>

/* "3:2 2:1" */
static struct dtn_grid read_grid(const char *text)
{
    struct dtn_grid grid = { 0 };
    int size, stride, used;

    while (sscanf(text, "%d:%d %n", &size, &stride, &used) == 2) {
        dtn_grid_add(&grid, size, stride);
        text += used;
    }
    return grid;
}

static const char *text_of(const struct dtn_grid *grid)
{
    static char text[200];
    int used = 0;

    text[0] = '\0';
    for (int k = 0; k < grid->n; k++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d:%d",
                         k ? " " : "", grid->size[k], grid->stride[k]);
    return text;
}

/* "0,2,4 | 1,3,5": the places, of each copy in `n` if n > 0. */
static const char *places(const struct dtn_grid *grid, int n)
{
    static char text[400];
    struct dtn_grid rest = { 0 };
    int used = 0;

    if (n > 0 && !dtn_grid_complement(grid, n, &rest))
        return "no complement";
    for (int c = 0; c < dtn_grid_size(&rest); c++)
        for (int i = 0; i < dtn_grid_size(grid); i++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%d",
                             i ? "," : c ? " | " : "",
                             dtn_grid_at(&rest, c) + dtn_grid_at(grid, i));
    return text;
}

static void is(const char *got, const char *want, const char *claim,
               const char *of)
{
    if (!ok(strcmp(got, want) == 0, "%s of %s: %s", claim, of, want))
        note("got %s", got);
}

static void test_canonical(void)
{
    static const char *const t[][2] = {
        { "3:2 2:1", "6:1" },
        { "2:12 3:4 4:1", "24:1" },
        { "3:4 2:1", "3:4 2:1" },
        { "1:0 3:10 1:17 5:2 1:1", "15:2" },
        { "1:4 1:2 1:1", "" },
        { "2:4 2:2 2:1", "8:1" },
        { "2:1 2:4", "2:1 2:4" },
    };

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtn_grid grid = read_grid(t[i][0]);

        is(text_of(&grid), t[i][1], "canonical form", t[i][0]);
    }
}

static void test_places(void)
{
    static const char *const t[][2] = {
        { "2:3 3:1", "0,1,2,3,4,5" },
        { "2:1 3:2", "0,2,4,1,3,5" },
        { "", "0" },
    };

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtn_grid grid = read_grid(t[i][0]);

        is(places(&grid, 0), t[i][1], "places", t[i][0]);
    }
}

static void test_complement(void)
{
    static const struct {
        const char *grid;
        int n;
        const char *rest, *copies;
    } t[] = {
        { "4:1", 8, "2:4", "0,1,2,3 | 4,5,6,7" },
        { "4:2", 8, "2:1", "0,2,4,6 | 1,3,5,7" },
        { "4:2", 16, "2:8 2:1",
          "0,2,4,6 | 1,3,5,7 | 8,10,12,14 | 9,11,13,15" },
        { "2:4 2:1", 16, "2:8 2:2",
          "0,1,4,5 | 2,3,6,7 | 8,9,12,13 | 10,11,14,15" },
        { "2:2 2:4", 16, "2:8 2:1",
          "0,4,2,6 | 1,5,3,7 | 8,12,10,14 | 9,13,11,15" },
        { "", 4, "4:1", "0 | 1 | 2 | 3" },
        { "8:1", 8, "", "0,1,2,3,4,5,6,7" },
        { "2:2 3:1", 12, "", "no complement" },
        { "4:1", 6, "", "no complement" },
    };
    struct dtn_grid rest;

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtn_grid grid = read_grid(t[i].grid);

        rest = (struct dtn_grid){ 0 };
        dtn_grid_complement(&grid, t[i].n, &rest);
        is(text_of(&rest), t[i].rest, "complement", t[i].grid);
        is(places(&grid, t[i].n), t[i].copies, "copies", t[i].grid);
    }
}

static void test_orthogonal(void)
{
    static const struct { const char *grid; bool orthogonal, sorted; } t[] = {
        { "2:6 3:1", true, true },       { "2:3 3:1", true, true },
        { "2:8 2:4 2:1", true, true },   { "2:4 2:1 2:2", true, false },
        { "2:1 11:210 3:2 7:30", true, false },
        { "2:2 3:1", false, true },      { "2:1 3:1", false, true },
        { "3:2 2:3", false, false },     { "", true, true },
        { "5:3", true, true },
    };

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtn_grid grid = read_grid(t[i].grid);

        ok(dtn_grid_orthogonal(&grid) == t[i].orthogonal, "\"%s\" is%s "
           "orthogonal", t[i].grid, t[i].orthogonal ? "" : " not");
        ok(dtn_grid_sorted(&grid) == t[i].sorted, "\"%s\" is%s sorted",
           t[i].grid, t[i].sorted ? "" : " not");
    }
}

static void test_pick(void)
{
    static const struct { const char *grid; int size,
                          stride; const char *want; }
    t[] = {
        { "4:2", 2, 1, "2:2" },
        { "4:2", 2, 2, "2:4" },
        { "4:4 2:1", 2, 3, "refused" },
        { "4:4 2:1", 2, 2, "2:4" },
        { "4:4 2:1", 4, 1, "2:4 2:1" },
        { "4:4 2:1", 4, 2, "4:4" },
        { "2:6 3:1", 3, 2, "refused" },
        { "8:1", 16, 1, "refused" },
        { "8:1", 2, 8, "refused" },
        { "4:2", 1, 7, "" },
        { "6:1", 3, 2, "3:2" },
    };

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtn_grid grid = read_grid(t[i].grid), picked;
        bool done = dtn_grid_pick(&grid, t[i].size, t[i].stride, &picked);

        is(done ? text_of(&picked) : "refused", t[i].want, "a pick",
           t[i].grid);
    }
}

/* A rank map seen through a grid: every copy, in the map's ranks. */
static void test_map(void)
{
    static const struct { int map[4]; const char *grid; int want[4]; } t[] = {
        { { 0, 2, 1, 4 }, "2:1 2:2", { 0, 1, 2, 4 } },
        { { 5, 10, 15, 20 }, "2:2 2:1", { 5, 10, 15, 20 } },
    };

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtn_grid grid = read_grid(t[i].grid);
        bool good = true;

        for (int k = 0; k < 4; k++)
            good = good && t[i].map[dtn_grid_at(&grid, k)] == t[i].want[k];
        ok(good, "a rank map through %s", t[i].grid);
    }
}

/* ---------------------------------------------------------- brute force --- */

/* Is every place 0..n-1 exactly once in grid x rest? */
static bool tiles(const struct dtn_grid *grid, const struct dtn_grid *rest,
                  int n)
{
    bool seen[64] = { false };

    if (dtn_grid_size(grid) * dtn_grid_size(rest) != n)
        return false;
    for (int i = 0; i < dtn_grid_size(grid); i++)
        for (int c = 0; c < dtn_grid_size(rest); c++) {
            int at = dtn_grid_at(grid, i) + dtn_grid_at(rest, c), digits = at;

            if (at >= n || seen[at] || dtn_grid_take(grid, &digits) != i ||
                digits != dtn_grid_at(rest, c))
                return false;
            seen[at] = true;
        }
    return true;
}

/* Every grid of up to three pairs in up to 24 places. */
static void test_all_complements(void)
{
    static const int sizes[] = { 2, 3, 4 };
    int tried = 0, fitted = 0, wrong = 0;
    struct dtn_grid rest;

    for (int n = 1; n <= 24; n++)
        for (int code = 0; code < 27 * 12 * 12 * 12; code++) {
            struct dtn_grid grid = { 0 };

            for (int k = 0, c = code; k < 3; k++, c /= 36)
                if (c % 12 != 0)
                    dtn_grid_add(&grid, sizes[c / 12 % 3], c % 12);
            tried++;
            if (!dtn_grid_complement(&grid, n, &rest))
                continue;
            fitted++;
            wrong += !tiles(&grid, &rest, n);
        }
    ok(wrong == 0 && fitted > 1000 && fitted < tried / 2, "%d of %d grids have "
       "a complement, and with it every place once", fitted, tried);
}

/* Picking is composition: place i of the pick is place i * stride. */
static void test_all_picks(void)
{
    int tried = 0, done = 0, wrong = 0;

    for (int a = 1; a <= 6; a++)
        for (int b = 1; b <= 6; b++)
            for (int size = 1; size <= 36; size++)
                for (int stride = 1; stride <= 36; stride++) {
                    struct dtn_grid grid = { 0 }, picked;
                    bool inside = (size - 1) * stride < a * b;

                    dtn_grid_add(&grid, a, 10);
                    dtn_grid_add(&grid, b, 1);
                    tried++;
                    if (!dtn_grid_pick(&grid, size, stride, &picked))
                        continue;
                    done++;
                    wrong += dtn_grid_size(&picked) != size ||
                             (size > 1 && !inside);
                    for (int i = 0; i < size && size > 1; i++)
                        wrong += dtn_grid_at(&picked, i) !=
                                 dtn_grid_at(&grid, i * stride);
                }
    ok(wrong == 0 && done > 1000 && done < tried, "%d of %d picks are grids, "
       "and right", done, tried);
}

int main(void)
{
    test_canonical();
    test_places();
    test_complement();
    test_orthogonal();
    test_pick();
    test_map();
    test_all_complements();
    test_all_picks();
    return done();
}
