/* test_parallel.c - modules spread over a mesh
 *
 * Wildcards and plans one after the other, on slices too; distribute_module;
 * and what is refused, after which the tree is as before.
 *
 * Without this test, a pattern could reach other modules, or a tree could be
 * left half distributed.
 */
#include "dtensor.h"
#include "tests/module/tree.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------- wildcards --- */

static struct dtensor_module *model(int layers)
{
    struct dtensor_module *top = module(NULL, NULL, "sequential");
    struct dtensor_module *all = module(top, "layers", "sequential");
    char name[4];

    for (int i = 0; i < layers; i++) {
        snprintf(name, sizeof name, "%d", i);
        mlp(all, name);
    }
    return top;
}

static int cut_layers(struct dtensor_module *top, int layers)
{
    char path[32], text[80];
    int n = 0;

    for (int i = 0; i < layers; i++) {
        snprintf(path, sizeof path, "layers.%d.up", i);
        n += strcmp(lies(top, path, "weight", text), "S(0)") == 0;
    }
    return n;
}

/* PyTorch's counts on 12 layers; "*.up" from the top crosses no dot. */
static void wildcards(void)
{
    static const struct { const char *pattern; int n; } rows[] = {
        { "layers.*.up", 12 }, { "layers.?.up", 10 }, { "layers.[1-2].up", 2 },
        { "layers.1*.up", 3 }, { "layers.[!0].up", 9 }, { "*.*.up", 12 },
        { "*.up", 0 }
    };
    struct dtensor_module *top = model(1);

    need(dtensor_parallelize(top, world, -1, NULL, -1, &job->err) ==
         DTENSOR_EINVAL, "a plan of -1 entries");
    need(dtensor_parallelize(top, world, 1, NULL, -1, &job->err) ==
         DTENSOR_EINVAL, "an entry of no plan");
    dtensor_module_destroy(top);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dtensor_style plan = { rows[i].pattern, "colwise" };
        int rc;

        top = model(12);
        rc = dtensor_parallelize(top, world, 1, &plan, -1, &job->err);
        need(rc == (rows[i].n ? 0 : DTENSOR_EINVAL), "%s: %s", rows[i].pattern,
             job->err.text);
        need(cut_layers(top, 12) == rows[i].n, "%s cut %d layers",
             rows[i].pattern, cut_layers(top, 12));
        dtensor_module_destroy(top);
    }
}

/* Two plans, one after the other; the mesh entered last, which is a slice; the
 * values of position 1 count.
 */
static void meshes(void)
{
    static const struct dtensor_style up = { "layers.*.up", "colwise" };
    static const struct dtensor_style down = { "layers.*.down", "rowwise" };
    const struct dtensor_mesh *grid, *slice;
    struct dtensor_module *top = model(2), *m = NULL;
    struct dtensor *x = tensor(DTENSOR_F64, 2, (const int64_t[]){ 4, 8 }, 5);
    struct dtensor *whole = NULL, *in = NULL, *y = NULL;
    struct dtensor_spec spec = *dtensor_spec_of(x);
    char text[200] = "";
    FILE *stream;

    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, "dp,tp", NULL,
                             &grid, &job->err));
    good(dtensor_mesh_slice(grid, "tp", &slice, &job->err));
    good(dtensor_module_apply(top, "", x, &whole, &job->err));
    good(dtensor_module_find(top, "layers.0.up", &m, &job->err));
    if (job->rank % 2 == 0)            /* position 0 of the slice             */
        memset(dtensor_to_local(dtensor_module_param(m, "weight")), 0, 8);
    good(dtensor_mesh_enter(slice, &job->err));
    good(dtensor_parallelize(top, NULL, 1, &up, 1, &job->err));
    need(dtensor_module_mesh(m) == slice, "the mesh of a module");
    good(dtensor_parallelize(top, NULL, 1, &down, -1, &job->err));
    good(dtensor_mesh_leave(slice, &job->err));
    stream = fmemopen(text, sizeof text, "w");
    good(dtensor_module_print(m, stream, &job->err));
    fclose(stream);
    need(strcmp(text, "up: linear  weight f64[16, 8](S(0))  bias f64[16](S(0))"
                "  (colwise)\n") == 0, "%s", text);
    spec.mesh = slice;
    good(dtensor_distribute(&spec, dtensor_to_local(x), -1, &in, &job->err));
    good(dtensor_module_apply(top, "", in, &y, &job->err));
    need(dtensor_local_bytes(y) == dtensor_local_bytes(whole) &&
         memcmp(dtensor_to_local(y), dtensor_to_local(whole),
                dtensor_local_bytes(y)) == 0, "other numbers on a slice");
    dtensor_destroy(x);
    dtensor_destroy(in);
    dtensor_destroy(y);
    dtensor_destroy(whole);
    dtensor_module_destroy(top);
}

