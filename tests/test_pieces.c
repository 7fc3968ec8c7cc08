/* test_pieces.c - every redistribute of small tensors, against brute force
 *
 * No transport: all ranks of a mesh are buffers of this process.  A global
 * tensor is drawn at random and laid out by the source spec (a Partial one as
 * random terms), the phases are interpreted piece by piece, and what each rank
 * ends with is compared, element by element, with what the destination spec
 * says it holds.  Values are multiples of 840, so that dividing by up to 8
 * ranks is exact.
 */
#include "spec/spec.h"
#include "tests/tap.h"

#include <string.h>

#define MAX_RANKS 8
#define MAX_ELEMS 512

static struct dtensor_ctx ctx;               /* only to hang meshes on        */
static struct dtensor_cluster cluster = { .world_size = MAX_RANKS };

/* One case: what each rank holds. */
struct world {
    const struct dtensor_spec *spec;
    double part[MAX_RANKS][MAX_ELEMS];
};

static double whole[MAX_ELEMS];
static struct world now, next;
static long cases, received_elems;
static bool failed;
static uint32_t seed = 12345;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void complain(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, const char *what)
{
    char a[300], b[300];

    if (!failed)
        note("%s: %s -> %s", what, dtn_spec_format(src, a, sizeof a),
             dtn_spec_format(dst, b, sizeof b));
    failed = true;
}

/* ------------------------------------------------------ brute-force layout --- */

/* The index in the local part of `index` of global element g, or -1: found by
 * cutting lists of indices, as the definition says.
 */
static int64_t where(const struct dtensor_spec *spec, int index, int64_t g)
{
    int64_t at[DTENSOR_MAX_DIMS], first[DTENSOR_MAX_DIMS] = { 0 };
    int64_t len[DTENSOR_MAX_DIMS], local = 0;
    int coord[DTENSOR_MAX_DIMS];

    for (int d = spec->ndim - 1; d >= 0; d--) {
        at[d] = g % spec->shape[d];
        g /= spec->shape[d];
        len[d] = spec->shape[d];
    }
    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int m = 0; m < spec->mesh->ndim; m++) {
        int d = spec->placement[m].dim, n = spec->mesh->size[m];
        int64_t cut, from, to;

        if (spec->placement[m].kind != DTENSOR_SHARD)
            continue;
        cut = (len[d] + n - 1) / n;
        from = cut * coord[m] < len[d] ? cut * coord[m] : len[d];
        to = cut * (coord[m] + 1) < len[d] ? cut * (coord[m] + 1) : len[d];
        first[d] += from;
        len[d] = to - from;
    }
    for (int d = 0; d < spec->ndim; d++) {
        if (at[d] < first[d] || at[d] >= first[d] + len[d])
            return -1;
        local = local * len[d] + at[d] - first[d];
    }
    return local;
}

/* Position with the Partial coordinates of `index` set to 0: one for each set
 * of terms of the same elements.
 */
static int term_home(const struct dtensor_spec *spec, int index)
{
    int coord[DTENSOR_MAX_DIMS], home = 0;

    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int m = 0; m < spec->mesh->ndim; m++)
        home = home * spec->mesh->size[m] +
               (spec->placement[m].kind == DTENSOR_PARTIAL ? 0 : coord[m]);
    return home;
}

static int term_count(const struct dtensor_spec *spec)
{
    int n = 1;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            n *= spec->mesh->size[m];
    return n;
}

static double fold(enum dtensor_redop op, double a, double b)
{
    switch (op) {
    case DTENSOR_PROD: return a * b;
    case DTENSOR_MIN:  return a < b ? a : b;
    case DTENSOR_MAX:  return a > b ? a : b;
    default:           return a + b;
    }
}

static double neutral(enum dtensor_redop op)
{
    return op == DTENSOR_PROD ? 1 : op == DTENSOR_MIN ? 1e300
         : op == DTENSOR_MAX ? -1e300 : 0;
}

