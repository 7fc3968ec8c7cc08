/* test_mesh.c - meshes: from the file, created, sliced, queried; and refused
 *
 * One process plays ranks in turn, with contexts that only know their rank.
 *
 * Without this test, a mesh could put a rank at the wrong coordinate, or
 * accept names and sizes that make no sense.
 */
#include "base/compiler.h"
#include "base/units.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct dtn_mesh_def defs[] = {
    { "world", 3, { "dp", "pp", "tp" }, { 2, 2, 2 }, { 8, 0, 1, NULL },
      DTENSOR_CUDA },
    { "half", 1, { "tp" }, { 4 }, { 4, 4, 1, NULL }, DTENSOR_HOST }
};
static struct dtensor_cluster cluster = {
    .world_size = 8, .nmeshes = 2, .meshes = defs
};
static struct dtensor_ctx ctx;

static void start(int rank)
{
    dtn_slots_destroy(&ctx);
    memset(&ctx, 0, sizeof ctx);
    ctx.world.cluster = &cluster;
    ctx.world.rank = rank;
    if (dtn_meshes_init(&ctx, NULL) != 0)
        abort();
}

static const struct dtensor_mesh *find(const char *name)
{
    const struct dtensor_mesh *mesh = NULL;

    dtensor_mesh_find(&ctx, name, &mesh, NULL);
    return mesh;
}

/* The slice's ranks as "0,1,4-5", or the error. */
static const char *sliced(const struct dtensor_mesh *mesh, const char *names)
{
    static char text[sizeof ((struct dtensor_error *)0)->text];
    const struct dtensor_mesh *sub;
    struct dtensor_error err;
    int ranks[8];

    if (dtensor_mesh_slice(mesh, names, &sub, &err) != 0)
        return strcpy(text, err.text);
    for (int i = 0; i < sub->group.n; i++)
        ranks[i] = dtensor_mesh_rank(sub, i);
    return dtn_format_ranks(ranks, sub->group.n, text, sizeof text);
}

static void is(const char *got, const char *want, const char *claim)
{
    if (!ok(strcmp(got, want) == 0, "%s: %s", claim, want))
        note("got %s", got);
}

/* Meshes made of others keep the memory of their root, those of lists that of
 * "world".
 */
static void test_memory(void)
{
    const struct dtensor_mesh *world, *half, *mesh[4];

    start(6);
    world = find("world");
    half = find("half");
    if (dtensor_mesh_slice(world, "dp,pp", &mesh[0], NULL) != 0
        || dtensor_mesh_flatten(mesh[0], NULL, &mesh[1], NULL) != 0
        || dtensor_mesh_unflatten(world, 2, 2, (int[]){ 2, 1 }, "a,b",
                                  &mesh[2], NULL) != 0
        || dtensor_mesh_create(&ctx, 1, (int[]){ 4 }, "tp",
                               (int[]){ 4, 5, 6, 7 }, &mesh[3], NULL) != 0)
        abort();
    for (int i = 0; i < 4; i++)
        ok(dtensor_mesh_memory(mesh[i]) == DTENSOR_CUDA, "made mesh %d has "
           "the memory of world", i);
    ok(dtensor_mesh_memory(world) == DTENSOR_CUDA
       && dtensor_mesh_memory(half) == DTENSOR_HOST, "as the file has it");
    ok(mesh[3] != half && !dtensor_mesh_equal(mesh[3], half), "the same ranks "
       "in other memory are another mesh");
}

