/* test_plan.c - modules spread by the plan of a cluster file
 *
 * A plan of the file and the same list given by the program lay a model out
 * alike, on the mesh that the plan names or on one that the program gives; and
 * what the file cannot know is refused by the program, with the tree as it was.
 *
 * Without this test, a plan that dtensor-conf calls good could cut a model in
 * another way than it says, or on another mesh.
 */
#include "dtensor.h"
#include "tests/module/tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file[] =
    "[cluster]\nversion = 1\n"
    "[nodes \"a\"]\nhosts = localhost\nranks = 4\n"
    "[transport]\nconnect_timeout = 60s\nop_timeout = 60s\n"
    "[mesh \"world\"]\ndims = dp=2, tp=2\n"
    "[mesh \"flat\"]\ndims = all=4\n"
    "[plan \"mlp\"]\nmesh = world\ndim = tp\n"
    "*.up = colwise\nm.down = rowwise   output=S(0)\n"
    ". = prepare output=R\n"
    "[plan \"line\"]\nmesh = flat\n*.up = colwise\n"
    "[plan \"free\"]\n*.up = colwise\n"
    "[plan \"typo\"]\nmesh = flat\nm.up = colwise\nm.dwn = rowwise\n"
    "[plan \"type\"]\nmesh = flat\nm.act = colwise\n"
    "[plan \"wrong\"]\nmesh = flat\nm.u* = colwise\nm.*p = rowwise\n"
    "bare = rowwise\nm.flat = colwise\nm.act = colwise\nn.up = colwise\n"
    ". = prepare output=S(0:1,2)\n"
    "[plan \"long\"]\nmesh = flat\nm.up = colwise\n"
    "m.down = rowwise output=S(0:1,2,3)\n";

static char path[] = "/tmp/dtensor-plan-XXXXXX";

static const struct dtensor_mesh *mesh_named(const char *name)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, name, &mesh, &job->err));
    return mesh;
}

/* The model, and its input, whole on every rank. */
static struct dtensor_module *model(struct dtensor **xp)
{
    static const int64_t shape[] = { 4, 8 };
    struct dtensor_module *top = module(NULL, NULL, "sequential");

    mlp(top, "m");
    *xp = tensor(DTENSOR_F64, 2, shape, 5);
    return top;
}

/* The input again, on the mesh along which the model is cut. */
static struct dtensor *move(const struct dtensor *x,
                            const struct dtensor_mesh *mesh)
{
    struct dtensor_spec spec = *dtensor_spec_of(x);
    struct dtensor *moved_x = NULL;

    spec.mesh = mesh;
    good(dtensor_distribute(&spec, dtensor_to_local(x), -1, &moved_x,
                            &job->err));
    return moved_x;
}

static void text_of(const struct dtensor_module *top, char *text, size_t size)
{
    FILE *stream = fmemopen(text, size, "w");

    good(dtensor_module_print(top, stream, &job->err));
    fclose(stream);
}

/* What the style "colwise" says of a linear layer, and of what has no style. */
static void style_tells(const struct dtensor_module *up,
                        const struct dtensor_module *plain)
{
    need(strcmp(dtensor_module_style(up), "colwise") == 0 &&
         strcmp(dtensor_module_layout(up, 0, 0), "R") == 0 &&
         strcmp(dtensor_module_layout(up, 1, 0), "S(-1)") == 0 &&
         strcmp(dtensor_module_placement(up, "weight"), "S(0)") == 0,
         "colwise is told otherwise");
    need(!dtensor_module_layout(up, 0, 1) && !dtensor_module_layout(up, 1, -1)
         && !dtensor_module_placement(up, "none"), "of what there is not");
    need(!dtensor_module_style(plain) && !dtensor_module_layout(plain, 0, 0) &&
         !dtensor_module_placement(plain, "weight"), "of no style");
}

/* The plan by name gives the tree that the same list gives, on `mesh`. */
static void alike(const char *name, const struct dtensor_mesh *given,
                  const struct dtensor_mesh *mesh, int n,
                  const struct dtensor_style plan[])
{
    struct dtensor *x, *in, *whole = NULL, *y = NULL, *all = NULL;
    struct dtensor_module *top = model(&x), *twin = model(&in), *up = NULL;
    char a[2000] = "", b[2000] = "";

    dtensor_destroy(in);
    good(dtensor_module_apply(top, "", x, &whole, &job->err));
    good(dtensor_parallelize_plan(top, given, name, -1, &job->err));
    good(dtensor_parallelize(twin, mesh, n, plan, -1, &job->err));
    text_of(top, a, sizeof a);
    text_of(twin, b, sizeof b);
    need(strcmp(a, b) == 0 && strstr(a, "(colwise)"), "%s: %s is not %s", name,
         a, b);
    good(dtensor_module_find(top, "m.up", &up, &job->err));
    need(dtensor_module_mesh(up) == mesh, "%s: another mesh", name);
    style_tells(up, dtensor_module_parent(up));
    in = move(x, mesh);
    good(dtensor_module_apply(top, "", in, &y, &job->err));
    good(dtensor_redistribute(y, "R", &all, &job->err));
    need(dtensor_local_bytes(all) == dtensor_local_bytes(whole) &&
         memcmp(dtensor_to_local(all), dtensor_to_local(whole),
                dtensor_local_bytes(all)) == 0, "%s: other numbers", name);
    dtensor_destroy(all);
    dtensor_destroy(x);
    dtensor_destroy(in);
    dtensor_destroy(y);
    dtensor_destroy(whole);
    dtensor_module_destroy(top);
    dtensor_module_destroy(twin);
}

