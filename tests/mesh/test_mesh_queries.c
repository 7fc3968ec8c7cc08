/* test_mesh_queries.c - groups, copies, roots, the current mesh, pictures, and
 * their cost
 *
 * One process plays ranks in turn.  Meshes of many ranks are made in large
 * numbers and counted.
 *
 * Without this test, the same mesh could be made twice with two identities, or
 * a mesh of 65,536 ranks could take minutes.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/mesh_job.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---------------------------------------------------- groups and copies --- */

static void test_copies(void)
{
    const struct dtensor_mesh *mesh, *sub;

    start(8, 5);
    mesh = GRID("replicate,shard", 2, 4);
    sub = part(mesh, "replicate");
    ok(dtensor_mesh_copies(sub) == 4 && dtensor_mesh_copies(mesh) == 1,
       "2 x 4 by \"replicate\" has 4 sub-meshes");
    is(COPY(sub, 0), "0,4", "the first");
    is(COPY(sub, 1), "1,5", "the second");
    ok(made == sub, "which is this rank's own");
    is(COPY(sub, 3), "3,7", "the last");
    ok(made->group.me == -1, "where this rank is not");
    is(COPY(sub, 4), "mesh: no copy 4 of mesh(replicate=2) in its root; "
       "expected 0 to 3", "refused");
    is(COPY(sub, -1), "mesh: no copy -1 of mesh(replicate=2) in its root; "
       "expected 0 to 3", "refused");
    is(COPY(mesh, 0), "0,1,2,3|4,5,6,7", "the root is its only copy");
    ok(made == mesh, "the very same");
    FLATTEN(part(GRID("dp,cp,tp", 2, 2, 2), "dp,tp"), NULL);
    sub = made;
    is(COPY(sub, 0), "0,1,4,5", "flattened: the first line");
    is(COPY(sub, 1), "2,3,6,7", "flattened: the second line");
    ok(dtensor_mesh_copies(sub) == 2, "there are two");
}

static void test_groups(void)
{
    const struct dtensor_mesh *mesh, *plain;
    int dim = 9, at = 9;

    start(8, 6);
    mesh = GRID("dp,pp,tp", 2, 2, 2);
    plain = GRID(NULL, 2, 2, 2);
    is(ALONG(mesh, 0), "2,6", "the group along dp");
    ok(made == part(mesh, "dp"), "is the slice of that name");
    is(ALONG(plain, 1), "4,6", "along the second, without names");
    is(ALONG(plain, 2), "6,7", "along the third");
    ok(made->group.ranks == part(mesh, "tp")->group.ranks && made->group.me ==
       0,
       "meshes of the same ranks share the group");
    is(ALONG(plain, -1), "mesh: which dimension of mesh(2,2,2)? (-1 needs "
       "a mesh of one dimension, it has 3)", "refused");
    is(ALONG(plain, 3), "mesh: no dimension 3 in mesh(2,2,2); expected 0 to 2",
       "refused");
    is(ALONG(part(mesh, "dp"), -1), "2,6", "-1 is the only dimension");
    ok(dtensor_mesh_dim(mesh, "pp", &dim, NULL) == 0 && dim == 1,
       "pp is dimension 1");
    ok(dtensor_mesh_dim(mesh, "x", &dim, &mesh_err) == DTENSOR_EINVAL &&
       dim == 1, "x is none");
    is(mesh_err.text, "mesh: no dimension \"x\" in mesh(dp=2,pp=2,tp=2)",
       "in words");
    ok(dtensor_mesh_dim(plain, "", &dim, NULL) == DTENSOR_EINVAL,
       "no name is nobody's name");
    ok(dtensor_mesh_coord_along(mesh, 0, &at, NULL) == 0 && at == 1 &&
       dtensor_mesh_coord_along(mesh, 2, &at, NULL) == 0 && at == 0 &&
       dtensor_mesh_coord_along(part(mesh, "dp"), -1, &at, NULL) == 0 &&
       at == 1, "local ranks of rank 6 in 2x2x2");
    ok(dtensor_mesh_coord_along(mesh, -1, &at, &mesh_err) == DTENSOR_EINVAL &&
       at == 1, "the dimension must be named when there are several");
    is(mesh_err.text, "mesh: which dimension of mesh(dp=2,pp=2,tp=2)? (-1 "
       "needs a mesh of one dimension, it has 3)", "in words");
    FLATTEN(part(mesh, "dp,pp"), NULL);
    ok(dtensor_mesh_coord_along(made, 0, &at, NULL) == 0 && at == 3,
       "the local rank along a flattened dimension");
    dtensor_mesh_create(&ctx, 1, (const int[]){ 2 }, NULL,
                        (const int[]){ 4, 5 }, &plain, NULL);
    ok(dtensor_mesh_coord_along(plain, 0, &at, NULL) == 0 && at == -1,
       "outside it is -1");
}