/* Give every rank its part: the value, or on position 0 of the terms what is
 * left when the others drew theirs.
 */
static void lay_out(const struct dtensor_spec *spec, int64_t numel)
{
    int op = dtn_spec_partial(spec), n = term_count(spec);
    double rest[MAX_RANKS];

    now.spec = spec;
    for (int64_t g = 0; g < numel; g++) {
        for (int r = 0; r < spec->mesh->group.n; r++)
            rest[r] = op == DTENSOR_AVG ? whole[g] * n : whole[g];
        for (int r = spec->mesh->group.n - 1; r >= 0; r--) {
            int64_t at = where(spec, r, g);
            int home = term_home(spec, r);
            double term = rest[home];

            if (r != home && (op == DTENSOR_SUM || op == DTENSOR_AVG)) {
                term = 840.0 * draw(100);
                rest[home] -= term;
            } else if (r != home) {
                term = op == DTENSOR_PROD ? 1
                     : op == DTENSOR_MIN ? whole[g] + draw(9)
                                         : whole[g] - draw(9);
            }
            if (at >= 0)
                now.part[r][at] = term;
        }
    }
}

/* Does every rank hold what `spec` says?  Terms are reduced first. */
static bool laid_out(const struct dtensor_spec *spec, int64_t numel)
{
    int op = dtn_spec_partial(spec), n = term_count(spec);
    double value[MAX_RANKS];
    bool seen[MAX_RANKS];

    for (int64_t g = 0; g < numel; g++) {
        memset(seen, 0, sizeof seen);
        for (int r = 0; r < spec->mesh->group.n; r++) {
            int64_t at = where(spec, r, g);
            int home = term_home(spec, r);

            if (at < 0)
                continue;
            value[home] = seen[home] ? fold((enum dtensor_redop)op, value[home],
                                            now.part[r][at])
                                     : now.part[r][at];
            seen[home] = true;
        }
        for (int r = 0; r < spec->mesh->group.n; r++)
            if (seen[r] && (op == DTENSOR_AVG ? value[r] / n : value[r]) !=
                           whole[g])
                return false;
    }
    return true;
}

/* ---------------------------------------------------------- interpreter --- */

static void apply(const struct dtn_piece *piece, enum dtensor_redop op,
                  const double *src, double *dst)
{
    const struct dtn_box *box = &piece->box;
    int64_t n = dtn_box_count(box);

    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        const double *from = src + piece->src_offset;
        double *to = dst + piece->dst_offset;

        for (int d = box->ndim - 1; d >= 0; d--) {
            from += rest % box->size[d] * box->src_stride[d];
            to += rest % box->size[d] * box->dst_stride[d];
            rest /= box->size[d];
        }
        *to = piece->accumulate ? fold(op, *to, *from) : *from;
    }
}

/* What a receiver may get from others: each element of its box once, or once
 * for each term; nothing it holds already.
 */
static int64_t exchange_need(const struct dtn_phase *phase, int r,
                             int64_t numel)
{
    int64_t need = 0;

    for (int64_t g = 0; g < numel; g++) {
        if (where(&phase->dst, r, g) < 0)
            continue;
        if (dtn_phase_folds(phase))
            need += term_count(&phase->src) - (where(&phase->src, r, g) >= 0);
        else
            need += where(&phase->src, r, g) < 0;
    }
    return need;
}

/* Do the pieces of a receiver have ranges of TMP of their own, with no more
 * than its box for each term?
 */
static bool slots_fit(const struct dtn_phase *phase, int r)
{
    size_t room = (size_t)dtn_local_numel(&phase->dst, r);
    static bool taken[MAX_RANKS * MAX_ELEMS];
    struct dtn_piece piece;

    if (dtn_phase_folds(phase))
        room *= (size_t)term_count(&phase->src);
    memset(taken, 0, room * sizeof taken[0]);
    for (int s = 0; s < phase->src.mesh->group.n; s++) {
        if (!dtn_piece_between(&phase->src, &phase->dst, s, r, &piece))
            continue;
        for (int64_t i = 0; i < dtn_box_count(&piece.box); i++) {
            size_t at = piece.slot + (size_t)i;

            if (at >= room || taken[at])
                return false;
            taken[at] = true;
        }
    }
    return true;
}

