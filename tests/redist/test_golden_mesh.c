/* test_golden_mesh.c - meshes and plans, compared with a real PyTorch's tables
 *
 * The test needs no ranks: mesh.txt and algebra.txt are asked of contexts that
 * only know their rank, traces.txt of one that only plans.  See
 * tests/golden/make.py.
 *
 * Without this test, meshes and the steps of plans could differ from
 * PyTorch's.
 */
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/grid.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/golden.h"
#include "tests/support/mesh_job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORLD 8

static int cases, wrong;
static int refusals;                   /* by our stricter rule                */

static void same(const struct golden *table, const char *got, const char *want)
{
    cases++;
    if (strcmp(got, want) == 0)
        return;
    if (wrong++ < 5)
        note("%s: got %s", table->line, got);
}

/* Read a table line by line; the claim is that all are the same. */
static void compare(const char *name, void (*line)(struct golden *table),
                    const char *what)
{
    struct golden table;

    cases = wrong = 0;
    if (!golden_open(&table, name)) {
        ok(false, "%s can be read", name);
        return;
    }
    while (golden_next(&table))
        line(&table);
    ok(wrong == 0 && cases > 0, "%s: %d answers are those of %s", what, cases,
       table.origin);
    golden_close(&table);
}

/* What is left of the line after "= ". */
static const char *answer(struct golden *table)
{
    char *at = strstr(table->line, "= ");

    return at ? at + 2 : "";
}

/* --------------------------------------------------------------- meshes --- */

static const struct dtensor_mesh *mesh_read(const char *sizes,
                                            const char *names)
{
    int64_t read[DTENSOR_MAX_DIMS];
    int size[DTENSOR_MAX_DIMS], n = golden_sizes(sizes, read);

    for (int d = 0; d < n; d++)
        size[d] = (int)read[d];
    return grid(n, size, names);
}

/* The mesh that a line is about, as a rank sees it: *rcp. */
static const struct dtensor_mesh *mesh_made(struct golden *table, int *rcp)
{
    const char *what = golden_word(table), *sizes = golden_word(table);
    const struct dtensor_mesh *mesh = mesh_read(sizes, golden_word(table));
    const struct dtensor_mesh *got = NULL;
    const char *pick = golden_word(table), *then = golden_word(table);
    int64_t into[DTENSOR_MAX_DIMS];
    int size[DTENSOR_MAX_DIMS], n;

    if (strcmp(what, "unflatten") == 0) {
        n = golden_sizes(then, into);
        for (int d = 0; d < n; d++)
            size[d] = (int)into[d];
        *rcp = dtensor_mesh_unflatten(mesh, atoi(pick), n, size,
                                      n == 2 ? "u0,u1" : "u0,u1,u2", &got,
                                      NULL);
        return got;
    }
    *rcp = dtensor_mesh_slice(mesh, pick, &got, NULL);
    if (strcmp(what, "slice") == 0 || *rcp != 0)
        return got;
    *rcp = dtensor_mesh_flatten(got, "flat", &got, NULL);
    if (*rcp == 0 && strcmp(then, "=") != 0)
        *rcp = dtensor_mesh_slice(mesh, then, &got, NULL);
    return got;
}

/* "2x4:0,1,2,3,4,5,6,7" */
static void mesh_format(const struct dtensor_mesh *mesh, char *text,
                        size_t size)
{
    int64_t sizes[DTENSOR_MAX_DIMS];
    size_t used;

    for (int d = 0; d < mesh->ndim; d++)
        sizes[d] = mesh->size[d];
    golden_format(mesh->ndim, sizes, text, size);
    used = strlen(text);
    for (int i = 0; i < mesh->group.n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%c%d",
                                 i ? ',' : ':', dtensor_mesh_rank(mesh, i));
}

/* PyTorch lets a dimension of size 1 be named twice in a slice; ours has one
 * rule for all sizes.
 */
static bool stricter(const struct golden *table, const char *got)
{
    int64_t sizes[DTENSOR_MAX_DIMS];
    int n = golden_sizes(strchr(table->line, ' ') + 1, sizes);
    bool one = false;

    for (int d = 0; d < n; d++)
        one |= sizes[d] == 1;
    return one && strcmp(got, "refused") == 0 &&
           !strstr(table->line, "= refused");
}