static void test_roots(void)
{
    const struct dtensor_mesh *a, *b, *sub, *line;

    start(8, 5);
    a = GRID("dp,tp", 2, 4);
    b = GRID("x,y", 2, 4);
    sub = part(a, "tp");
    ok(dtensor_mesh_root(a) == a && dtensor_mesh_root(sub) == a &&
       dtensor_mesh_root(part(b, "y")) == b, "a slice's root is its own mesh");
    ok(dtensor_mesh_root_dim(part(a, "dp")) == 0 &&
       dtensor_mesh_root_dim(sub) == 1 && dtensor_mesh_root_dim(a) == -1,
       "dp lies along dimension 0, tp along 1, the root along none");
    FLATTEN(a, NULL);
    ok(dtensor_mesh_root_dim(made) == -1, "nor a flattened one");
    ok(!dtensor_mesh_equal(a, b) && dtensor_mesh_equal(a, a) &&
       GRID("dp,tp", 2, 4) == a, "other names make another mesh");
    dtensor_mesh_create(&ctx, 1, (const int[]){ 4 }, NULL,
                        (const int[]){ 4, 5, 6, 7 }, &line, NULL);
    ok(!dtensor_mesh_equal(sub, line) && line->group.ranks == sub->group.ranks,
       "a slice is not the nameless mesh of its ranks, yet has its group");
    ok(!dtensor_mesh_equal(GRID(NULL, 4, 2), GRID(NULL, 2, 2, 2)) &&
       dtensor_mesh_equal(GRID(NULL, 4, 2), GRID(NULL, 4, 2)),
       "4x2 is 4x2 and not 2x2x2");
    UNFLATTEN(GRID("ranks", 8), 0, "dp,tp", 2, 4);
    ok(dtensor_mesh_equal(made, a) && made != a,
       "cut from a line of the same ranks it is equal, with another root");
}

/* ------------------------------------------------------- every position --- */

/* What every rank sees of every slice, against a search of all coordinates. */
static bool seen_by(const struct dtensor_mesh *mesh, unsigned dims, int rank)
{
    const struct dtensor_mesh *sub;
    int here[8] = { 0 }, there[8], at[8], index;

    dtn_mesh_sub(mesh, dims, &sub, NULL);
    dtensor_mesh_coord(mesh, rank, here);
    for (int i = 0; i < mesh->group.n; i++) {
        int other = dtensor_mesh_rank(mesh, i), k = 0;
        bool inside = true;

        dtensor_mesh_coord(mesh, other, there);
        for (int d = 0; d < mesh->ndim; d++)
            inside = inside && (dims >> d & 1 || here[d] == there[d]);
        index = dtensor_mesh_index(sub, other);
        if (inside != (index >= 0))
            return false;
        if (!inside)
            continue;
        dtensor_mesh_coord(sub, other, at);
        for (int d = 0; d < mesh->ndim; d++)
            if (dims >> d & 1 && at[k++] != there[d])
                return false;
        if (dtensor_mesh_rank(sub, index) != other)
            return false;
    }
    return sub->group.me == dtensor_mesh_index(sub, rank) && sub->group.me >= 0;
}

