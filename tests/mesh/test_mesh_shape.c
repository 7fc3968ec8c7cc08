/* test_mesh_shape.c - meshes are flattened, unflattened and concatenated
 *
 * The cases of PyTorch's own tests of DeviceMesh, and every refusal in our
 * words.
 *
 * Without this test, a mesh made from others could have its ranks in another
 * order than PyTorch's.
 */
#include "base/compiler.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/mesh_job.h"

#include <string.h>

/* -------------------------------------------------------------- flatten --- */

static void test_flatten(void)
{
    static const struct { int rank; const char *names, *ranks, *name; } t[] = {
        { 0, "dp,cp", "0,2,4,6", "dp_cp" }, { 5, "dp,cp", "1,3,5,7", "dp_cp" },
        { 0, "dp,tp", "0,1,4,5", "dp_tp" }, { 6, "dp,tp", "2,3,6,7", "dp_tp" },
        { 7, "cp,tp", "4,5,6,7", "cp_tp" },
        { 3, "dp,cp,tp", "0,1,2,3,4,5,6,7", "dp_cp_tp" },
    };
    const struct dtensor_mesh *mesh, *sub, *first;

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        start(8, t[i].rank);
        sub = part(GRID("dp,cp,tp", 2, 2, 2), t[i].names);
        is(FLATTEN(sub, NULL), t[i].ranks, "flattened");
        ok(made->ndim == 1 && strcmp(made->dim_name[0], t[i].name) == 0,
           "and its name is %s", t[i].name);
        first = made;
        FLATTEN(sub, NULL);
        ok(made == first, "the same again is the same mesh");
        is(FLATTEN(sub, "x"), t[i].ranks, "under another name too");
        ok(made != first && made->group.ranks == first->group.ranks,
           "which is another mesh of the same group");
    }
    start(8, 0);
    mesh = GRID("dp,cp,tp", 2, 2, 2);
    FLATTEN(part(mesh, "dp"), NULL);
    ok(made == part(mesh, "dp"), "one dimension with its own name is itself");
    is(FLATTEN(part(mesh, "dp"), "data"), "0,4", "one dimension renamed");
    ok(GRID("dp,cp,tp", 2, 2, 2) == mesh && part(mesh, "dp,cp")->ndim == 2,
       "the mesh it was made of stays as it is");
}

static void test_flatten_refused(void)
{
    const struct dtensor_mesh *mesh, *before;
    static const struct { const char *names, *name, *want; } t[] = {
        { "dp,tp", "dp", "mesh: \"dp\" is a dimension of mesh(dp=2,cp=2,tp=2) "
          "already (give the flattened one another name)" },
        { "dp", "tp", "mesh: \"tp\" is a dimension of mesh(dp=2,cp=2,tp=2) "
          "already (give the flattened one another name)" },
        { "dp,tp", "x", "mesh: \"x\" is the name of other flattened "
          "dimensions already (give another)" },
        { "dp,tp", "", "mesh: \"\" cannot name a dimension (1 to 32 "
          "characters, no comma, no blank at an end)" },
        { "dp,tp", "a,b", "mesh: \"a,b\" cannot name a dimension (1 to 32 "
          "characters, no comma, no blank at an end)" },
        { "dp,tp", " a", "mesh: \" a\" cannot name a dimension (1 to 32 "
          "characters, no comma, no blank at an end)" },
        { "dp,tp", "abcdefghijklmnopqrstuvwxyzabcdefg", "mesh: "
          "\"abcdefghijklmnopqrstuvwxyzabcdefg\" cannot name a dimension (1 "
          "to 32 characters, no comma, no blank at an end)" },
    };

    start(8, 0);
    mesh = GRID("dp,cp,tp", 2, 2, 2);
    FLATTEN(part(mesh, "dp,cp"), "x");
    before = made;
    for (size_t i = 0; i < DTN_COUNT(t); i++)
        is(FLATTEN(part(mesh, t[i].names), t[i].name), t[i].want, "refused");
    is(FLATTEN(GRID(NULL, 2, 4), "x"), "mesh: cannot flatten a mesh whose "
       "dimensions have no names", "refused");
    mesh = GRID("a_name_of_some_length,another_one_as_long", 2, 4);
    is(FLATTEN(mesh, NULL), "mesh: \"a_name_of_some_length_another_one_as_long"
       "\" is over 32 characters (give the flattened dimension a name)",
       "refused");
    ok(made == before, "and the result is untouched each time");
    is(FLATTEN(mesh, "x"), "0,1,2,3,4,5,6,7",
       "another root may have the name for something else");
}