/* Every rank is asked; equal answers are said once. */
static void mesh_line(struct golden *table)
{
    char all[512] = "", one[128], words[sizeof table->words];
    const struct dtensor_mesh *mesh;
    int rc;

    memcpy(words, table->words, sizeof words);
    for (int rank = 0; rank < WORLD; rank++) {
        memcpy(table->words, words, sizeof words);
        table->next = table->words;
        start(WORLD, rank);
        mesh = mesh_made(table, &rc);
        if (rc == 0)
            mesh_format(mesh, one, sizeof one);
        else
            snprintf(one, sizeof one, "refused");
        if (!strstr(all, one))
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
                     *all ? " " : "", one);
    }
    if (stricter(table, all))
        refusals++;
    else
        same(table, all, answer(table));
}

/* -------------------------------------------------------------- algebra --- */

/* "(4,2):(2,1)" as pairs; returns how many. */
static int pairs_read(const char *word, int size[], int stride[])
{
    const char *other = strchr(word, ':') + 1;
    char *end;
    int n = 0;

    for (; *word != ')'; n++) {        /* at "(" or ","                       */
        size[n] = (int)strtol(word + 1, &end, 10);
        word = end;
        stride[n] = (int)strtol(other + 1, &end, 10);
        other = end;
    }
    return n;
}

static void grid_read(const char *word, struct dtn_grid *grid)
{
    int size[DTN_GRID_MAX], stride[DTN_GRID_MAX];
    int n = pairs_read(word, size, stride);

    *grid = (struct dtn_grid){ 0 };
    for (int i = 0; i < n; i++)
        dtn_grid_add(grid, size[i], stride[i]);
}

/* "(4,2):(2,1)" */
static void grid_format(const struct dtn_grid *grid, char *text, size_t size)
{
    size_t used = 0;

    if (grid->n == 0)
        snprintf(text, size, "()");
    for (int half = 0; half < 2 && grid->n > 0; half++)
        for (int i = 0; i < grid->n && used < size; i++)
            used += (size_t)snprintf(
                text + used, size - used, "%s%d%s",
                i ? "," : half ? ":(" : "(",
                half ? grid->stride[i] : grid->size[i],
                i == grid->n - 1 ? ")" : "");
}

static void places(const struct dtn_grid *grid, int from, char *text,
                   size_t size)
{
    size_t used = 0;

    for (int i = 0; i < dtn_grid_size(grid) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d",
                                 i ? "," : "", from + dtn_grid_at(grid, i));
}

static void groups(const struct dtn_grid *grid, int world, char *text,
                   size_t size)
{
    struct dtn_grid rest;

    text[0] = '\0';
    if (!dtn_grid_complement(grid, world, &rest))
        return;
    for (int i = 0; i < dtn_grid_size(&rest); i++) {
        snprintf(text + strlen(text), size - strlen(text), "%s", i ? " " : "");
        places(grid, dtn_grid_at(&rest, i), text + strlen(text),
               size - strlen(text));
    }
}

static void composed(const struct dtn_grid *grid, const char *by, char *text,
                     size_t size)
{
    int sizes[DTN_GRID_MAX], strides[DTN_GRID_MAX];
    int n = pairs_read(by, sizes, strides);
    struct dtn_grid picked;

    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        if (!dtn_grid_pick(grid, sizes[i], strides[i], &picked)) {
            snprintf(text, size, "none");
            return;
        }
        snprintf(text + strlen(text), size - strlen(text), "%s", i ? " " : "");
        grid_format(&picked, text + strlen(text), size - strlen(text));
    }
}

static void algebra_line(struct golden *table)
{
    const char *what = golden_word(table);
    struct dtn_grid grid, rest;
    char text[512] = "none";

    grid_read(golden_word(table), &grid);
    if (strcmp(what, "canonical") == 0)
        grid_format(&grid, text, sizeof text);
    else if (strcmp(what, "orthogonal") == 0)
        strcpy(text, dtn_grid_orthogonal(&grid) ? "yes" : "no");
    else if (strcmp(what, "sorted") == 0)
        strcpy(text, dtn_grid_sorted(&grid) ? "yes" : "no");
    else if (strcmp(what, "codomain") == 0)
        places(&grid, 0, text, sizeof text);
    else if (strcmp(what, "groups") == 0)
        groups(&grid, atoi(golden_word(table)), text, sizeof text);
    else if (strcmp(what, "compose") == 0)
        composed(&grid, golden_word(table), text, sizeof text);
    else if (dtn_grid_complement(&grid, atoi(golden_word(table)), &rest))
        grid_format(&rest, text, sizeof text);
    same(table, text, answer(table));
}

