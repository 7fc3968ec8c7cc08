/* test_invalid_meshes.c - invalid meshes, and what is allowed
 *
 * Every error of PyTorch's device meshes has a row here, with our words.  Where
 * we allow what PyTorch refuses, a row shows that it works.  The rows go on in
 * test_invalid_specs.c, and begin with the numbers of its groups.
 *
 *   1.1  composition, overlapping patterns            meshes_cut
 *   1.2  constructors                                 meshes_made
 *   1.3  queries                                      meshes_asked
 *   1.4  slices                                       meshes_sliced
 *   1.5  flatten, unflatten, concatenate              meshes_flat, meshes_cut
 *   1.6  the stack                                    meshes_stack
 *
 * Errors that cannot be made here: of devices and backends (1.2: CPU tensors,
 * "cuda:0", homogeneous hardware, backend_override, from_group: a mesh is its
 * group).
 *
 * Without this test, a wrong mesh could be accepted, or refused in words that
 * help nobody.
 */
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/redist/refused.h"
#include "tests/redist/rows.h"
#include "tests/support/tap.h"

#include <stdint.h>

static const int two_four[] = { 2, 4 }, two_two_two[] = { 2, 2, 2 };
static const int64_t square[] = { 8, 8 };

static const struct dtensor_mesh *named(struct dtensor_ctx *ctx, int ndim,
                                        const int sizes[], const char *names)
{
    const struct dtensor_mesh *mesh = NULL;

    if (dtensor_mesh_create(ctx, ndim, sizes, names, NULL, &mesh, &why) != 0)
        note("%s", why.text);
    return mesh;
}

static const struct dtensor_mesh *slice(const struct dtensor_mesh *mesh,
                                        const char *names)
{
    const struct dtensor_mesh *made = NULL;

    if (dtensor_mesh_slice(mesh, names, &made, &why) != 0)
        note("%s", why.text);
    return made;
}

/* ------------------------------------------------------------------ meshes */