/* A mesh of two of the ranks; the others call the same, and hold nothing. */
static void outside(void)
{
    static const struct dtensor_style plan[] = { { "m", "rowwise" } };
    const int64_t shape[] = { 4, 8 };
    const struct dtensor_mesh *two;
    struct dtensor_module *top = single("linear"), *m = NULL;
    struct dtensor *x = NULL, *y = NULL;
    struct dtensor_spec spec;

    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, NULL,
                             (const int[]){ 1, 2 }, &two, &job->err));
    good(dtensor_parallelize(top, two, 1, plan, 0, &job->err));
    good(dtensor_module_find(top, "m", &m, &job->err));
    need((dtensor_local_bytes(dtensor_module_param(m, "weight")) > 0) ==
         (job->rank == 1 || job->rank == 2), "a rank outside holds a part");
    good(dtensor_spec_on(&spec, two, "R", DTENSOR_F64, 2, shape, &job->err));
    good(dtensor_ones(&spec, &x, &job->err));
    good(dtensor_module_apply(top, "", x, &y, &job->err));
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_module_destroy(top);
}

/* --------------------------------------------------------- partition --- */

static dtensor_partition_f partition, partition_bad;

static const char *partition(const struct dtensor_module *m, const char *name,
                             void *arg)
{
    ++*(int *)arg;
    return strcmp(dtensor_module_name(m), "up") == 0 &&
           strcmp(name, "weight") == 0 ? "S(0)" : NULL;
}

static int hook_cut(const struct dtensor_hook *call, struct dtensor_error *err)
{
    ++*(int *)call->arg;
    return dtensor_redistribute(call->t[0], "S(0)", &call->made[0], err);
}

static int hook_gather(const struct dtensor_hook *call,
                       struct dtensor_error *err)
{
    need(dtensor_module_mesh(call->module) == world, "mesh");
    return dtensor_redistribute(call->t[0], "R", &call->made[0], err);
}

static const char *partition_bad(const struct dtensor_module *m,
                                 const char *name, void *arg)
{
    return strcmp(dtensor_module_name(m), "down") == 0 ? "S(1)" : "S(0)";
}

static void distribution(void)
{
    int asked = 0;
    const struct dtensor_distribution how = { partition, hook_cut, hook_gather,
                                              &asked, 0 };
    const struct dtensor_distribution bad = { partition_bad, hook_cut,
                                              hook_gather, &asked, -1 };
    struct dtensor_module *top = single("mlp");
    struct dtensor *x = tensor(DTENSOR_F64, 2, (const int64_t[]){ 4, 8 }, 5);
    struct dtensor *whole = NULL, *y = NULL;
    char text[80];

    good(dtensor_module_apply(top, "", x, &whole, &job->err));
    need(dtensor_distribute_module(top, world, &bad, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "m.down: bias: "), "%s",
         job->err.text);
    need(strcmp(lies(top, "m.up", "weight", text), "R") == 0 &&
         !dtensor_module_mesh(top), "half distributed");
    good(dtensor_distribute_module(top, world, &how, &job->err));
    need(asked == 4 && strcmp(lies(top, "m.up", "weight", text), "S(0)") == 0 &&
         strcmp(lies(top, "m.up", "bias", text), "R") == 0, "%d asked", asked);
    good(dtensor_module_apply(top, "", x, &y, &job->err));
    need(asked == 5 && strcmp(placement(y, text), "R") == 0, "hooks");
    same(y, whole, "distribute_module");
    need(dtensor_distribute_module(top, world, NULL, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "is distributed already"),
         "%s", job->err.text);
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_destroy(whole);
    dtensor_module_destroy(top);
}

/* ----------------------------------------------------------- refused --- */

static const struct {
    struct dtensor_style plan[2];  /* the second is bad, or there is none     */
    const char *words;             /* of the error                            */
} refused[] = {
    { { { "m.up", "colwise" }, { "m.dwn", "rowwise" } },
      "plan: \"m.dwn\": matches no module: m has no child \"dwn\" (did you "
      "mean \"down\"?)" },
    { { { "m.up", "colwise" }, { "m.up.x", "rowwise" } },
      "m.up has no child \"x\" (it has no children)" },
    { { { "m.up", "colwise" }, { "m.*", "rowwise" } },
      "m.up has a style already: \"colwise\" by m.up" },
    { { { "m.up", "colwise" }, { "m.act", "rowwise" } },
      "rowwise is for linear and embedding, not for \"relu\"" },
    { { { "m.up", "colwise" }, { "m.down", "colwize" } },
      "no style \"colwize\"; did you mean \"colwise\"?" },
    { { { "m.up", "colwise" }, { "m.down", "" } }, "no style \"\"" },
    { { { "m.up", "colwise" }, { "m.down", NULL } }, "no style" },
    { { { "m.up", "colwise" }, { "m..down", "rowwise" } }, "bad pattern" },
    { { { "m.up", "colwise" }, { "m.down.", "rowwise" } }, "bad pattern" },
    { { { "m.up", "colwise" }, { "m.down", "rowwise input=R" } },
      "rowwise has no option \"input=R\" (expected output=LAYOUT)" },
    { { { "m.up", "colwise" }, { "m.down", "rowwise output=Q" } }, "\"Q\"" },
    { { { "m.up", "colwise" }, { "m.down", "rowwise output=R,R" } },
      "expected at most 1" },
    { { { "m.up", "colwise" }, { "m.down", "colwise output=P" } },
      "the output of colwise is no term" },
    { { { "m.up", "colwise" }, { "m.down", "sequence dim=8" } }, "dim=8: " },
    { { { "m.up", "colwise" }, { "m.down", "prepare" } },
      "prepare without input=LAYOUTS" },
    { { { "m.up", "colwise" }, { "m.down", "prepare input=-,-,Q" } }, "\"Q\"" }
};

