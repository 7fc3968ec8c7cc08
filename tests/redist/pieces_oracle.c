/* pieces_oracle.c - redistributes interpreted without a transport */
#include "base/box.h"
#include "base/compiler.h"
#include "base/dtype.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "tests/redist/pieces_oracle.h"
#include "tests/support/tap.h"

#include <stdlib.h>
#include <string.h>

double whole[MAX_ELEMS];
struct parts now, next;
long cases, received_elems;
static bool failed;
uint32_t seed = 12345;

uint32_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

void complain(const struct dtensor_spec *src, const struct dtensor_spec *dst,
              const char *what)
{
    char a[300], b[300];

    if (!failed)
        note("%s: %s -> %s", what, dtn_spec_format(src, a, sizeof a),
             dtn_spec_format(dst, b, sizeof b));
    failed = true;
}

/* --------------------------------------------------- brute-force layout --- */

/* Who has element i of n, if `size` ranks take halves of their shares from both
 * ends?
 */
static int end_owner(int n, int size, int i)
{
    const int share = (n + size - 1) / size;
    int from = 0, to = n, owner = 0;

    for (; to - from > share; owner++) {
        from += (share + 1) / 2;
        to -= share / 2;
        if (i < from || i >= to)
            return owner;
    }
    return owner;
}

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
        if (p->kind == DTENSOR_HEADTAIL)
            owner = end_owner(n, size, i);
        if (p->sizes)
            for (owner = 0, lengths = (int)p->sizes[0];
                 i >= lengths &&
                     owner < size - 1; lengths += (int)p->sizes[owner])
                owner++;
        if (owner == r)
            kept[count++] = list[i];
    }
    return count;
}

int indices(const struct dtensor_spec *spec, int index, int d, int *list)
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

int64_t where(const struct dtensor_spec *spec, int index, int64_t g)
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

int term_average(const struct dtensor_spec *spec)
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

void lay_out(const struct dtensor_spec *spec, int64_t numel)
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
                term = VALUE_UNIT * draw(100);
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

void apply(const struct dtn_piece *piece, enum dtensor_redop op,
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

bool sent_is_received(const struct dtn_phase *phase, struct dtn_pieces all[])
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
        if (dtn_pieces_received(&phase->src, &phase->dst, r, &all[r], NULL) !=
            0)
            abort();
        for (int i = 0; i < all[r].n && !dtn_phase_idle(phase, r); i++) {
            const struct dtn_piece *piece = &all[r].list[i];

            apply(piece, phase->redop, now.part[piece->source], next.part[r]);
            got += piece->source != r ? dtn_box_count(&piece->box) : 0;
        }
        received_elems += got;
        good = good && got <= exchange_need(phase, r, numel);
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
                now.part[r][e] = divided(&phase[i], next.part[r][e]);
    }
    return true;
}

/* ---------------------------------------------------------------- cases --- */

void one_case(const struct dtensor_spec *src, const struct dtensor_spec *dst)
{
    int64_t numel = dtn_numel(src->ndim, src->shape);

    cases++;
    for (int64_t g = 0; g < numel; g++)
        whole[g] = VALUE_UNIT * (1 + draw(1000));
    lay_out(src, numel);
    if (!run_case(src, dst, numel))
        complain(src, dst, "a rank gets more than it needs, or slots collide");
    else if (!laid_out(dst, numel))
        complain(src, dst, "a rank holds the wrong elements");
}

void claim(const char *what)
{
    ok(!failed, "%s (%ld cases, %ld elements moved)", what, cases,
       received_elems);
    failed = false;
    cases = received_elems = 0;
}
