/* test_draw.c - pictures of shardings are those that are stored here
 *
 * dtensor_spec_draw() draws specs of one to three dimensions; each picture is
 * compared character by character.
 *
 * Without this test, a picture could show a rank beside elements that it does
 * not hold.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/mesh_job.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void picture(int ndim_mesh, const int sizes[], const char *placements,
                    int ndim, const int64_t shape[], char *text, size_t size)
{
    struct dtensor_spec spec = { .ndim = ndim };
    FILE *stream = fmemopen(text, size, "w");

    memcpy(spec.shape, shape, (size_t)ndim * sizeof shape[0]);
    if (!stream ||
        dtensor_mesh_create(&ctx, ndim_mesh, sizes, NULL, NULL, &spec.mesh,
                            NULL) != 0 ||
        dtensor_placements_parse(spec.mesh, placements, ndim, spec.placement,
                                 NULL) != 0)
        abort();
    dtensor_spec_draw(&spec, stream);
    fclose(stream);
}

static const struct {
    const char *claim;
    int sizes[4];
    const char *placements;
    int ndim;
    int64_t shape[4];
    const char *lang;
    const char *want;
} cases[] = {
    { "parts that are no boxes, as a list of index ranges", { 3 }, "C(0,2)", 2,
      { 16, 2 }, "C",
      "f32[16,2]  C(0,2)  on mesh(3)\n"
      "rank 0     0-1 6-7 12-13 0-1\n"
      "rank 1     2-3 8-9 14-15 0-1\n"
      "rank 2     4-5 10-11   0-1\n" },
    { "a matrix by rows, replicas in one box", { 2, 2 }, "S(0),R", 2,
      { 4, 6 }, "en_US.UTF-8",
      "f32[4,6]  S(0),R  on mesh(2,2)\n"
      "         Col 0-5\n"
      "        ┌────────────────────────┐\n"
      "        │                        │\n"
      "Row 0-1 │          0-1           │\n"
      "        │                        │\n"
      "        │                        │\n"
      "        ├────────────────────────┤\n"
      "        │                        │\n"
      "Row 2-3 │          2-3           │\n"
      "        │                        │\n"
      "        │                        │\n"
      "        └────────────────────────┘\n" },
    { "a matrix both ways, in ASCII", { 2, 2 }, "S(1),S(0)", 2, { 3, 5 }, "C",
      "f32[3,5]  S(1),S(0)  on mesh(2,2)\n"
      "         Col 0-2         Col 3-4\n"
      "        +---------------+----------+\n"
      "        |               |          |\n"
      "        |               |          |\n"
      "Row 0-1 |       0       |    2     |\n"
      "        |               |          |\n"
      "        |               |          |\n"
      "        +---------------+----------+\n"
      "Row 2   |       1       |    3     |\n"
      "        |               |          |\n"
      "        +---------------+----------+\n" },
    { "uneven and empty shards of a vector", { 4, 2 }, "S(0),P(max)", 1, { 5 },
      "C",
      "f32[5]  S(0),P(max)  on mesh(4,2)\n"
      " 0-1                          2-3                          4\n"
      "+----------------------------+----------------------------+------------"
      "--+\n"
      "|        P(max) 0 + 1        |        P(max) 2 + 3        | P(max) 4 + "
      "5 |\n"
      "+----------------------------+----------------------------+------------"
      "--+\n"
      "empty: ranks 6-7\n" },
    { "a scalar", { 3 }, "P", 0, { 0 }, "C",
      "f32[]  P(sum)  on mesh(3)\n"
      "+------------------+\n"
      "| P(sum) 0 + 1 + 2 |\n"
      "+------------------+\n" },
    { "many terms are counted", { 8 }, "P", 0, { 0 }, "C",
      "f32[]  P(sum)  on mesh(8)\n"
      "+----------------+\n"
      "| P(sum) 8 terms |\n"
      "+----------------+\n" },
    { "replicas of terms", { 2, 2 }, "R,P", 0, { 0 }, "C",
      "f32[]  R,P(sum)  on mesh(2,2)\n"
      "+------------------+\n"
      "| P(sum) 0,2 + 1,3 |\n"
      "+------------------+\n" },
    { "three dimensions are a table", { 2, 2 }, "S(0),S(2)", 3, { 1, 3, 3 },
      "C",
      "f32[1,3,3]  S(0),S(2)  on mesh(2,2)\n"
      "rank 0     0           0-2         0-1\n"
      "rank 1     0           0-2         2\n"
      "rank 2     none        0-2         0-1\n"
      "rank 3     none        0-2         2\n"
      "empty: ranks 2-3\n" },
    { "nothing at all", { 2 }, "S(0)", 2, { 0, 4 }, "C",
      "f32[0,4]  S(0)  on mesh(2)\n"
      "empty: ranks 0-1\n" },
};

static void test_golden(void)
{
    char text[4096];
    int ndim;

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        for (ndim = 0; ndim < 4 && cases[i].sizes[ndim]; ndim++)
            ;
        setenv("LC_ALL", cases[i].lang, 1);
        picture(ndim, cases[i].sizes, cases[i].placements, cases[i].ndim,
                cases[i].shape, text, sizeof text);
        if (!ok(strcmp(text, cases[i].want) == 0, "%s", cases[i].claim))
            printf("%s", text);
    }
}

/* Whatever the tensor, a picture fits a terminal. */
static void test_bounds(void)
{
    static const char *const placements[] = { "S(0),S(1)", "S(1),S(0)",
        "S(0),S(0)", "S(1),R", "R,R", "S(1),S(1)" };
    static const int meshes[][2] = { { 1, 1 }, { 2, 3 }, { 64, 2 }, { 16, 8 },
                                     { 1, 128 } };
    static const int64_t sizes[] = { 0, 1, 3, 100, 1000000007 };
    char text[16384];
    bool good = true;

    setenv("LC_ALL", "C", 1);
    for (size_t p = 0; p < DTN_COUNT(placements); p++)
        for (size_t m = 0; m < DTN_COUNT(meshes); m++)
            for (size_t s = 0; s < 25; s++) {
                int64_t shape[] = { sizes[s / 5], sizes[s % 5] };
                int lines = 0;

                picture(2, meshes[m], placements[p], 2, shape, text,
                        sizeof text);
                for (char *line = strtok(text, "\n"); line; lines++) {
                    good = good && strlen(line) <= 80;
                    line = strtok(NULL, "\n");
                }
                good = good && lines <= 26;
            }
    ok(good, "150 pictures of 128 ranks and less stay within 80 x 26");
}

static void test_many(void)
{
    const int64_t shape[] = { 1024, 4, 4 };
    char text[8192];

    setenv("LC_ALL", "C", 1);
    picture(1, (const int[]){ 64 }, "S(0)", 2, shape, text, sizeof text);
    ok(strstr(text, "\n... and 54 more rows of boxes\n") != NULL,
       "64 rows of boxes: ten are drawn, and how many are not is said");
    picture(1, (const int[]){ 64 }, "S(0)", 3, shape, text, sizeof text);
    ok(strstr(text, "\n... and 32 more ranks\n") != NULL,
       "a table of 64 ranks is cut after 32");
}

int main(void)
{
    start(128, 0);
    test_golden();
    test_bounds();
    test_many();
    dtn_slots_destroy(&ctx);
    return done();
}