/* Slices of a root by names that flattening made. */
static void test_flat_names(void)
{
    static const struct { const char *names, *want; } t[] = {
        { "dp_cp,tp", "0,1|2,3|4,5|6,7" },
        { "dp,cp_tp", "0,1,2,3|4,5,6,7" },
        { "dp_tp", "0,1,4,5" },
        { "all", "0,1,2,3,4,5,6,7" },
        { "dp_tp,cp", "mesh: dimension \"cp\" is out of order in a slice of "
          "mesh(dp=2,cp=2,tp=2) (name them in the mesh's order)" },
        { "tp,dp_cp", "mesh: dimension \"dp_cp\" is out of order in a slice of "
          "mesh(dp=2,cp=2,tp=2) (name them in the mesh's order)" },
        { "dp,dp_cp", "mesh: dimension \"dp_cp\" overlaps those before it in a "
          "slice of mesh(dp=2,cp=2,tp=2)" },
        { "dp_cp,cp", "mesh: dimension \"cp\" overlaps those before it in a "
          "slice of mesh(dp=2,cp=2,tp=2)" },
        { "all,tp", "mesh: dimension \"tp\" overlaps those before it in a "
          "slice of mesh(dp=2,cp=2,tp=2)" },
        { "dp_cp,dp_cp", "mesh: dimension \"dp_cp\" is named twice in a "
          "slice" },
        { "pp", "mesh: no dimension \"pp\" to slice in mesh(dp=2,cp=2,tp=2) "
          "(flattened: all, dp_tp, cp_tp, dp_cp)" },
    };
    const struct dtensor_mesh *mesh;

    start(8, 0);
    mesh = GRID("dp,cp,tp", 2, 2, 2);
    FLATTEN(part(mesh, "dp,cp"), NULL);
    FLATTEN(part(mesh, "cp,tp"), NULL);
    FLATTEN(part(mesh, "dp,tp"), NULL);
    FLATTEN(mesh, "all");
    for (size_t i = 0; i < DTN_COUNT(t); i++)
        is(SLICE(mesh, t[i].names), t[i].want, t[i].names);
    is(SLICE(part(mesh, "dp,cp"), "dp_cp"), "mesh: no dimension \"dp_cp\" to "
       "slice in mesh(dp=2,cp=2)", "only the root is sliced by such names");
    FLATTEN(part(mesh, "dp_cp,tp"), "again");
    is(SLICE(mesh, "again"), "0,1,2,3,4,5,6,7", "flattened once more");
}

/* Four dimensions, some of size 1: (dp_replicate, dp_shard, cp, tp). */
static void test_flat_four(void)
{
    const struct dtensor_mesh *mesh;

    start(8, 3);
    mesh = GRID("dp_replicate,dp_shard,cp,tp", 2, 2, 2, 1);
    is(FLATTEN(part(mesh, "dp_replicate,dp_shard,cp"), "dp_cp"),
       "0,1,2,3,4,5,6,7", "the first three of (2,2,2,1)");
    FLATTEN(part(mesh, "dp_shard,cp"), "dp_shard_cp");
    is(rows(made), "0,1,2,3", "the middle two");
    FLATTEN(part(mesh, "dp_replicate,dp_shard_cp"), "dp");
    ok(made->group.n == 8, "flattened of flattened");
    made = part(mesh, "dp,tp");
    ok(made->ndim == 2 && made->size[0] == 8 && made->size[1] == 1,
       "sliced beside a dimension of size 1: (8,1)");
    start(1, 0);
    mesh = GRID("dp_replicate,dp_shard,cp,tp", 1, 1, 1, 1);
    FLATTEN(part(mesh, "dp_shard,cp"), "dp_cp");
    made = part(mesh, "dp_replicate,dp_cp,tp");
    ok(made->ndim == 3 && made->group.n == 1, "(1,1,1,1): three of size 1");
}

/* ------------------------------------------------------------ unflatten --- */