/* ---------------------------------------------------------------- plans --- */

static struct dtensor_ctx *planner;
static int dearer;                     /* min-cost: than greedy               */

/* Min-cost plans against PyTorch's, both by our costs. */
static struct {
    int alike;                         /* as many collectives of each kind    */
    int cheaper, tied, dearer;         /* the others                          */
    int ordered;                       /* not asked: through a shard order    */
                                       /* that is not left to right           */
    int termed;                        /* or replicas cut to become terms     */
} torch;

/* What one step changes: "2:S(0)>R". */
static void step_format(const struct dtensor_plan_step *step, char *text,
                        size_t size)
{
    const struct dtensor_mesh *mesh = step->src.mesh;
    char from[200], to[200], *a = from, *b = to;

    dtensor_placements_format(mesh, step->src.placement, from, sizeof from);
    dtensor_placements_format(mesh, step->dst.placement, to, sizeof to);
    text[0] = '\0';
    for (int m = 0; m < mesh->ndim; m++) {
        size_t i = strcspn(a, ","), j = strcspn(b, ",");

        if (i != j || strncmp(a, b, i) != 0)
            snprintf(text + strlen(text), size - strlen(text), "%d:%.*s>%.*s",
                     m, (int)i, a, (int)j, b);
        a += i + 1;
        b += j + 1;
    }
}

static void steps_format(const struct dtensor_plan *plan, char *text,
                         size_t size)
{
    struct dtensor_plan_info info;
    struct dtensor_plan_step step;

    dtensor_plan_info(plan, &info);
    snprintf(text, size, "%s", info.nsteps ? "" : "-");
    for (int i = 0; i < info.nsteps; i++) {
        dtensor_plan_step(plan, i, &step, NULL);
        snprintf(text + strlen(text), size - strlen(text), "%s", i ? ";" : "");
        step_format(&step, text + strlen(text), size - strlen(text));
    }
}

/* "1/0/0/2": all-gathers, allreduces, reduce-scatters, all-to-alls. */
static void counts_format(const struct dtensor_plan *plan, char *text,
                          size_t size)
{
    static const char *const kinds[] = { "all-gather", "allreduce",
                                         "reduce-scatter", "all-to-all" };
    struct dtensor_plan_info info;
    struct dtensor_plan_step step;
    int n[4] = { 0 };

    dtensor_plan_info(plan, &info);
    for (int i = 0; i < info.nsteps; i++) {
        dtensor_plan_step(plan, i, &step, NULL);
        for (int k = 0; k < 4; k++)
            n[k] += strcmp(step.what, kinds[k]) == 0;
    }
    snprintf(text, size, "%d/%d/%d/%d", n[0], n[1], n[2], n[3]);
}

/* Does another mesh dimension right of m cut what dimension m is to cut?  Then
 * PyTorch cuts in another order than left to right.
 */
static bool reorders(const struct dtensor_spec *spec, int m)
{
    for (int k = m + 1; k < spec->mesh->ndim; k++)
        if (spec->placement[k].kind == DTENSOR_SHARD &&
            spec->placement[k].dim == spec->placement[m].dim)
            return spec->placement[m].kind == DTENSOR_SHARD;
    return false;
}

/* Does a way cut a replica and make terms of the shards?  They are others than
 * those of the replica, which are what greedy makes there, and ours.
 */
static bool cuts_terms(const struct dtensor_spec *src, const char *steps)
{
    for (int m = 0; m < src->mesh->ndim; m++) {
        char cut[16], term[16];
        const char *at;

        snprintf(cut, sizeof cut, "%d:R>S", m);
        snprintf(term, sizeof term, "%d:S(", m);
        at = src->placement[m].kind == DTENSOR_REPLICATE ? strstr(steps, cut)
                                                         : NULL;
        at = at ? strstr(at, term) : NULL;
        if (at && strncmp(at + 6, ">P", 2) == 0)
            return true;
    }
    return false;
}

/* What a way such as "1:S(0)>R;0:R>S(0)" costs by our model; -1: no way of
 * ours.
 */