static void meshes_made(struct dtensor_ctx *ctx)
{
    static const int nine[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    static const int none[] = { 2, 0 }, minus[] = { 2, -4 }, large[] = { 4, 4 };
    static const int overflow[] = { INT32_MAX, INT32_MAX };
    static const int twice[] = { 0, 1, 2, 1 }, beyond[] = { 0, 1, 2, 8 };
    static const int two_two[] = { 2, 2 };

    row("1.2", dtensor_mesh_create(ctx, 2, two_four, "dp,dp", NULL, &out.mesh,
                                   &why),
        "mesh: dimension name \"dp\" is given twice in \"dp,dp\"");
    row("1.2", dtensor_mesh_create(ctx, 2, two_four, "dp", NULL, &out.mesh,
                                   &why),
        "mesh: names \"dp\" do not fit 2 dimensions (give one for each, or "
        "NULL)");
    row("1.2", dtensor_mesh_create(ctx, 2, two_four, "dp,", NULL, &out.mesh,
                                   &why),
        "mesh: name 2 of \"dp,\" is empty or over 32 characters");
    row("1.2", dtensor_mesh_create(ctx, 2, large, NULL, NULL, &out.mesh, &why),
        "mesh: shape 4x4 needs at least 16 ranks, but the world has 8 (start "
        "more ranks, or give smaller sizes)");
    row("1.2", dtensor_mesh_create(ctx, 2, overflow, NULL, NULL, &out.mesh,
                                   &why),
        "mesh: shape 2147483647x2147483647 needs at least 2147483647 ranks, "
        "but the world has 8 (start more ranks, or give smaller sizes)");
    row("1.2", dtensor_mesh_create(ctx, 2, two_two, NULL, twice, &out.mesh,
                                   &why),
        "mesh: rank 1 at position 3 is listed twice");
    row("1.2", dtensor_mesh_create(ctx, 2, two_two, NULL, beyond, &out.mesh,
                                   &why),
        "mesh: rank 8 at position 3 is not in the world");
    row("1.2", dtensor_mesh_create(ctx, 2, none, NULL, NULL, &out.mesh, &why),
        "mesh: size 0 of dimension 1; expected 1 or more");
    row("1.2", dtensor_mesh_create(ctx, 2, minus, NULL, NULL, &out.mesh, &why),
        "mesh: size -4 of dimension 1; expected 1 or more");
    row("1.2", dtensor_mesh_create(ctx, 0, nine, NULL, NULL, &out.mesh, &why),
        "mesh: 0 dimensions; expected 1 to 8");
    row("1.2", dtensor_mesh_create(ctx, 9, nine, NULL, NULL, &out.mesh, &why),
        "mesh: 9 dimensions; expected 1 to 8");
    row("1.2", dtensor_mesh_find(ctx, "wrold", &out.mesh, &why),
        "mesh: no mesh \"wrold\" (there are: world)");
    row("1.2", dtensor_barrier(mesh_of(ctx, 2, two_four), &why),
        "context: it only plans and has no peers or memory (join the job with "
        "dtensor_init)");
}

static void meshes_asked(struct dtensor_ctx *ctx)
{
    static const int last[] = { 7 }, one[] = { 1 };
    const struct dtensor_mesh *mesh = named(ctx, 2, two_four, "dp,tp"), *alone;

    row("1.3", dtensor_mesh_coord_along(mesh, -1, out.number, &why),
        "mesh: which dimension of mesh(dp=2,tp=4)? (-1 needs a mesh of one "
        "dimension, it has 2)");
    row("1.3", dtensor_mesh_coord_along(mesh, 2, out.number, &why),
        "mesh: no dimension 2 in mesh(dp=2,tp=4); expected 0 to 1");
    row("1.3", dtensor_mesh_along(mesh, -1, &out.mesh, &why),
        "mesh: which dimension of mesh(dp=2,tp=4)? (-1 needs a mesh of one "
        "dimension, it has 2)");
    row("1.3", dtensor_mesh_dim(mesh, "pp", out.number, &why),
        "mesh: no dimension \"pp\" in mesh(dp=2,tp=4)");
    row("1.3", dtensor_mesh_copy(slice(mesh, "tp"), 2, &out.mesh, &why),
        "mesh: no copy 2 of mesh(tp=4) in its root; expected 0 to 1");
    if (dtensor_mesh_create(ctx, 1, one, "x", last, &alone, &why) != 0)
        note("%s", why.text);
    outs_begin();
    allowed("1.3", dtensor_mesh_coord(alone, 0, out.number) == 0 &&
            dtensor_mesh_index(alone, 0) == -1 && outs_untouched() &&
            dtensor_mesh_coord_along(alone, -1, out.number, &why) == 0 &&
            out.number[0] == -1, "a rank outside has no coordinate, no error");
    allowed("1.3", dtensor_mesh_rank(slice(alone, "x"), 0) == 7,
            "a rank outside may ask for the ranks of a mesh");
}

static void meshes_sliced(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *mesh = named(ctx, 3, two_two_two, "dp,cp,tp");
    const struct dtensor_mesh *plain = mesh_of(ctx, 2, two_four), *flat;

    row("1.4", dtensor_mesh_slice(plain, "dp", &out.mesh, &why),
        "mesh: cannot slice by \"dp\" a mesh whose dimensions have no names");
    row("1.4", dtensor_mesh_slice(mesh, NULL, &out.mesh, &why),
        "mesh: a slice needs the names of its dimensions, such as \"dp,tp\"");
    row("1.4", dtensor_mesh_slice(mesh, "dim0", &out.mesh, &why),
        "mesh: no dimension \"dim0\" to slice in mesh(dp=2,cp=2,tp=2)");
    row("1.4", dtensor_mesh_slice(mesh, "cp,dp", &out.mesh, &why),
        "mesh: dimension \"dp\" is out of order in a slice of "
        "mesh(dp=2,cp=2,tp=2) (name them in the mesh's order)");
    row("1.4", dtensor_mesh_slice(mesh, "dp,dp", &out.mesh, &why),
        "mesh: dimension \"dp\" is named twice in a slice");
    dtensor_mesh_flatten(slice(mesh, "dp,cp"), NULL, &flat, NULL);
    dtensor_mesh_flatten(slice(mesh, "dp,tp"), NULL, &flat, NULL);
    row("1.4", dtensor_mesh_slice(mesh, "dp_cp,cp", &out.mesh, &why),
        "mesh: dimension \"cp\" overlaps those before it in a slice of "
        "mesh(dp=2,cp=2,tp=2)");
    row("1.4", dtensor_mesh_slice(mesh, "dp_tp,cp", &out.mesh, &why),
        "mesh: dimension \"cp\" is out of order in a slice of "
        "mesh(dp=2,cp=2,tp=2) (name them in the mesh's order)");
    row("1.4", dtensor_mesh_slice(slice(mesh, "dp,cp"), "dp_cp", &out.mesh,
                                  &why),
        "mesh: no dimension \"dp_cp\" to slice in mesh(dp=2,cp=2)");
}

static void meshes_flat(struct dtensor_ctx *ctx)
{
    static const int four_two[] = { 4, 2 };
    static const int backward[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
    const struct dtensor_mesh *mesh = named(ctx, 3, two_two_two, "a,b,c");
    const struct dtensor_mesh *other = named(ctx, 2, two_four, "x,y");
    const struct dtensor_mesh *flat, *two[2];

    row("1.5", dtensor_mesh_flatten(mesh_of(ctx, 2, two_four), "x", &out.mesh,
                                    &why),
        "mesh: cannot flatten a mesh whose dimensions have no names");
    row("1.5", dtensor_mesh_flatten(slice(mesh, "a,b"), "a", &out.mesh, &why),
        "mesh: \"a\" is a dimension of mesh(a=2,b=2,c=2) already (give the "
        "flattened one another name)");
    dtensor_mesh_flatten(slice(mesh, "a,c"), "a_c", &flat, NULL);
    row("1.5", dtensor_mesh_flatten(slice(mesh, "a,b"), "a_c", &out.mesh, &why),
        "mesh: \"a_c\" is the name of other flattened dimensions already (give "
        "another)");
    two[0] = slice(mesh, "a");
    dtensor_mesh_create(ctx, 2, four_two, "p,q", backward, &two[1], NULL);
    row("1.5", dtensor_mesh_concatenate(2, two, &out.mesh, &why),
        "mesh: cannot concatenate mesh(p=4,q=2) with the meshes before it: its "
        "root has other ranks");
    two[1] = flat;
    row("1.5", dtensor_mesh_concatenate(2, two, &out.mesh, &why),
        "mesh: cannot concatenate mesh(a_c=4) with the meshes before it: they "
        "overlap");
    row("1.5", dtensor_mesh_concatenate(0, two, &out.mesh, &why),
        "mesh: 0 meshes to concatenate; expected 1 or more");
    two[1] = slice(other, "y");
    allowed("1.5", dtensor_mesh_concatenate(2, (const struct dtensor_mesh *[]){
            slice(other, "x"), two[1] }, &flat, &why) == 0 && flat == other,
            "meshes of one root are put together");
}

static void meshes_cut(struct dtensor_ctx *ctx)
{
    static const int two_six_three[] = { 2, 6, 3 }, two_two[] = { 2, 2 };
    static const int four_four[] = { 4, 4 }, three_two[] = { 3, 2 };
    static const int four[] = { 4 };
    const struct dtensor_mesh *mesh = named(ctx, 2, two_four, "dp,tp");
    const struct dtensor_mesh *odd = named(ctx, 3, two_six_three, "a,b,c");
    const struct dtensor_mesh *cut;

    row("1.5", dtensor_mesh_unflatten(mesh, 2, 2, two_two, "x,y", &out.mesh,
                                      &why),
        "mesh: no dimension 2 in mesh(dp=2,tp=4); expected 0 to 1");
    row("1.5", dtensor_mesh_unflatten(mesh, 1, 2, two_two, "x", &out.mesh,
                                      &why),
        "mesh: names \"x\" do not fit 2 dimensions (give one for each, or "
        "NULL)");
    row("1.5", dtensor_mesh_unflatten(mesh, 1, 2, four_four, "x,y", &out.mesh,
                                      &why),
        "mesh: unflatten dimension 1 of size 4 into sizes whose product is "
        "larger");
    row("1.5", dtensor_mesh_unflatten(mesh, 0, 1, four, "x", &out.mesh, &why),
        "mesh: unflatten dimension 0 of size 2 into sizes whose product is "
        "larger");
    row("1.5", dtensor_mesh_unflatten(mesh, 1, 2, two_two, "x,dp", &out.mesh,
                                      &why),
        "mesh: unflatten into \"dp\", which is another dimension's name");
    dtensor_mesh_unflatten(mesh, 1, 2, two_two, "x,y", &cut, NULL);
    row("1.5", dtensor_mesh_slice(mesh, "x", &out.mesh, &why),
        "mesh: no dimension \"x\" to slice in mesh(dp=2,tp=4)");
    allowed("1.5", slice(cut, "x"), "what was unflattened is sliced by its "
            "names");
    dtensor_mesh_flatten(slice(odd, "a,c"), NULL, &cut, NULL);
    row("1.1", dtensor_mesh_unflatten(cut, 0, 2, three_two, "x,y", &out.mesh,
                                      &why),
        "mesh: dimension 0 of mesh(a_c=6) cannot be cut into steps of 2: it "
        "was flattened of parts that these sizes do not divide");
}

static void meshes_stack(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *mesh = named(ctx, 2, two_four, "dp,tp");

    row("1.6", dtensor_mesh_current(ctx, &out.mesh, &why), "mesh: no mesh was "
        "entered (name one, or call dtensor_mesh_enter())");
    row("1.6", dtensor_spec_init(&out.spec, ctx, NULL, "R", DTENSOR_F32, 2,
                                 square, &why), "mesh: no mesh was entered "
        "(name one, or call dtensor_mesh_enter())");
    dtensor_mesh_enter(mesh, NULL);
    row("1.6", dtensor_mesh_leave(slice(mesh, "tp"), &why), "mesh: cannot "
        "leave mesh(tp=4): mesh(dp=2,tp=4) was entered last");
    dtensor_mesh_leave(mesh, NULL);
}

int main(void)
{
    struct dtensor_ctx *ctx = NULL, *large = NULL;

    if (dtensor_init_offline(NULL, 8, 0, &ctx, &why) != 0 ||
        dtensor_init_offline(NULL, 36, 0, &large, &why) != 0)
        return skip_all(why.text);
    meshes_made(ctx);
    meshes_asked(ctx);
    meshes_sliced(ctx);
    meshes_flat(ctx);
    meshes_cut(large);
    meshes_stack(ctx);
    dtensor_fini(large);
    dtensor_fini(ctx);
    return done();
}