static bool run_exchange(const struct dtn_phase *phase, int64_t numel)
{
    int n = phase->src.mesh->group.n;
    struct dtn_piece piece;

    for (int r = 0; r < n; r++) {
        int64_t got = 0;

        for (int64_t i = 0; i < numel; i++)
            next.part[r][i] = phase->neutral ? neutral(phase->redop) : -1e200;
        for (int s = 0; s < n && !dtn_phase_idle(phase, r); s++) {
            if (!dtn_piece_between(&phase->src, &phase->dst, s, r, &piece))
                continue;
            apply(&piece, phase->redop, now.part[s], next.part[r]);
            got += s != r ? dtn_box_count(&piece.box) : 0;
        }
        received_elems += got;
        if (got > exchange_need(phase, r, numel) || !slots_fit(phase, r))
            return false;
    }
    return true;
}

static void run_reduce(const struct dtn_phase *phase, int64_t numel)
{
    const struct dtensor_mesh *mesh = phase->src.mesh;
    int a[DTENSOR_MAX_DIMS], b[DTENSOR_MAX_DIMS];

    for (int r = 0; r < mesh->group.n; r++) {
        bool first = true;

        dtn_mesh_coord_of(mesh, r, a);
        for (int s = 0; s < mesh->group.n; s++) {
            bool member = true;

            dtn_mesh_coord_of(mesh, s, b);
            for (int m = 0; m < mesh->ndim; m++)
                member &= a[m] == b[m] || phase->dims >> m & 1;
            if (!member)
                continue;
            for (int64_t i = 0; i < numel; i++)
                next.part[r][i] = first ? now.part[s][i]
                                        : fold(phase->redop, next.part[r][i],
                                               now.part[s][i]);
            first = false;
        }
    }
}

/* The values of an integer type are divided as integers are. */
static double divided(const struct dtn_phase *phase, double x)
{
    x /= phase->divide;
    if (!dtn_dtype_is_float(phase->dst.dtype) && x > -1e9 && x < 1e9)
        x = (double)(long)x;
    return x;
}

static bool run_case(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, int64_t numel)
{
    struct dtn_phase phase[DTN_MAX_PHASES];
    int n = dtn_phases(src, dst, phase);

    for (int i = 0; i < n; i++) {
        if (phase[i].kind == DTN_PHASE_REDUCE)
            run_reduce(&phase[i], numel);
        else if (!run_exchange(&phase[i], numel))
            return false;
        for (int r = 0; r < src->mesh->group.n; r++)
            for (int64_t e = 0; e < numel; e++)
                now.part[r][e] = divided(&phase[i], next.part[r][e]) *
                                 phase[i].multiply;
    }
    return true;
}

/* ---------------------------------------------------------------- cases --- */

static void one_case(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst)
{
    int64_t numel = dtn_numel(src->ndim, src->shape);

    cases++;
    for (int64_t g = 0; g < numel; g++)
        whole[g] = 840.0 * (1 + draw(1000));
    lay_out(src, numel);
    if (!run_case(src, dst, numel))
        complain(src, dst, "a rank gets more than it needs, or slots collide");
    else if (!laid_out(dst, numel))
        complain(src, dst, "a rank holds the wrong elements");
}

/* Placement number `code` of a tensor of `ndim` dimensions: R, P, S(0).. */
static void place(struct dtensor_spec *spec, int code, enum dtensor_redop op)
{
    for (int m = 0; m < spec->mesh->ndim; m++) {
        int p = code % (spec->ndim + 2);

        code /= spec->ndim + 2;
        spec->placement[m] = (struct dtensor_placement){
            .kind = p == 0 ? DTENSOR_REPLICATE : p == 1 ? DTENSOR_PARTIAL
                                                        : DTENSOR_SHARD,
            .dim = p < 2 ? 0 : p - 2, .op = op
        };
    }
}

