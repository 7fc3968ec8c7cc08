/* test_spec_text.c - specs and placements as PyTorch prints them
 *
 * tests/golden/specs.txt holds what a real PyTorch prints for specs with all
 * element types, reductions, strided shards and shard orders.  Each text is
 * made here from the placements, and read back.
 *
 * Without this test, a text that a user copies from PyTorch could be read as
 * another spec.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/golden.h"
#include "tests/support/mesh_job.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- PyTorch's */

/* Make the spec of a line from the library's own words. */
static bool line_spec(struct golden *table, struct dtensor_spec *spec)
{
    int64_t shape[DTENSOR_MAX_DIMS], sizes[DTENSOR_MAX_DIMS];
    int mesh[DTENSOR_MAX_DIMS], ndim, n;
    enum dtensor_dtype dtype;

    if (dtensor_dtype_parse(golden_word(table), &dtype, NULL) != 0)
        return false;
    ndim = golden_sizes(golden_word(table), shape);
    n = golden_sizes(golden_word(table), sizes);
    for (int m = 0; m < n; m++)
        mesh[m] = (int)sizes[m];
    return dtensor_spec_on(spec, grid(n, mesh, NULL), golden_word(table),
                           dtype, ndim, shape, NULL) == 0;
}

/* Cut "= TEXT = TEXT" in two. */
static bool line_texts(char *rest, char **specp, char **placesp)
{
    char *cut = strstr(rest, ") = (");

    if (!cut || strncmp(rest, "= ", 2) != 0)
        return false;
    cut[1] = '\0';
    *specp = rest + 2;
    *placesp = cut + 4;
    return true;
}

/* One line: "spec" is written and read, "order" only read. */
static const char *line_wrong(struct golden *table)
{
    const bool writes = strcmp(golden_word(table), "spec") == 0;
    struct dtensor_spec spec, read;
    char *torch, *places, text[200], whole[208];

    if (!line_spec(table, &spec) || !line_texts(table->next, &torch, &places))
        return "it cannot be understood";
    dtensor_spec_format(&spec, text, sizeof text);
    snprintf(whole, sizeof whole, "Spec(%s)", text);
    if (writes && strcmp(whole, torch) != 0)
        return "it is written otherwise";
    if (dtensor_spec_parse(&read, spec.mesh, torch, NULL) != 0 ||
        !dtn_spec_equal(&read, &spec))
        return "it is not read";
    if (dtensor_spec_parse(&read, spec.mesh, text, NULL) != 0 ||
        !dtn_spec_equal(&read, &spec))
        return "what is written is not read";
    if (dtensor_placements_parse(spec.mesh, places, spec.ndim, read.placement,
                                 NULL) != 0 || !dtn_spec_equal(&read, &spec))
        return "its placements are not read";
    return NULL;
}

static void test_golden(void)
{
    struct golden table;
    const char *wrong;
    int bad = 0, lines = 0;

    if (!golden_open(&table, "specs.txt")) {
        ok(false, "specs.txt can be read");
        return;
    }
    for (; golden_next(&table); lines++) {
        wrong = line_wrong(&table);
        if (wrong && bad++ == 0)
            note("%s: %s", wrong, table.line);
    }
    ok(bad == 0 && lines >= 150, "%d specs are written and read as %s prints "
       "them", lines, table.origin);
    golden_close(&table);
}

/* ------------------------------------------------------------- round trips */

/* What PyTorch has not is read back, too. */
static void test_own(void)
{
    static const char *const placements[] = {
        "C(0,2),R,S(1)", "S(0:3,5),S(1),P", "S(0:3,5),S(1:8,0),S(0)",
        "C(1,3),C(1,2),SS(1,2)", "P(max),S(1),S(1)", "S(0),S(0),C(0,1)"
    };
    const int64_t shape[] = { 8, 8 };
    const struct dtensor_mesh *mesh = GRID(NULL, 2, 2, 2);
    struct dtensor_spec spec, read;
    struct dtensor_error err;
    char text[200];

    for (size_t i = 0; i < DTN_COUNT(placements); i++) {
        err.text[0] = '\0';
        ok(dtensor_spec_on(&spec, mesh, placements[i], DTENSOR_BOOL, 2, shape,
                           &err) == 0 &&
           dtensor_spec_format(&spec, text, sizeof text) > 0 &&
           dtensor_spec_parse(&read, mesh, text, &err) == 0 &&
           dtn_spec_equal(&read, &spec), "%s is read back %s",
           placements[i], err.text);
    }
}

static const struct { const char *text, *words; } unread[] = {
    { "S(0)[1],S(0)[1],R", "order" }, { "S(0)[2],S(0)[0],R", "order" },
    { "S(0)[1],S(0),R", "order" }, { "R[0],R,R", "brackets" },
    { "S(0)[x],R,R", "brackets" }, { "S(0)[],R,R", "brackets" },
    { "S(0)[-1],R,R", "brackets" }, { "]RR", "brackets" },
    { "SS(0,2)[0],S(0)[1],R", "not S(dimension)" },
    { "S(0)S(1)", "has 2" }, { "RRRR", "has 4" }, { "(R,R)", "has 2" },
    { "()", "word 1" }, { "(R,R,R", "word 1" }, { "(R,R,R,,)", "has 4" },
    { "Shard(0),R,R", "did you mean S(0)?" },
    { "_StridedShard(dim=0, 2),R,R", "expected SS(dimension,factor)" },
    { "Shard(dim=2),R,R", "2 dimensions" },
};

