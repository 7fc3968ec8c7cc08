/* test_pieces.c - every redistribute of small tensors, against brute force
 *
 * No transport: all ranks of a mesh are buffers of this process.  A global
 * tensor is drawn at random and laid out by the source spec (a Partial one as
 * random terms), the phases are interpreted piece by piece, and what each rank
 * ends with is compared, element by element, with what the destination spec
 * says it holds, found by cutting lists of indices.  Values are multiples of 840, so that dividing by up to 8
 * ranks is exact.
 */
#include "spec/spec.h"
#include "tests/tap.h"

#include <stdlib.h>
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

/* Write the part of list[0..n-1] that coordinate `r` of `size` keeps to `kept`
 * and return its length: one element at a time, as the definitions say.
 */
static int keep(const struct dtensor_placement *p, const int *list, int n,
                int size, int r, int *kept)
{
    int pieces = p->kind == DTENSOR_STRIDED ? (int)p->block : 1, count = 0;
    int cut = (n + pieces - 1) / pieces, lengths = 0;

    for (int i = 0; i < n; i++) {
        int begin = cut > 0 ? i / cut * cut : 0;
        int in_piece = n - begin < cut ? n - begin : cut;
        int owner = (i - begin) / ((in_piece + size - 1) / size);

        if (p->kind == DTENSOR_CYCLIC)
            owner = (int)(i / p->block) % size;
        if (p->sizes)
            for (owner = 0, lengths = (int)p->sizes[0];
                 i >= lengths && owner < size - 1; lengths += (int)p->sizes[owner])
                owner++;
        if (owner == r)
            kept[count++] = list[i];
    }
    return count;
}

/* The global indices along dimension d that position `index` holds. */
static int indices(const struct dtensor_spec *spec, int index, int d, int *list)
{
    int coord[DTENSOR_MAX_DIMS], n = (int)spec->shape[d];

    for (int i = 0; i < n; i++)
        list[i] = i;
    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
            spec->placement[m].dim == d)
            n = keep(&spec->placement[m], list, n, spec->mesh->size[m],
                     coord[m], list);
    return n;
}

/* The index in the part of every position of every global element, or -1. */
struct known {
    struct dtensor_spec spec;
    int64_t at[MAX_RANKS][MAX_ELEMS];
};

static void find_all(const struct dtensor_spec *spec, struct known *known)
{
    int list[DTENSOR_MAX_DIMS][MAX_ELEMS], n[DTENSOR_MAX_DIMS];
    int64_t stride[DTENSOR_MAX_DIMS], count;

    known->spec = *spec;
    dtn_strides(spec->ndim, spec->shape, stride);
    for (int r = 0; r < spec->mesh->group.n; r++) {
        memset(known->at[r], -1, sizeof known->at[r]);
        count = 1;
        for (int d = 0; d < spec->ndim; d++) {
            n[d] = indices(spec, r, d, list[d]);
            count *= n[d];
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t g = 0, rest = i;

            for (int d = spec->ndim - 1; d >= 0; d--) {
                g += list[d][rest % n[d]] * stride[d];
                rest /= n[d];
            }
            known->at[r][g] = i;
        }
    }
}