static void all_placements(struct dtensor_spec *src, enum dtensor_redop from,
                           enum dtensor_redop to, int every)
{
    struct dtensor_spec dst = *src;
    int n = 1, i = 0;

    for (int m = 0; m < src->mesh->ndim; m++)
        n *= src->ndim + 2;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            if (i++ % every != 0)
                continue;
            place(src, a, from);
            place(&dst, b, to);
            one_case(src, &dst);
        }
}

static const struct dtensor_mesh *grid(int ndim, int a, int b, int c)
{
    const int sizes[] = { a, b, c };
    const struct dtensor_mesh *mesh = NULL;

    if (dtensor_mesh_create(&ctx, ndim, sizes, NULL, NULL, &mesh, NULL) != 0)
        abort();
    return mesh;
}

/* All shapes of `ndim` dimensions with sizes of the list. */
static void all_shapes(const struct dtensor_mesh *mesh, int ndim,
                       enum dtensor_redop from, enum dtensor_redop to,
                       int every)
{
    static const int64_t sizes[] = { 0, 1, 2, 3, 5, 7, 8 };
    enum { N = DTN_COUNT(sizes) };
    struct dtensor_spec spec = { mesh, DTENSOR_F64, ndim, { 0 }, { { 0 } } };

    for (int i = 0; i < N; i++)
        for (int j = 0; j < (ndim > 1 ? N : 1); j++) {
            spec.shape[0] = sizes[i];
            spec.shape[1] = sizes[j];
            all_placements(&spec, from, to, every);
        }
}

static void claim(const char *what)
{
    ok(!failed, "%s (%ld cases, %ld elements moved)", what, cases,
       received_elems);
    failed = false;
    cases = received_elems = 0;
}

static void test_two_dims(void)
{
    for (int a = 1; a <= 8; a++)
        for (int b = 1; a * b <= 8; b++)
            all_shapes(grid(2, a, b, 1), 1, DTENSOR_SUM, DTENSOR_SUM, 1);
    claim("2-D meshes, vectors: every placement pair is right and frugal");
    for (int a = 1; a <= 8; a++)
        for (int b = 1; a * b <= 8; b++)
            all_shapes(grid(2, a, b, 1), 2, DTENSOR_SUM, DTENSOR_SUM,
                       a * b == 1 ? 64 : 3);
    claim("2-D meshes, matrices: every third placement pair is right");
}

static void test_three_dims(void)
{
    static const int meshes[][3] = { { 2, 2, 2 }, { 2, 1, 3 }, { 1, 2, 4 },
                                     { 3, 2, 1 } };
    static const int64_t shapes[][3] = { { 5, 3, 2 }, { 8, 4, 2 }, { 1, 7, 3 },
                                         { 2, 0, 3 } };
    struct dtensor_spec spec = { .dtype = DTENSOR_F64 };

    for (size_t m = 0; m < DTN_COUNT(meshes); m++) {
        spec.mesh = grid(3, meshes[m][0], meshes[m][1], meshes[m][2]);
        all_shapes(spec.mesh, 1, DTENSOR_SUM, DTENSOR_SUM, 1);
        spec.ndim = 2;
        for (size_t s = 0; s < DTN_COUNT(shapes); s++) {
            memcpy(spec.shape, shapes[s], sizeof shapes[s]);
            all_placements(&spec, DTENSOR_SUM, DTENSOR_SUM, 7);
        }
    }
    claim("3-D meshes, vectors and matrices");
    for (size_t s = 0; s < DTN_COUNT(shapes); s++) {
        memcpy(spec.shape, shapes[s], sizeof shapes[s]);
        spec.ndim = 3;
        spec.mesh = grid(2, 2, 3, 1);
        all_placements(&spec, DTENSOR_SUM, DTENSOR_SUM, 1);
    }
    claim("3-D tensors on 2 x 3");
}