static void test_every_slice(void)
{
    static const int backward[] = { 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 };
    static const int shapes[][3] = { { 2, 3, 2 }, { 3, 2, 2 }, { 12, 1, 1 },
        { 1, 4, 3 }, { 2, 1, 6 } };
    const struct dtensor_mesh *mesh;
    int wrong = 0;

    for (size_t s = 0; s < DTN_COUNT(shapes); s++)
        for (int rank = 0; rank < 12; rank++) {
            start(13, rank);
            dtensor_mesh_create(&ctx, 3, shapes[s], "a,b,c", backward, &mesh,
                                NULL);
            for (unsigned dims = 0; dims < 8; dims++)
                wrong += !seen_by(mesh, dims, rank);
            wrong += dtensor_mesh_index(mesh, 12) != -1 ||
                     dtensor_mesh_index(mesh, 13) != -1 ||
                     dtensor_mesh_index(mesh, -1) != -1;
        }
    ok(wrong == 0, "every slice of five meshes of 12 ranks, as each rank sees "
       "it");
}

/* ---------------------------------------------------------------- stack --- */

static void test_stack(void)
{
    const struct dtensor_mesh *mesh, *sub, *now = NULL;
    const int64_t shape[] = { 4, 4 };
    struct dtensor_spec spec;
    bool good = true;

    start(4, 0);
    mesh = GRID("dp,tp", 2, 2);
    sub = part(mesh, "tp");
    ok(dtensor_mesh_current(&ctx, &now, &mesh_err) == DTENSOR_EINVAL && !now,
       "before any is entered there is no current mesh");
    is(mesh_err.text, "mesh: no mesh was entered (name one, or call "
       "dtensor_mesh_enter())", "in words");
    ok(dtensor_spec_init(&spec, &ctx, NULL, "R", DTENSOR_F32, 2, shape, NULL) ==
       DTENSOR_EINVAL, "and a spec needs the name of one");
    ok(dtensor_mesh_leave(mesh, &mesh_err) == DTENSOR_EINVAL,
       "nor can one be left");
    dtensor_mesh_enter(mesh, NULL);
    dtensor_mesh_enter(sub, NULL);
    ok(dtensor_mesh_current(&ctx, &now, NULL) == 0 && now == sub,
       "the one entered last is current");
    ok(dtensor_mesh_leave(mesh, &mesh_err) == DTENSOR_EINVAL,
       "and must be left first");
    is(mesh_err.text, "mesh: cannot leave mesh(dp=2,tp=2): mesh(tp=2) was "
       "entered last", "in words");
    ok(dtensor_mesh_leave(sub, NULL) == 0 &&
       dtensor_spec_init(&spec, &ctx, NULL, "S(0),R", DTENSOR_F32, 2, shape,
                         NULL) == 0 && spec.mesh == mesh,
       "without a name a spec takes the current mesh");
    for (int i = 0; i < 100; i++)
        good = good && dtensor_mesh_enter(i % 2 ? sub : mesh, NULL) == 0;
    for (int i = 99; i >= 0; i--)
        good = good && dtensor_mesh_leave(i % 2 ? sub : mesh, NULL) == 0;
    ok(good && dtensor_mesh_current(&ctx, &now, NULL) == 0 && now == mesh,
       "a hundred deep and back");
}

/* ------------------------------------------------------------- in words --- */

static const char *drawn(const struct dtensor_mesh *mesh)
{
    static char text[2000];
    FILE *stream = fmemopen(text, sizeof text, "w");

    dtensor_mesh_draw(mesh, stream);
    fclose(stream);
    return text;
}

