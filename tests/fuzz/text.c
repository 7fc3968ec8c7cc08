/* text.c - any bytes as lists of hosts, placements, specs and styles
 *
 * What is accepted is written back, and must be accepted again with the same
 * meaning; what is refused has a reason of one line.
 */
#include "cluster/cluster.h"
#include "cluster/hostlist.h"
#include "dtensor.h"
#include "module/style.h"
#include "tests/fuzz/targets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The bytes as a text. */
static char *text_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static void must(bool condition)
{
    if (!condition)
        abort();
}

static bool said(const char *why)
{
    return *why && !strchr(why, '\n');
}

/* ---------------------------------------------------------------- hosts --- */

/* The reason is part of an error, which takes control characters out. */
static bool reasoned(const char *why)
{
    return *why != '\0';
}

/* The text that is written back names the same hosts, unless it was cut. */
static void hosts_again(char **names, int n)
{
    char text[8192], why[512], **again;
    int m = 0;

    dtn_hostlist_format(names, n, text, sizeof text);
    if (strstr(text, "..."))
        return;
    must(dtn_hostlist_expand(text, &again, &m, why, sizeof why) == 0);
    must(m == n);
    for (int i = 0; i < n; i++)
        must(strcmp(names[i], again[i]) == 0);
    dtn_hostlist_free(again, m);
}

void fuzz_hosts(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size), **names, why[512] = "";
    int n = 0, *counts;

    if (dtn_hostlist_expand(text, &names, &n, why, sizeof why) == 0) {
        hosts_again(names, n);
        dtn_hostlist_free(names, n);
    } else {
        must(reasoned(why));
    }
    *why = '\0';
    if (dtn_counts_expand(text, &counts, &n, why, sizeof why) == 0)
        free(counts);
    else
        must(reasoned(why));
    free(text);
}

/* ----------------------------------------------------------- placements --- */

/* Four ranks, which only plan. */
static struct dtensor_ctx *planner(const struct dtensor_mesh **gridp)
{
    static struct dtensor_ctx *ctx;
    static const struct dtensor_mesh *grid;
    const int sizes[] = { 2, 2 };

    if (!ctx)
        must(dtensor_init_offline(NULL, 4, 4, &ctx, NULL) == 0
             && dtensor_mesh_create(ctx, 2, sizes, "x,y", NULL, &grid, NULL)
                == 0);
    *gridp = grid;
    return ctx;
}

static void placements_again(const struct dtensor_mesh *grid, int ndim,
                             const struct dtensor_placement placement[])
{
    struct dtensor_placement again[DTENSOR_MAX_DIMS];
    char first[4096], second[4096];

    if (dtensor_placements_format(grid, placement, first, sizeof first)
        >= (int)sizeof first)
        return;
    must(dtensor_placements_parse(grid, first, ndim, again, NULL) == 0);
    dtensor_placements_format(grid, again, second, sizeof second);
    must(strcmp(first, second) == 0);
}

/* A spec that is accepted can be written and asked. */
static void spec_again(const struct dtensor_spec *spec)
{
    char text[4096];
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    dtensor_spec_format(spec, text, sizeof text);
    for (int rank = 0; rank < 4; rank++)
        dtensor_spec_local(spec, rank, shape, offset);
}

void fuzz_placements(const uint8_t *data, size_t size)
{
    const struct dtensor_mesh *grid;
    struct dtensor_placement placement[DTENSOR_MAX_DIMS];
    struct dtensor_error err;
    struct dtensor_spec spec;
    char *text;
    const int ndim = size > 0 ? data[0] % (DTENSOR_MAX_DIMS + 1) : 0;

    planner(&grid);
    text = text_of(data + (size > 0), size - (size > 0));
    if (dtensor_placements_parse(grid, text, ndim, placement, &err) == 0)
        placements_again(grid, ndim, placement);
    else
        must(said(err.text));
    if (dtensor_spec_parse(&spec, grid, text, &err) == 0)
        spec_again(&spec);
    else
        must(said(err.text));
    free(text);
}

/* --------------------------------------------------------------- styles --- */

void fuzz_styles(const uint8_t *data, size_t size)
{
    static struct dtensor_module *module;
    const struct dtensor_mesh *grid, *line;
    struct dtensor_ctx *ctx = planner(&grid);
    struct dtensor_error err = { .code = 0 };
    struct dtn_styled styled;
    char *text = text_of(data, size);

    must(dtensor_mesh_find(ctx, "world", &line, NULL) == 0);
    if (!module)
        must(dtensor_module_create(ctx, "linear", NULL, NULL, &module, NULL)
             == 0);
    memset(&styled, 0, sizeof styled);
    if (dtn_style_read(module, text, line, &styled, &err) != 0)
        must(said(err.text));
    free(text);
}