static int64_t where(const struct dtensor_spec *spec, int index, int64_t g)
{
    static struct known known[4];
    static int oldest;

    for (size_t i = 0; i < DTN_COUNT(known); i++)
        if (known[i].spec.mesh && dtn_spec_equal(&known[i].spec, spec))
            return known[i].at[index][g];
    oldest = (oldest + 1) % (int)DTN_COUNT(known);
    find_all(spec, &known[oldest]);
    return known[oldest].at[index][g];
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

/* What the sum of its terms is divided by. */
static int term_average(const struct dtensor_spec *spec)
{
    int n = 1;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL &&
            spec->placement[m].op == DTENSOR_AVG)
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
    int op = dtn_spec_partial(spec), n = term_average(spec);
    double rest[MAX_RANKS];

    now.spec = spec;
    for (int64_t g = 0; g < numel; g++) {
        for (int r = 0; r < spec->mesh->group.n; r++)
            rest[r] = whole[g] * n;
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
    int op = dtn_spec_partial(spec), n = term_average(spec);
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
            if (seen[r] && value[r] / n != whole[g])
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
static bool slots_fit(const struct dtn_phase *phase, int r,
                      const struct dtn_pieces *received)
{
    size_t room = (size_t)dtn_local_numel(&phase->dst, r);
    static bool taken[MAX_RANKS * MAX_ELEMS];

    if (dtn_phase_folds(phase))
        room *= (size_t)term_count(&phase->src);
    memset(taken, 0, room * sizeof taken[0]);
    for (int p = 0; p < received->n; p++) {
        const struct dtn_piece *piece = &received->list[p];

        for (int64_t i = 0; i < dtn_box_count(&piece->box); i++) {
            size_t at = piece->slot + (size_t)i;

            if (at >= room || taken[at])
                return false;
            taken[at] = true;
        }
    }
    return true;
}

/* Does every source list exactly what receivers list?  A receiver's list is by
 * source, a source's by receiver, so `all` is both when sorted by pair.
 */
static bool sent_is_received(const struct dtn_phase *phase,
                             struct dtn_pieces all[])
{
    int n = phase->dst.mesh->group.n, seen[MAX_RANKS] = { 0 };
    bool same = true;

    for (int s = 0; s < phase->src.mesh->group.n; s++) {
        struct dtn_pieces sent = { 0 };

        if (dtn_pieces_sent(&phase->src, &phase->dst, s, &sent, NULL) != 0)
            abort();
        for (int i = 0; i < sent.n; i++) {
            int r = sent.list[i].receiver, k = seen[r]++;

            same = same && k < all[r].n &&
                   memcmp(&sent.list[i], &all[r].list[k],
                          sizeof all[r].list[k]) == 0;
        }
        dtn_pieces_fini(&sent);
    }
    for (int r = 0; r < n; r++)
        same = same && seen[r] == all[r].n;
    return same;
}

static bool run_exchange(const struct dtn_phase *phase, int64_t numel)
{
    int n = phase->dst.mesh->group.n;
    struct dtn_pieces all[MAX_RANKS] = { { 0 } };
    bool good = true;

    for (int r = 0; r < n; r++) {
        int64_t got = 0;

        for (int64_t i = 0; i < numel; i++)
            next.part[r][i] = phase->neutral ? neutral(phase->redop) : -1e200;
        if (dtn_pieces_received(&phase->src, &phase->dst, r, &all[r], NULL) != 0)
            abort();
        for (int i = 0; i < all[r].n && !dtn_phase_idle(phase, r); i++) {
            const struct dtn_piece *piece = &all[r].list[i];

            apply(piece, phase->redop, now.part[piece->source], next.part[r]);
            got += piece->source != r ? dtn_box_count(&piece->box) : 0;
        }
        received_elems += got;
        good = good && got <= exchange_need(phase, r, numel) &&
               slots_fit(phase, r, &all[r]);
    }
    good = good && sent_is_received(phase, all);
    for (int r = 0; r < n; r++)
        dtn_pieces_fini(&all[r]);
    return good;
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

/* ------------------------------------------------------ every placement --- */

/* Lengths drawn at random for n shards of N elements. */
static const int64_t *draw_lengths(int64_t N, int n)
{
    int64_t list[MAX_RANKS] = { 0 };
    const int64_t *kept = NULL;

    for (int64_t i = 0; i < N; i++)
        list[draw((uint32_t)n)]++;
    if (dtn_lengths_keep(&ctx, list, n, &kept, NULL) != 0)
        abort();
    return kept;
}

/* Elements that placements 0..m-1 leave along `dim`, or -1 when some ranks have
 * more than others.
 */
static int64_t equal_part(const struct dtensor_spec *spec, int m, int dim)
{
    struct dtensor_spec part = *spec;
    int list[MAX_ELEMS], n = -1;

    for (int k = m; k < spec->mesh->ndim; k++)
        part.placement[k].kind = DTENSOR_REPLICATE;
    for (int r = 0; r < spec->mesh->group.n; r++) {
        int held = indices(&part, r, dim, list);

        if (r > 0 && held != n)
            return -1;
        n = held;
    }
    return n;
}

/* One placement drawn at random. */
static void place_any(struct dtensor_spec *spec, int m, enum dtensor_redop op)
{
    struct dtensor_placement *p = &spec->placement[m];
    int64_t part;

    memset(p, 0, sizeof *p);
    p->kind = (enum dtensor_placement_kind)draw(5);
    if (dtn_placement_class(p) == DTENSOR_SHARD)
        p->dim = (int)draw((uint32_t)spec->ndim);
    if (p->kind == DTENSOR_PARTIAL)
        p->op = op != DTENSOR_SUM ? op : draw(2) ? DTENSOR_SUM : DTENSOR_AVG;
    if (p->kind == DTENSOR_STRIDED || p->kind == DTENSOR_CYCLIC)
        p->block = 1 + draw(draw(4) ? 3 : 9);
    part = p->kind == DTENSOR_SHARD && draw(2) ? equal_part(spec, m, p->dim)
                                               : -1;
    if (part >= 0)
        p->sizes = draw_lengths(part, spec->mesh->size[m]);
}

static struct dtensor_spec draw_spec(const struct dtensor_mesh *mesh, int ndim,
                                     const int64_t shape[],
                                     enum dtensor_redop op)
{
    struct dtensor_spec spec;

    memset(&spec, 0, sizeof spec);
    spec.mesh = mesh;
    spec.dtype = DTENSOR_F64;
    spec.ndim = ndim;
    memcpy(spec.shape, shape, (size_t)ndim * sizeof shape[0]);
    for (int m = 0; m < mesh->ndim; m++)
        place_any(&spec, m, op);
    if (dtensor_spec_check(&spec, NULL) != 0)
        complain(&spec, &spec, "refused");
    return spec;
}

static const struct dtensor_mesh *draw_mesh(void)
{
    static const int grids[][3] = {
        { 1 }, { 2 }, { 3 }, { 5 }, { 8 }, { 2, 2 }, { 2, 3 }, { 3, 2 },
        { 1, 4 }, { 4, 2 }, { 2, 2, 2 }, { 2, 1, 3 }, { 3, 1, 2 }
    };
    const int *sizes = grids[draw(DTN_COUNT(grids))];

    return grid(sizes[2] ? 3 : sizes[1] ? 2 : 1, sizes[0], sizes[1], sizes[2]);
}

static int draw_shape(int64_t shape[3])
{
    static const int most[] = { 60, 16, 7 };
    int ndim = 1 + (int)draw(3);

    for (int d = 0; d < ndim; d++)
        shape[d] = draw(20) ? 1 + draw((uint32_t)most[ndim - 1]) : 0;
    return ndim;
}

static void test_any_placement(void)
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_MAX };
    int64_t shape[3];

    for (int i = 0; i < 40000; i++) {
        const struct dtensor_mesh *mesh = draw_mesh();
        int ndim = draw_shape(shape);
        struct dtensor_spec src = draw_spec(mesh, ndim, shape, ops[draw(2)]);
        struct dtensor_spec dst = draw_spec(mesh, ndim, shape, ops[draw(2)]);

        one_case(&src, &dst);
    }
    claim("strided, chosen lengths, block-cyclic, sums with averages, at "
          "random");
}

/* Every vector of up to 13 elements on up to 5 ranks, every pair of S, SS and C
 * with small factors and blocks.
 */
static void test_every_cut(void)
{
    enum { CUTS = 11 };

    for (int n = 1; n <= 5; n++)
        for (int64_t N = 0; N <= 13; N++)
            for (int pair = 0; pair < CUTS * CUTS; pair++) {
                struct dtensor_spec spec[2];

                for (int i = 0; i < 2; i++) {
                    int code = i ? pair / CUTS : pair % CUTS;
                    struct dtensor_placement *p = &spec[i].placement[0];

                    memset(&spec[i], 0, sizeof spec[i]);
                    spec[i].mesh = grid(1, n, 1, 1);
                    spec[i].dtype = DTENSOR_F64;
                    spec[i].ndim = 1;
                    spec[i].shape[0] = N;
                    p->kind = code == 0 ? DTENSOR_SHARD
                            : code < 6 ? DTENSOR_STRIDED : DTENSOR_CYCLIC;
                    p->block = code == 0 ? 0 : (code - 1) % 5 + 1;
                }
                one_case(&spec[0], &spec[1]);
            }
    claim("every pair of cuts of vectors of 0..13 elements on 1..5 ranks");
}

/* ------------------------------------------------------ between two meshes --- */

/* A grid of ranks in a random order that may leave some out. */
static const struct dtensor_mesh *shuffled(const struct dtensor_mesh *like)
{
    const struct dtensor_mesh *mesh;
    int ranks[MAX_RANKS];

    for (int i = 0; i < MAX_RANKS; i++) {
        int at = (int)draw((uint32_t)i + 1);

        ranks[i] = ranks[at];
        ranks[at] = i;
    }
    if (dtensor_mesh_create(&ctx, like->ndim, like->size, NULL, ranks, &mesh,
                            NULL) != 0)
        abort();
    return mesh;
}

/* Elements that a rank has already come from itself. */
static bool keeps_own(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int r,
                      const struct dtn_pieces *received)
{
    int64_t numel = dtn_numel(src->ndim, src->shape), both = 0, kept = 0;
    int self = dtensor_mesh_index(src->mesh, dst->mesh->ranks[r]);

    for (int64_t g = 0; self >= 0 && g < numel; g++)
        both += where(src, self, g) >= 0 && where(dst, r, g) >= 0;
    for (int i = 0; i < received->n; i++)
        if (received->list[i].source == self)
            kept += dtn_box_count(&received->list[i].box);
    return kept == both;
}

static bool between_meshes(const struct dtensor_spec *src,
                           const struct dtensor_spec *dst)
{
    int op = dtn_spec_partial(src), n = term_average(src);
    int64_t numel = dtn_numel(src->ndim, src->shape);
    struct dtn_phase phase = { .src = *src, .dst = *dst };
    struct dtn_pieces all[MAX_RANKS] = { { 0 } };
    bool good = true;

    lay_out(src, numel);
    for (int r = 0; r < dst->mesh->group.n; r++) {
        if (dtn_pieces_received(src, dst, r, &all[r], NULL) != 0)
            abort();
        for (int i = 0; i < all[r].n; i++)
            apply(&all[r].list[i], (enum dtensor_redop)(op < 0 ? 0 : op),
                  now.part[all[r].list[i].source], next.part[r]);
        for (int64_t g = 0; g < numel; g++) {
            int64_t at = where(dst, r, g);

            good = good && (at < 0 || next.part[r][at] / n == whole[g]);
        }
        good = good && (op >= 0 || keeps_own(src, dst, r, &all[r]));
    }
    good = good && sent_is_received(&phase, all);
    for (int r = 0; r < dst->mesh->group.n; r++)
        dtn_pieces_fini(&all[r]);
    return good;
}

static void test_between_meshes(void)
{
    int64_t shape[3];

    for (int i = 0; i < 4000; i++) {
        int ndim = draw_shape(shape);
        struct dtensor_spec src = draw_spec(shuffled(draw_mesh()), ndim, shape,
                                            DTENSOR_MAX);
        struct dtensor_spec dst = draw_spec(draw_mesh(), ndim, shape,
                                            DTENSOR_MAX);

        for (int m = 0; m < dst.mesh->ndim; m++)
            if (dst.placement[m].kind == DTENSOR_PARTIAL)
                dst.placement[m].kind = DTENSOR_REPLICATE;
        cases++;
        for (int64_t g = 0; g < dtn_numel(ndim, shape); g++)
            whole[g] = 840.0 * (1 + draw(1000));
        if (!between_meshes(&src, &dst))
            complain(&src, &dst, "between two meshes");
    }
    claim("between meshes of other shapes, orders and ranks");
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
    test_any_placement();
    test_every_cut();
    test_between_meshes();
    test_plans();
    dtn_meshes_destroy(ctx.meshes);
    dtn_lengths_destroy(ctx.lengths);
    return done();
}