static void test_words(void)
{
    const struct dtensor_mesh *mesh;
    char text[64], cut[8];
    bool good = true;
    int n;

    start(8, 0);
    mesh = GRID("dp,tp", 2, 4);
    n = dtensor_mesh_format(mesh, text, sizeof text);
    is(text, "mesh(dp=2,tp=4)", "a mesh in words");
    for (size_t size = 0; size <= sizeof cut; size++) {
        memset(cut, 'x', sizeof cut);
        good = good && dtensor_mesh_format(mesh, cut, size) == n &&
               (size == 0 || cut[size - 1] == '\0') &&
               (size == sizeof cut || cut[size] == 'x');
    }
    ok(good && n == (int)strlen(text), "cut as snprintf does");
    is(drawn(mesh), "mesh(dp=2,tp=4): 8 ranks\n"
       "             tp=0     tp=1     tp=2     tp=3\n"
       "    dp=0        0        1        2        3\n"
       "    dp=1        4        5        6        7\n", "drawn");
    is(drawn(GRID(NULL, 2, 1, 2)), "mesh(2,1,2): 4 ranks\n"
       "0\n"
       "                0        1\n"
       "       0        0        1\n"
       "1\n"
       "                0        1\n"
       "       0        2        3\n", "three dimensions without names");
    is(drawn(GRID("x", 1)), "mesh(x=1): 1 rank\n"
       "              x=0\n"
       "                0\n", "one rank");
}

/* ---------------------------------------------------------------- speed --- */

/* The least time of several, so that a busy machine does not matter. */
static double least_ns(const struct dtensor_mesh *mesh, bool flat, bool fresh)
{
    double least = 1e18;

    for (int round = 0; round < 20; round++) {
        char name[32] = "flat";
        int64_t begin;

        if (fresh)
            snprintf(name, sizeof name, "flat%d", round);
        begin = dtn_now_ns();
        for (int i = 0; i < (fresh ? 1 : 100); i++)
            if (flat)
                dtensor_mesh_flatten(mesh, name, &made, NULL);
            else
                dtensor_mesh_slice(mesh, "dp,tp", &made, NULL);
        if (least > (double)(dtn_now_ns() - begin) / (fresh ? 1 : 100))
            least = (double)(dtn_now_ns() - begin) / (fresh ? 1 : 100);
    }
    return least;
}

static double least_first_slice(void)
{
    double least = 1e18;

    for (int round = 0; round < 20; round++) {
        const struct dtensor_mesh *mesh;
        int64_t begin;

        start(1024, 777);
        mesh = GRID("dp,pp,tp", 16, 8, 8);
        begin = dtn_now_ns();
        dtensor_mesh_slice(mesh, "dp,tp", &made, NULL);
        if (least > (double)(dtn_now_ns() - begin))
            least = (double)(dtn_now_ns() - begin);
    }
    return least;
}

/* No transport and no peers here: nothing can have been sent. */
static void test_speed(void)
{
    double first = least_first_slice(), again, flat_first, flat_again;
    const struct dtensor_mesh *mesh = GRID("dp,pp,tp", 16, 8, 8);

    again = least_ns(mesh, false, false);
    flat_first = least_ns(mesh, true, true);
    flat_again = least_ns(mesh, true, false);
    note("16x8x8, 1024 ranks: slice of 128 ranks %.1f us, again %.2f us; "
         "flattened %.1f us, again %.2f us", first / 1e3, again / 1e3,
         flat_first / 1e3, flat_again / 1e3);
    ok(first < 200e3 && again < 50e3 && flat_first < 200e3 && flat_again < 50e3,
       "slicing and flattening 1,024 ranks takes microseconds and no peer");
}

int main(void)
{
    test_copies();
    test_groups();
    test_roots();
    test_every_slice();
    test_stack();
    test_words();
    test_speed();
    dtn_slots_destroy(&ctx);
    return done();
}