static double way_us(struct dtensor_spec now, const char *steps)
{
    struct dtensor_plan_info info;
    struct dtensor_plan *plan;
    char text[200], *to;
    double us = 0;

    while (*steps && *steps != '-') {
        const size_t n = strcspn(steps, ";");
        const int m = atoi(steps);
        struct dtensor_spec next = now;
        struct dtensor_placement word[DTENSOR_MAX_DIMS];

        snprintf(text, sizeof text, "%.*s", (int)n, steps);
        to = strchr(text, '>') + 1;
        for (int k = 1; k < now.mesh->ndim; k++)
            snprintf(to + strlen(to), sizeof text - (size_t)(to - text) -
                     strlen(to), ",R");
        if (dtensor_placements_parse(now.mesh, to, now.ndim, word, NULL) != 0)
            return -1;
        next.placement[m] = word[0];
        if (reorders(&now, m) || reorders(&next, m))
            return -1;
        plan = plan_of(&now, &next, DTENSOR_ROUTE_DIRECT);
        if (!plan)
            return -1;
        dtensor_plan_info(plan, &info);
        us += info.predicted_us;
        dtensor_plan_destroy(plan);
        now = next;
        steps += n + (steps[n] == ';');
    }
    return us;
}

/* Ours, with these counts, against PyTorch's way. */
static void torch_compare(const struct dtensor_spec *src, double ours_us,
                          const char *ours, struct golden *table)
{
    const bool alike = strcmp(ours, golden_word(table)) == 0;
    const char *way = golden_word(table);
    const double us = way_us(*src, way);

    if (cuts_terms(src, way)) {
        torch.termed++;
        return;
    }
    if (us < 0)
        torch.ordered++;
    else if (ours_us > us * (1 + 1e-9))
        torch.dearer++;
    else if (alike)
        torch.alike++;
    else if (ours_us < us * (1 - 1e-9))
        torch.cheaper++;
    else
        torch.tied++;
    if (us >= 0 && ours_us > us * (1 + 1e-9))
        note("%s: ours %.3f us, PyTorch's way %.3f", table->line, ours_us, us);
}

static void trace_line(struct golden *table)
{
    struct dtensor_spec src = { .dtype = DTENSOR_F32 }, dst;
    char text[2][400];
    int64_t sizes[DTENSOR_MAX_DIMS];
    int size[DTENSOR_MAX_DIMS], n;
    struct dtensor_plan_info greedy, least;
    struct dtensor_plan *plan, *other;

    src.ndim = golden_sizes(golden_word(table), src.shape);
    n = golden_sizes(golden_word(table), sizes);
    for (int m = 0; m < n; m++)
        size[m] = (int)sizes[m];
    if (dtensor_mesh_create(planner, n, size, NULL, NULL, &src.mesh, NULL) != 0)
        abort();
    dst = src;
    dtensor_placements_parse(src.mesh, golden_word(table), src.ndim,
                             src.placement, NULL);
    dtensor_placements_parse(dst.mesh, golden_word(table), dst.ndim,
                             dst.placement, NULL);
    plan = plan_of(&src, &dst, DTENSOR_ROUTE_GREEDY);
    if (plan) {
        counts_format(plan, text[0], sizeof text[0]);
        steps_format(plan, text[1], sizeof text[1]);
    }
    same(table, plan ? text[0] : "none", golden_word(table));
    same(table, plan ? text[1] : "none", golden_word(table));
    other = plan_of(&src, &dst, DTENSOR_ROUTE_MIN_COST);
    if (plan && other) {
        dtensor_plan_info(plan, &greedy);
        dtensor_plan_info(other, &least);
        counts_format(other, text[0], sizeof text[0]);
        torch_compare(&src, least.predicted_us, text[0], table);
    }
    dearer += !plan || !other ||
              least.predicted_us > greedy.predicted_us * (1 + 1e-9);
    dtensor_plan_destroy(other);
    dtensor_plan_destroy(plan);
}

int main(void)
{
    compare("mesh.txt", mesh_line, "slices, flattened and unflattened meshes");
    note("%d refusal of a dimension of size 1 that is named twice", refusals);
    compare("algebra.txt", algebra_line, "the algebra of layouts");
    if (dtensor_init_offline(NULL, WORLD, 0, &planner, NULL) != 0)
        abort();
    compare("traces.txt", trace_line, "greedy plans, step by step");
    ok(dearer == 0, "min-cost plans are never dearer than greedy ones");
    ok(torch.dearer == 0 && torch.alike > 0, "nor than PyTorch's min-cost "
       "plans by our costs: %d have the same collectives, %d others that cost "
       "less, %d as much; %d of PyTorch's go through an order of ours by other "
       "ways, %d make terms of replicas they have cut", torch.alike,
       torch.cheaper, torch.tied, torch.ordered, torch.termed);
    dtensor_fini(planner);
    dtn_slots_destroy(&ctx);
    return done();
}