static void test_unflatten(void)
{
    const struct dtensor_mesh *mesh, *cut, *experts;

    start(8, 5);
    mesh = GRID("dp,tp", 4, 2);
    is(UNFLATTEN(mesh, 0, "dp_shard,dp_replicate", 2, 2), "0,1|2,3|4,5|6,7",
       "(4,2) with dp as (2,2)");
    cut = made;
    ok(cut->ndim == 3 && strcmp(cut->dim_name[0], "dp_shard") == 0 &&
       strcmp(cut->dim_name[2], "tp") == 0 && cut->root == mesh,
       "names are dp_shard,dp_replicate,tp, the root stays");
    ok(part(cut, "tp") == part(mesh, "tp"), "tp is the same group");
    is(SLICE(cut, "dp_shard"), "1,5", "the result is sliced by its names");
    is(SLICE(mesh, "dp_shard"), "mesh: no dimension \"dp_shard\" to slice in "
       "mesh(dp=4,tp=2)", "the root is not");

    mesh = GRID("ranks", 8);
    UNFLATTEN(mesh, 0, "dp,cp,tp", 2, 2, 2);
    cut = made;
    UNFLATTEN(mesh, 0, "dp,ep,ep_tp", 2, 2, 2);
    experts = made;
    ok(part(cut, "cp")->group.ranks == part(experts, "ep")->group.ranks &&
       part(cut, "tp")->group.ranks == part(experts, "ep_tp")->group.ranks &&
       part(cut, "dp") == part(experts, "dp") && cut != experts,
       "twice by other names: the same groups");
    is(UNFLATTEN(GRID(NULL, 2, 4), -1 + 2, NULL, 2, 2), "0,1|2,3|4,5|6,7",
       "without names");
    mesh = GRID("a,b,c", 2, 2, 2);
    FLATTEN(part(mesh, "a,c"), NULL);
    is(UNFLATTEN(made, 0, "x,y", 2, 2), "0,1|4,5",
       "a flattened dimension of two pairs is cut between them");
    UNFLATTEN(mesh, 0, "p,q,r", 1, 2, 1);
    ok(made->ndim == 5 && made->group.ranks == mesh->group.ranks,
       "cut into sizes of 1");
}

static const struct {
    int dim, n;
    int sizes[8];
    const char *names, *want;
} bad[] = {
    { 2, 2, { 2, 2 }, "a,b", "mesh: no dimension 2 in mesh(dp=4,tp=2); "
      "expected 0 to 1" },
    { -2, 2, { 2, 2 }, "a,b", "mesh: no dimension -2 in mesh(dp=4,tp=2); "
      "expected 0 to 1" },
    { -1, 2, { 2, 2 }, "a,b", "mesh: which dimension of mesh(dp=4,tp=2)? "
      "(-1 needs a mesh of one dimension, it has 2)" },
    { 0, 2, { 2, 2 }, "a", "mesh: names \"a\" do not fit 2 dimensions "
      "(give one for each, or NULL)" },
    { 0, 2, { 2, 2 }, NULL, "mesh: unflatten without names, but the mesh "
      "has some" },
    { 0, 2, { 2, 4 }, "a,b", "mesh: unflatten dimension 0 of size 4 into "
      "sizes whose product is larger" },
    { 0, 2, { 2, 1 }, "a,b", "mesh: unflatten dimension 0 of size 4 into "
      "sizes whose product is smaller" },
    { 0, 2, { 4, 0 }, "a,b", "mesh: unflatten into size 0; expected 1 or "
      "more" },
    { 0, 3, { 2147483647, 2147483647, 2147483647 }, "a,b,c", "mesh: "
      "unflatten dimension 0 of size 4 into sizes whose product is "
      "larger" },
    { 0, 0, { 0 }, "a", "mesh: unflatten into 0 dimensions; expected 1 to "
      "7" },
    { 0, 8, { 4, 1, 1, 1, 1, 1, 1, 1 }, "a", "mesh: unflatten into 8 "
      "dimensions; expected 1 to 7" },
    { 0, 2, { 2, 2 }, "a,tp", "mesh: unflatten into \"tp\", which is "
      "another dimension's name" },
    { 0, 2, { 2, 2 }, "a,a",
      "mesh: dimension name \"a\" is given twice in \"a,a\"" },
};

static void test_unflatten_refused(void)
{
    const struct dtensor_mesh *mesh, *plain;

    start(36, 0);
    mesh = GRID("dp,tp", 4, 2);
    made = NULL;
    for (size_t i = 0; i < DTN_COUNT(bad); i++)
        is(outcome(dtensor_mesh_unflatten(mesh, bad[i].dim, bad[i].n,
                                          bad[i].sizes, bad[i].names, &made,
                                          &mesh_err)),
           bad[i].want, "refused");
    plain = GRID(NULL, 4, 2);
    is(UNFLATTEN(plain, 0, "a,b", 2, 2), "mesh: unflatten with names, but the "
       "mesh has none", "refused");
    ok(made == NULL, "and the result is untouched each time");
    mesh = GRID("a,b,c", 2, 6, 3);
    FLATTEN(part(mesh, "a,c"), NULL);
    is(UNFLATTEN(made, 0, "x,y", 3, 2), "mesh: dimension 0 of mesh(a_c=6) "
       "cannot be cut into steps of 2: it was flattened of parts that these "
       "sizes do not divide", "refused");
}