static void test_placements(void)
{
    static const struct { const char *text, *plain, *torch; } t[] = {
        { "S(0)[1]S(0)[0]R", "SS(0,2),S(0),R", "_S(0, 2)S(0)R" },
        { "S(0)[0]S(0)[1]R", "S(0),S(0),R", "S(0)[0]S(0)[1]R" },
        { "S(0)S(1)R", "S(0),S(1),R", "S(0)S(1)R" },
        { "RRR", "R,R,R", "RRR" },
        { "RS(0)[0]S(0)[1]", "R,S(0),S(0)", "RS(0)[0]S(0)[1]" },
        { "S(0)[2]S(0)[1]S(0)[0]", "SS(0,4),SS(0,2),S(0)",
          "_S(0, 4)_S(0, 2)S(0)" },
        { "S(0)[1],S(0)[2],S(0)[0]", "SS(0,2),SS(0,2),S(0)",
          "_S(0, 2)_S(0, 2)S(0)" },
        { "_S(0, 3)RR", "SS(0,3),R,R", "_S(0, 3)RR" },
        { "P(sum)S(1)P(sum)", "P(sum),S(1),P(sum)", "P(sum)S(1)P(sum)" },
        { "P(product),R,R", "P(prod),R,R", "P(product)RR" },
        { "S(1)[1]S(0)S(1)[0]", "SS(1,2),S(0),S(1)", "_S(1, 2)S(0)S(1)" },
        { "RRS(-1)", "R,R,S(1)", "RRS(1)" },
        { " ( R, Shard(dim=-1) ,Partial(max)) ", "R,S(1),P(max)",
          "RS(1)P(max)" },
    };
    struct dtensor_spec spec = { .mesh = GRID(NULL, 2, 2, 2),
                                 .ndim = 2, .dtype = DTENSOR_F32,
                                 .shape = { 8, 8 } };
    char plain[100], torch[100], want[100];
    struct dtensor_error err;

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        const char *got = plain;

        if (dtensor_placements_parse(spec.mesh, t[i].text, 2, spec.placement,
                                     &err) != 0)
            got = err.text;
        else
            dtensor_placements_format(spec.mesh, spec.placement, plain,
                                      sizeof plain);
        dtensor_spec_format(&spec, torch, sizeof torch);
        snprintf(want, sizeof want, "f32[8, 8](%s)", t[i].torch);
        ok(strcmp(got, t[i].plain) == 0 && strcmp(torch, want) == 0,
           "%s is %s, printed %s", t[i].text, got, torch);
    }
    for (size_t i = 0; i < DTN_COUNT(unread); i++)
        ok(dtensor_placements_parse(spec.mesh, unread[i].text, 2,
                                    spec.placement, &err) == DTENSOR_EINVAL
           && strstr(err.text, unread[i].words), "%s: %s", unread[i].text,
           err.text);
}

static void test_edges(void)
{
    static const struct { const char *text, *words; } bad[] = {
        { "", "expected dtype" }, { "f32", "expected dtype" },
        { "f31[8](RR)", "expected dtype" }, { "f32[8", "expected dtype" },
        { "f32[8x8](RR)", "expected dtype" }, { "f32[8]", "expected dtype" },
        { "f32[8]RR", "expected dtype" }, { "f32[8](R)", "has 1" },
        { "f32[8](RR", "word 1" }, { "Spec(f32[8](RR)", "word 1" },
        { "f32[1, 1, 1, 1, 1, 1, 1, 1, 1](RR)", "expected dtype" },
        { "f32[99999999999999999999](RR)", "expected dtype" },
        { "f32[-4](RR)", "size -4" }, { "f32[8](P(band)R)", "P(band)" },
        { "f32[8](S(1)R)", "1 dimensions" },
    };
    const struct dtensor_mesh *mesh = GRID(NULL, 4, 2);
    struct dtensor_spec spec = { .ndim = 77 };
    struct dtensor_error err;
    char text[8];

    for (size_t i = 0; i < DTN_COUNT(bad); i++)
        ok(dtensor_spec_parse(&spec, mesh, bad[i].text, &err) ==
           DTENSOR_EINVAL && strstr(err.text, bad[i].words) &&
           spec.ndim == 77, "refused: %s: %s", bad[i].text, err.text);
    ok(dtensor_spec_parse(&spec, mesh, NULL, &err) == DTENSOR_EINVAL &&
       strstr(err.text, "no text"), "refused: NULL: %s", err.text);
    ok(dtensor_spec_parse(&spec, mesh, "f32[8, 8](RR)", &err) == 0 &&
       dtensor_spec_format(&spec, text, 5) == 13 && !strcmp(text, "f32["),
       "a short buffer gets what fits");
}

int main(void)
{
    start(256, 0);
    test_golden();
    test_own();
    test_placements();
    test_edges();
    dtn_slots_destroy(&ctx);
    return done();
}