static void test_file(void)
{
    const struct dtensor_mesh *world, *mesh;
    struct dtensor_error err = { 0 };
    char text[80];
    int coord[3] = { 9, 9, 9 };

    start(6);
    world = find("world");
    ok(dtensor_mesh_ndim(world) == 3 && dtensor_mesh_size(world) == 8 &&
       dtensor_mesh_dim_size(world, 1) == 2 &&
       dtensor_mesh_dim_size(world, 3) == 0 &&
       strcmp(dtensor_mesh_dim_name(world, 2), "tp") == 0,
       "a mesh of the file has its sizes and names");
    is(dtn_mesh_format(world, text, sizeof text), "world(dp=2,pp=2,tp=2)",
       "a mesh is written");
    ok(dtensor_mesh_coord(world, 6, coord) == 1 && coord[0] == 1 &&
       coord[1] == 1 && coord[2] == 0, "rank 6 of 2x2x2 is at (1,1,0)");
    coord[0] = 9;
    ok(dtensor_mesh_coord(find("half"), 3, coord) == 0 && coord[0] == 9 &&
       dtensor_mesh_index(find("half"), 3) == -1 &&
       dtensor_mesh_index(find("half"), 7) == 3 &&
       dtensor_mesh_rank(find("half"), 0) == 4 &&
       dtensor_mesh_rank(find("half"), 4) == -1,
       "a rank outside a mesh has no coordinate there");
    mesh = world;
    ok(dtensor_mesh_find(&ctx, "wrold", &mesh, &err) == DTENSOR_EINVAL &&
       mesh == world, "an unknown mesh is refused, the result untouched");
    is(err.text, "mesh: no mesh \"wrold\" (there are: world, half)",
       "and the message lists what there is");
}

static void test_default_world(void)
{
    struct dtensor_cluster plain = { .world_size = 3 };

    start(0);
    dtn_slots_destroy(&ctx);
    ctx.world.cluster = &plain;
    ok(dtn_meshes_init(&ctx, NULL) == 0 && find("world") &&
       find("world")->ndim == 1 && find("world")->group.n == 3 &&
       strcmp(dtensor_mesh_dim_name(find("world"), 0), "world") == 0,
       "without a [mesh \"world\"] there is one of one dimension");
}

static void test_group(void)
{
    const struct dtensor_mesh *a, *b, *c;
    static const int two[] = { 2 }, ab[] = { 1, 5 }, ba[] = { 5, 1 };

    start(5);
    dtensor_mesh_create(&ctx, 1, two, NULL, ab, &a, NULL);
    dtensor_mesh_create(&ctx, 1, two, NULL, ba, &b, NULL);
    dtensor_mesh_create(&ctx, 1, two, NULL, ab, &c, NULL);
    ok(a == c && a != b, "the same ranks in the same order are one mesh");
    ok(a->group.me == 1 && b->group.me == 0 && a->group.hash != b->group.hash,
       "the group knows the own position, its hash the order");
    dtensor_mesh_create(&ctx, 1, two, "x", ab, &c, NULL);
    ok(a != c, "a name makes another mesh");
    c = NULL;
    dtensor_mesh_create(&ctx, 3, (const int[]){ 2, 2, 2 }, "dp,pp,tp", NULL,
                        &c, NULL);
    ok(c == find("world"), "made like the file's it is the file's");
    start(3);
    ok(find("half")->group.me == -1, "outside a mesh the own position is -1");
}

/* The tables of DeviceMesh slicing: which ranks each rank's slice has. */
static void test_slices(void)
{
    static const struct { int rank; const char *names, *ranks; } t[] = {
        { 0, "tp", "0-1" },      { 3, "tp", "2-3" },  { 6, "tp", "6-7" },
        { 0, "pp", "0,2" },      { 5, "pp", "5,7" },
        { 0, "dp", "0,4" },      { 7, "dp", "3,7" },
        { 2, "dp,pp", "0,2,4,6" }, { 5, "dp, pp", "1,3,5,7" },
        { 0, "dp,tp", "0-1,4-5" }, { 6, "dp,tp", "2-3,6-7" },
        { 4, "pp,tp", "4-7" },   { 4, "dp,pp,tp", "0-7" },
    };
    const struct dtensor_mesh *sub, *again, *all;
    bool good = true;

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        start(t[i].rank);
        if (strcmp(sliced(find("world"), t[i].names), t[i].ranks) != 0) {
            note("rank %d [%s]: %s", t[i].rank, t[i].names,
                 sliced(find("world"), t[i].names));
            good = false;
        }
    }
    ok(good, "slices of 2x2x2 are the ranks that share the other coordinates");
    start(1);
    dtensor_mesh_slice(find("world"), "dp,tp", &sub, NULL);
    dtensor_mesh_slice(find("world"), "dp,tp", &again, NULL);
    dtensor_mesh_slice(find("world"), "dp,pp,tp", &all, NULL);
    ok(sub == again && all == find("world"),
       "the same slice is the same mesh, and that of all names the mesh");
    is(sliced(sub, "dp"), "1,5", "a slice of a slice");
    is(sliced(find("half"), "tp"), "4-7", "outside a mesh, all its names");
    start(0);
    dtensor_mesh_create(&ctx, 2, (const int[]){ 2, 2 }, "a,b",
                        (const int[]){ 4, 5, 6, 7 }, &sub, NULL);
    is(sliced(sub, "b"), "4-5", "outside a mesh, the slice of its first rank");
}