static void refusals(void)
{
    struct dtensor_module *top = single("mlp"), *m = NULL;
    const struct dtensor_mesh *grid;
    char text[80];

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        need(dtensor_parallelize(top, world, 2, refused[i].plan, -1, &job->err)
             == DTENSOR_EINVAL && strstr(job->err.text, refused[i].words),
             "%s: %s", refused[i].plan[1].style, job->err.text);
        need(strcmp(lies(top, "m.up", "weight", text), "R") == 0 &&
             !dtensor_module_mesh(top), "half distributed");
    }
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, "a,b", NULL,
                             &grid, &job->err));
    need(dtensor_parallelize(top, grid, 1, refused[0].plan, -1, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "has 2 dimensions"), "%s",
         job->err.text);
    need(dtensor_parallelize(top, NULL, 1, refused[0].plan, -1, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "no mesh was entered"), "%s",
         job->err.text);
    need(dtensor_parallelize(top, world, 1, refused[0].plan, 4, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "root 4"), "%s",
         job->err.text);
    good(dtensor_module_find(top, "m.down", &m, &job->err));
    param(m, "weight", 1, (const int64_t[]){ 8 }, 0);
    need(dtensor_parallelize(top, world, 1, &(struct dtensor_style){ "m.down",
         "rowwise" }, -1, &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "m.down: weight: "), "%s", job->err.text);
    need(!dtensor_module_mesh(top), "half distributed");
    m = module(top, "bare", "linear");
    need(dtensor_parallelize(top, world, 1, &(struct dtensor_style){ "bare",
         "rowwise" }, -1, &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "bare has no parameter \"weight\""), "%s",
         job->err.text);
    dtensor_module_destroy(top);
}

/* Calls that do not fit the style. */
static void calls(void)
{
    static const struct dtensor_style plan[] = {
        { "m", "prepare input=R,R" } }, once[] = { { "m.up", "colwise" } };
    struct dtensor_module *top = single("mlp");
    struct dtensor *x = tensor(DTENSOR_F64, 2, (const int64_t[]){ 4, 8 }, 5);
    struct dtensor *deep = tensor(DTENSOR_F64, 3, (const int64_t[]){ 2, 4, 8 },
                                  5), *y = NULL, *other = NULL;
    const struct dtensor_mesh *grid;
    struct dtensor_spec spec = *dtensor_spec_of(x);
    char text[80];

    good(dtensor_parallelize(top, world, 1, plan, -1, &job->err));
    need(dtensor_module_apply(top, "", x, &y, &job->err) == DTENSOR_EINVAL &&
         strcmp(job->err.text, "m: prepare: 1 inputs for 2 layouts") == 0,
         "%s", job->err.text);
    need(dtensor_parallelize(top, world, 1, plan, -1, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "m has a style already"), "%s",
         job->err.text);
    good(dtensor_parallelize(top, world, 1, once, -1, &job->err));
    good(dtensor_module_apply(top, "m.up", x, &y, &job->err));
    need(strcmp(placement(y, text), "S(1)") == 0, "output %s", text);
    dtensor_destroy(y);
    good(dtensor_module_apply(top, "m.up", deep, &y, &job->err));
    need(strcmp(placement(y, text), "S(2)") == 0, "3-D output %s", text);
    dtensor_destroy(y);
    dtensor_destroy(deep);
    y = NULL;
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 4 }, NULL,
                             (const int[]){ 3, 2, 1, 0 }, &grid, &job->err));
    spec.mesh = grid;
    good(dtensor_ones(&spec, &other, &job->err));
    need(dtensor_module_apply(top, "m.up", other, &y, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "m.up: colwise: a tensor lies "
                                  "on "), "%s", job->err.text);
    need(!y, "an output was written");
    dtensor_destroy(x);
    dtensor_destroy(other);
    dtensor_module_destroy(top);
}

int main(void)
{
    static const struct { void (*run)(void); const char *claim; } parts[] = {
        { wildcards, "wildcards match the modules that they should" },
        { meshes, "slices, the mesh entered last, and the values of one position" },
        { outside, "ranks outside the mesh" },
        { distribution, "a module is distributed by a function" },
        { refusals, "what is refused leaves the tree as it was" },
        { calls, "calls that do not fit a style are refused" }
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ok(tree_ranks(parts[i].run), "%s", parts[i].claim);
    return done();
}