/* Every reduction, and every pair of two. */
static void test_reductions(void)
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_AVG,
                                              DTENSOR_PROD, DTENSOR_MIN,
                                              DTENSOR_MAX };
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F64, DTENSOR_I64 };
    struct dtensor_spec spec = { .ndim = 1, .shape = { 5 } };

    for (size_t d = 0; d < DTN_COUNT(dtypes); d++)
        for (size_t a = 0; a < DTN_COUNT(ops); a++)
            for (size_t b = 0; b < DTN_COUNT(ops); b++) {
                spec.dtype = dtypes[d];
                spec.mesh = grid(1, 3, 1, 1);
                all_placements(&spec, ops[a], ops[b], 1);
                spec.mesh = grid(2, 2, 3, 1);
                all_placements(&spec, ops[a], ops[b], 1);
                spec.mesh = grid(3, 2, 2, 2);
                all_placements(&spec, ops[a], ops[b], 3);
            }
    claim("floats and integers: every reduction into every other");
}

/* ------------------------------------------------- the shape of the plans --- */

static void test_plan(const char *from, const char *to, const int64_t shape[2],
                      const char *want)
{
    struct dtensor_spec src = { .mesh = grid(2, 2, 4, 1), .ndim = 2,
                                .shape = { shape[0], shape[1] } };
    struct dtensor_spec dst = src;
    struct dtn_phase phase[DTN_MAX_PHASES];
    char got[64] = "";
    int n;

    if (dtensor_placements_parse(src.mesh, from, 2, src.placement, NULL) != 0 ||
        dtensor_placements_parse(dst.mesh, to, 2, dst.placement, NULL) != 0)
        abort();
    n = dtn_phases(&src, &dst, phase);
    for (int i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s%u",
                 i ? " " : "",
                 phase[i].kind == DTN_PHASE_REDUCE ? "reduce:" : "exchange",
                 phase[i].dims);
    ok(strcmp(got, want) == 0, "2 x 4: %s -> %s is \"%s\"%s%s", from, to, want,
       strcmp(got, want) ? ", not " : "", strcmp(got, want) ? got : "");
}

static void test_plans(void)
{
    static const struct { const char *from, *to, *want; } t[] = {
        { "R,R", "R,R", "" },
        { "S(0),S(1)", "S(0),S(1)", "" },
        { "S(0),R", "R,S(1)", "exchange0" },
        { "P,P", "R,R", "reduce:3" },
        { "P,R", "R,R", "reduce:1" },
        { "R,P", "R,R", "reduce:2" },
        { "P,P", "R,S(0)", "exchange0 reduce:1" },
        { "P,P", "S(0),S(0)", "exchange0" },
        { "P,S(0)", "R,R", "reduce:1 exchange0" },
        { "P,R", "R,S(1)", "exchange0 reduce:1" },
        { "P,S(0)", "P,R", "exchange0" },
        { "P,P", "P,P", "" },
        { "P(sum),R", "P(max),R", "reduce:1 exchange0" },
        { "P(sum),S(0)", "R,P(max)", "reduce:1 exchange0" },
        { "R,R", "P,P", "exchange0" },
    };
    const int64_t shape[] = { 8, 8 };

    for (size_t i = 0; i < DTN_COUNT(t); i++)
        test_plan(t[i].from, t[i].to, shape, t[i].want);
}

int main(void)
{
    ctx.cluster = &cluster;
    if (dtn_meshes_init(&ctx, NULL) != 0)
        return 1;
    note("seed %u", seed);
    for (int n = 1; n <= 8; n++) {
        all_shapes(grid(1, n, 1, 1), 1, DTENSOR_SUM, DTENSOR_SUM, 1);
        all_shapes(grid(1, n, 1, 1), 2, DTENSOR_SUM, DTENSOR_SUM, 1);
    }
    claim("1-D meshes of 1 to 8: every placement pair is right and frugal");
    test_two_dims();
    test_three_dims();
    test_reductions();
    test_plans();
    dtn_meshes_destroy(ctx.meshes);
    return done();
}