/* ---------------------------------------------------------- concatenate --- */

static void test_concatenate(void)
{
    const struct dtensor_mesh *mesh, *three, *flat;

    for (int rank = 0; rank < 8; rank++) {
        start(8, rank);
        mesh = GRID("dp,tp", 4, 2);
        concatenated(part(mesh, "dp"), part(mesh, "tp"));
        three = GRID("pp,dp,tp", 2, 2, 2);
        flat = made;
        concatenated(part(three, "pp,dp"), part(three, "tp"));
        ok(flat == mesh && made == three, "rank %d: dp and tp are (dp,tp) "
           "again, pp,dp and tp are (pp,dp,tp)", rank);
    }
    start(8, 6);
    three = GRID("pp,dp,tp", 2, 2, 2);
    is(concatenated(part(three, "tp"), part(three, "pp")), "2,6|3,7",
       "any order: tp and pp are the transpose of pp,tp");
    FLATTEN(part(three, "pp,dp"), NULL);
    is(concatenated(made, part(three, "tp")), "0,1|2,3|4,5|6,7",
       "a flattened one and another");
    flat = GRID("ranks", 8);
    UNFLATTEN(flat, 0, "a,b", 4, 2);
    is(concatenated(part(made, "b"), part(three, "pp")), "2,6|3,7",
       "roots of the same ranks will do");
    is(outcome(dtensor_mesh_concatenate(1, &three, &made, &mesh_err)),
       "0,1|2,3|4,5|6,7", "one alone is itself");
    ok(made == three, "the very same");
}

static void test_concatenate_refused(void)
{
    const struct dtensor_mesh *mesh, *other, *nameless, *line, *two[2];
    const struct dtensor_mesh *big;

    start(8, 0);
    mesh = GRID("dp,tp", 4, 2);
    other = GRID("x,y", 2, 2);
    nameless = GRID(NULL, 4, 2);
    made = NULL;
    dtensor_mesh_along(nameless, 1, &line, NULL);
    is(concatenated(part(mesh, "dp"), part(other, "y")), "mesh: cannot "
       "concatenate mesh(y=2) with the meshes before it: its root has other "
       "ranks",
       "refused");
    is(concatenated(mesh, part(mesh, "tp")), "mesh: cannot concatenate "
       "mesh(tp=2) with the meshes before it: a name of it is taken", "refused");
    FLATTEN(mesh, "all");
    big = made;
    is(concatenated(big, part(mesh, "tp")), "mesh: cannot concatenate "
       "mesh(tp=2) with the meshes before it: they overlap", "refused");
    is(concatenated(part(mesh, "tp"), big), "mesh: cannot concatenate "
       "mesh(all=8) with the meshes before it: they overlap", "refused");
    is(concatenated(part(mesh, "dp"), line), "mesh: cannot concatenate mesh(2) "
       "with the meshes before it: some have names and some have none", "refused");
    dtensor_mesh_copy(part(GRID("a,b,c", 2, 2, 2), "a"), 1, &two[0], NULL);
    is(concatenated(two[0], part(GRID("a,b,c", 2, 2, 2), "b")), "mesh: cannot "
       "concatenate mesh(b=2) with the meshes before it: they have no rank in "
       "common", "refused");
    is(outcome(dtensor_mesh_concatenate(0, NULL, &made, &mesh_err)), "mesh: 0 "
       "meshes to concatenate; expected 1 or more", "refused");
    two[0] = GRID(NULL, 1, 1, 1, 1, 8);
    two[1] = two[0];
    is(concatenated(two[0], two[1]), "mesh: cannot concatenate mesh(1,1,1,1,8) "
       "with the meshes before it: together they have over 8 dimensions",
       "refused");
    ok(made == big, "and the result is untouched each time");
}

int main(void)
{
    test_flatten();
    test_flatten_refused();
    test_flat_names();
    test_flat_four();
    test_unflatten();
    test_unflatten_refused();
    test_concatenate();
    test_concatenate_refused();
    dtn_slots_destroy(&ctx);
    return done();
}