static void plans(void)
{
    static const struct dtensor_style mlp_plan[] = {
        { "", "prepare output=R" }, { "*.up", "colwise" },
        { "m.down", "rowwise output=S(0)" } };
    static const struct dtensor_style up[] = { { "*.up", "colwise" },
                                               { "", "prepare output=R" } };
    const struct dtensor_mesh *tp;

    good(dtensor_mesh_slice(mesh_named("world"), "tp", &tp, &job->err));
    alike("mlp", NULL, tp, 3, mlp_plan);
    alike("mlp", world, world, 3, mlp_plan);
    alike("line", NULL, world, 1, up);
    good(dtensor_mesh_enter(tp, &job->err));
    alike("free", NULL, tp, 1, up);
    good(dtensor_mesh_leave(tp, &job->err));
}

static void refusals(void)
{
    static const struct { const char *name, *words; } rows[] = {
        { "mlq", "has no plan \"mlq\" (did you mean \"mlp\"?)" },
        { NULL, "plan: no name" },
        { "free", "plan free: it names no mesh, and none was given (choose one, "
          "or set mesh = NAME in " },
        { "typo", "plan: \"m.dwn\": matches no module: m has no child \"dwn\" "
          "(did you mean \"down\"?)" },
        { "type", "colwise is for linear and embedding, not for \"relu\"" },
        { "long", "with 3 lengths, but mesh dimension 0 has 4 ranks" }
    };
    struct dtensor *x;
    struct dtensor_module *top = model(&x);
    char before[2000] = "", after[2000] = "";

    text_of(top, before, sizeof before);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        need(dtensor_parallelize_plan(top, NULL, rows[i].name, -1, &job->err) ==
             DTENSOR_EINVAL && strstr(job->err.text, rows[i].words), "%s: %s",
             rows[i].name ? rows[i].name : "NULL", job->err.text);
    need(dtensor_parallelize_plan(top, mesh_named("world"), "mlp", -1,
                                  &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "has 2 dimensions"), "%s", job->err.text);
    text_of(top, after, sizeof after);
    need(strcmp(before, after) == 0, "half distributed: %s", after);
    dtensor_destroy(x);
    dtensor_module_destroy(top);
}

/* ---------------------------------------------------------------- check --- */

static void finding_note(const char *text, void *list)
{
    const char *line = strstr(text, path) == text ? text + strlen(path) : text;

    strcat(strcat(list, line), "\n");
}

/* Every entry that does not fit is told once, and nothing is changed. */
static void findings(void)
{
    static const char want[] =
        ":34: error: m.*p: m.up has a style already: \"colwise\" by m.u* "
        "(expected one for each module)\n"
        ":35: error: bare: bare has no parameter \"weight\"\n"
        ":36: error: m.flat: m.flat: weight: placements: word 1 of \"S(0)\" is "
        "\"S(0)\", but the tensor has 0 dimensions (a scalar cannot be "
        "sharded)\n"
        ":37: error: m.act: colwise is for linear and embedding, not for "
        "\"relu\"\n"
        ":38: error: n.up: matches no module: the module has no child \"n\" "
        "(expected m or bare)\n"
        ":39: error: .: placements: word 1 of \"S(0:1,2)\" is \"S(0:1,2)\" with "
        "2 lengths, but mesh dimension 0 has 4 ranks (give one for each)\n";
    struct dtensor *x;
    struct dtensor_module *top = model(&x), *m = NULL;
    char before[2000] = "", after[2000] = "", list[4000] = "";

    module(top, "bare", "linear");
    good(dtensor_module_find(top, "m", &m, &job->err));
    param(module(m, "flat", "linear"), "weight", 0, NULL, 0);
    text_of(top, before, sizeof before);
    need(dtensor_parallelize_check(top, NULL, "wrong", finding_note, list,
                                   &job->err) == DTENSOR_EINVAL &&
         strcmp(list, want) == 0, "%s", list);
    need(strncmp(job->err.text + strlen(path), list,
                 strlen(job->err.text) - strlen(path)) == 0, "the first is %s",
         job->err.text);
    need(dtensor_parallelize_check(top, world, "mlp", NULL, NULL,
                                   &job->err) == 0, "%s", job->err.text);
    need(dtensor_parallelize_check(top, NULL, "mlq", NULL, NULL, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "no plan \"mlq\""), "%s",
         job->err.text);
    need(dtensor_parallelize_check(top, mesh_named("world"), "mlp", NULL, NULL,
                                   &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "has 2 dimensions"), "%s", job->err.text);
    text_of(top, after, sizeof after);
    need(strcmp(before, after) == 0, "a check changed it: %s", after);
    dtensor_destroy(x);
    dtensor_module_destroy(top);
}

static void (*part_run)(void);

static void part(int rank, int n, void *arg)
{
    struct job the_job;

    (void)arg;
    job = &the_job;
    job_open(job, rank, n, path);
    world = mesh_named("flat");
    part_run();
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const struct { void (*run)(void); const char *claim; } parts[] = {
        { plans, "a plan of the file is the same list that a program can give" },
        { findings, "all that does not fit is told, and nothing is changed" },
        { refusals, "what a file cannot know is refused, nothing is cut" }
    };
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, file, sizeof file - 1) != (ssize_t)sizeof file - 1
        || fchmod(fd, 0600) != 0)
        return 99;
    close(fd);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        part_run = parts[i].run;
        ok(ranks_run(WORLD, 60, part, NULL, NULL) == 0, "%s", parts[i].claim);
    }
    unlink(path);
    return done();
}