static void test_bad_slices(void)
{
    const struct dtensor_mesh *plain;

    start(0);
    is(sliced(find("world"), "dim0"), "mesh: no dimension \"dim0\" to slice in "
       "world(dp=2,pp=2,tp=2)", "an unknown name");
    is(sliced(find("world"), ""), "mesh: no dimension \"\" to slice in "
       "world(dp=2,pp=2,tp=2)", "no name");
    is(sliced(find("world"), "tp,tp"), "mesh: dimension \"tp\" is named twice "
       "in a slice", "a name twice");
    is(sliced(find("world"), "tp,dp"), "mesh: dimension \"dp\" is out of order "
       "in a slice of world(dp=2,pp=2,tp=2) (name them in the mesh's order)",
       "names out of order");
    dtensor_mesh_create(&ctx, 2, (const int[]){ 2, 4 }, NULL, NULL, &plain,
                        NULL);
    is(sliced(plain, "tp"), "mesh: cannot slice by \"tp\" a mesh whose "
       "dimensions have no names", "a mesh without names");
}

static const int beyond[] = { 0, 8 }, negative[] = { -1, 0 };
static const int twice[] = { 3, 1, 2, 1 };

static void test_bad_meshes(void)
{
    static const struct {
        int ndim, sizes[9];
        const char *names;
        const int *ranks;
        const char *want;
    } t[] = {
        { 0, { 1 }, NULL, NULL, "mesh: 0 dimensions; expected 1 to 8" },
        { 9, { 1 }, NULL, NULL, "mesh: 9 dimensions; expected 1 to 8" },
        { 2, { 2, 0 }, NULL, NULL,
          "mesh: size 0 of dimension 1; expected 1 or more" },
        { 2, { 4, 4 }, NULL, NULL,
          "mesh: shape 4x4 needs at least 16 ranks, but the world has 8 (start "
          "more ranks, or give smaller sizes)" },
        { 3, { 2147483647, 2147483647, 4 }, NULL, NULL, "mesh: shape "
          "2147483647x2147483647x4 needs at least 2147483647 ranks, but the "
          "world has 8 (start more ranks, or give smaller sizes)" },
        { 2, { 2, 2 }, "a", NULL, "mesh: names \"a\" do not fit 2 dimensions "
          "(give one for each, or NULL)" },
        { 2, { 2, 2 }, "a,b,c", NULL, "mesh: names \"a,b,c\" do not fit 2 "
          "dimensions (give one for each, or NULL)" },
        { 2, { 2, 2 }, "a,a", NULL,
          "mesh: dimension name \"a\" is given twice in \"a,a\"" },
        { 2, { 2, 2 }, "a,", NULL,
          "mesh: name 2 of \"a,\" is empty or over 32 characters" },
        { 1, { 2 }, "abcdefghijklmnopqrstuvwxyzabcdefg", NULL, "mesh: name 1 "
          "of \"abcdefghijklmnopqrstuvwxyzabcdefg\" is empty or over 32 "
          "characters" },
        { 1, { 2 }, NULL, beyond,
          "mesh: rank 8 at position 1 is not in the world" },
        { 1, { 2 }, NULL, negative,
          "mesh: rank -1 at position 0 is not in the world" },
        { 2, { 2, 2 }, NULL, twice,
          "mesh: rank 1 at position 3 is listed twice" },
    };
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor_error err;

    start(0);
    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        err.text[0] = '\0';
        dtensor_mesh_create(&ctx, t[i].ndim, t[i].sizes, t[i].names,
                            t[i].ranks, &mesh, &err);
        is(err.text, t[i].want, "refused");
    }
    ok(mesh == NULL, "and the result is untouched each time");
}

int main(void)
{
    test_file();
    test_memory();
    test_default_world();
    test_group();
    test_slices();
    test_bad_slices();
    test_bad_meshes();
    dtn_slots_destroy(&ctx);
    return done();
}
