/* oracle.c - what a redistribute must do, worked out the slow and sure way
 *
 * A part is the product of one list of global indices for each tensor
 * dimension, and lists are cut as the words say: C(0,2) of 0..9 on 3 ranks
 * deals 0 1, 2 3, 4 5 to ranks 0, 1, 2, then 6 7 and 8 9 to ranks 0 and 1.
 * Terms of a P differ from rank to rank and only together make the value.
 */
#include "base/box.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/cross.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/plan.h"
#include "redist/route.h"
#include "sched/exchange.h"
#include "dtensor.h"
#include "tests/redist/oracle_terms.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char oracle_complaint[700];

/* -------------------------------------------------------------- layouts --- */

/* Coordinate r's chunk of the items [from, to), appended to those kept. */
static int keep_chunk(short *items, int kept, int from, int to, int n, int r)
{
    int full = (to - from + n - 1) / n;
    int end = from + full * (r + 1);

    for (int i = from + full * r; i < to && i < end; i++)
        items[kept++] = items[i];
    return kept;
}

/* Half of coordinate r's share from each end, after those before it. */
static int keep_ends(short *items, int N, int n, int r)
{
    const int full = (N + n - 1) / n;
    int low = 0, high = N, head = 0, tail = 0, kept = 0;

    for (int k = 0; k <= r; k++) {
        const int share = high - low < full ? high - low : full;

        tail = share / 2;
        head = share - tail;
        low += head;
        high -= tail;
    }
    for (int i = low - head; i < low; i++)
        items[kept++] = items[i];
    for (int i = high; i < high + tail; i++)
        items[kept++] = items[i];
    return kept;
}

/* Cut a list of N: what is kept goes to its front.  Returns how many. */
static int cut(short *items, int N, const struct dtensor_placement *p, int n,
               int r)
{
    int kept = 0, from = 0, piece = N;
    int block = (int)p->block;

    if (p->kind == DTENSOR_CYCLIC) {
        for (from = r * block; from < N; from += n * block)
            for (int i = from; i < from + block && i < N; i++)
                items[kept++] = items[i];
        return kept;
    }
    if (p->kind == DTENSOR_HEADTAIL)
        return keep_ends(items, N, n, r);
    if (p->kind == DTENSOR_SHARD && p->sizes) {     /* on the way: of less    */
        for (int k = 0; k < r; k++)
            from += (int)p->sizes[k];
        piece = from + (int)p->sizes[r];
        return keep_chunk(items, 0, from, piece < N ? piece : N, 1, 0);
    }
    if (p->kind == DTENSOR_STRIDED)
        piece = (N + block - 1) / block;
    for (; from < N; from += piece)
        kept = keep_chunk(items, kept, from,
                          from + piece < N ? from + piece : N, n, r);
    return kept;
}

void oracle_hold(const struct dtensor_spec *spec, int position,
                 struct oracle_held *held)
{
    const int *coord = oracle_coord(spec->mesh, position);

    for (int d = 0; d < spec->ndim; d++) {
        held->n[d] = (int)spec->shape[d];
        for (int i = 0; i < held->n[d]; i++)
            held->index[d][i] = (short)i;
    }
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];
        int d = p->dim;

        if (p->kind != DTENSOR_REPLICATE && p->kind != DTENSOR_PARTIAL)
            held->n[d] = cut(held->index[d], held->n[d], p,
                             spec->mesh->size[m], coord[m]);
    }
}

int64_t oracle_count(const struct dtensor_spec *spec,
                     const struct oracle_held *held)
{
    int64_t n = 1;

    for (int d = 0; d < spec->ndim; d++)
        n *= held->n[d];
    return n;
}

void oracle_list(const struct dtensor_spec *spec,
                 const struct oracle_held *held, int *linear)
{
    const int64_t *shape = spec->shape;
    int one = spec->ndim > 1, two = spec->ndim > 2;

    for (int i = 0; i < held->n[0]; i++)
        for (int j = 0; j < (one ? held->n[1] : 1); j++)
            for (int k = 0; k < (two ? held->n[2] : 1); k++) {
                int g = held->index[0][i];

                if (one)
                    g = g * (int)shape[1] + held->index[1][j];
                if (two)
                    g = g * (int)shape[2] + held->index[2][k];
                *linear++ = g;
            }
}

/* Elements that both hold. */
static int64_t common(const struct dtensor_spec *spec,
                      const struct oracle_held *a, const struct oracle_held *b)
{
    static bool seen[ORACLE_SIZE];
    int64_t n = 1;

    for (int d = 0; d < spec->ndim; d++) {
        int both = 0;

        for (int i = 0; i < a->n[d]; i++)
            seen[a->index[d][i]] = true;
        for (int i = 0; i < b->n[d]; i++)
            both += seen[b->index[d][i]];
        for (int i = 0; i < a->n[d]; i++)
            seen[a->index[d][i]] = false;
        n *= both;
    }
    return n;
}

/* --------------------------------------------------------------- worlds --- */

/* The parts of all ranks, before and after a phase. */
static double parts[2][ORACLE_RANKS][ORACLE_ELEMS];
static int linear[ORACLE_ELEMS];
static struct oracle_held src_held[ORACLE_RANKS], dst_held[ORACLE_RANKS];

static int64_t fill(const struct dtensor_spec *spec,
                    const struct oracle_terms *terms,
                    int position, double part[])
{
    struct oracle_held *held = &src_held[position];
    int64_t n;

    oracle_hold(spec, position, held);
    n = oracle_count(spec, held);
    oracle_list(spec, held, linear);
    for (int64_t i = 0; i < n; i++)
        part[i] = oracle_term(terms, terms->of[position], linear[i]);
    return n;
}

int64_t oracle_fill(const struct dtensor_spec *spec, int position,
                    double part[])
{
    struct oracle_terms terms;

    oracle_terms_init(&terms, spec);
    return fill(spec, &terms, position, part);
}

bool oracle_check(const struct dtensor_spec *spec, int position,
                  const double part[], int64_t n)
{
    struct oracle_held *held = &dst_held[position];

    oracle_hold(spec, position, held);
    if (n != oracle_count(spec, held))
        return false;
    oracle_list(spec, held, linear);
    for (int64_t i = 0; i < n; i++)
        if (part[i] != oracle_value(linear[i]))
            return false;
    return true;
}

/* Do all ranks hold what `spec` says?  Terms are reduced first. */
static bool laid_out(const struct dtensor_spec *spec)
{
    struct oracle_terms terms;

    oracle_terms_init(&terms, spec);
    for (int r = 0; r < spec->mesh->group.n; r++) {
        int64_t n = dtn_local_numel(spec, r);

        for (int64_t i = 0; terms.of[r] > 0 && i < n; i++)
            parts[0][terms.home[r]][i] = oracle_fold(terms.op, parts[0][r][i],
                                              parts[0][terms.home[r]][i]);
    }
    for (int r = 0; r < spec->mesh->group.n; r++) {
        int64_t n = dtn_local_numel(spec, r);

        for (int64_t i = 0; i < n; i++)
            parts[0][r][i] /= terms.divide;
        if (terms.of[r] == 0 && !oracle_check(spec, r, parts[0][r], n))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------- interpreter --- */

/* Walk the box: the last dimension in a loop, the others by counting. */
static void apply(const struct dtn_piece *piece, enum dtensor_redop op,
                  const double *src, double *dst)
{
    const struct dtn_box *box = &piece->box;
    int64_t at[DTN_BOX_DIMS] = { 0 };
    int last = box->ndim - 1, d = 0;

    src += piece->src_offset;
    dst += piece->dst_offset;
    while (d >= 0) {
        int64_t n = last >= 0 ? box->size[last] : 1;
        int64_t from = last >= 0 ? box->src_stride[last] : 0;
        int64_t to = last >= 0 ? box->dst_stride[last] : 0;

        for (int64_t i = 0; i < n; i++)
            dst[i * to] = piece->accumulate
                        ? oracle_fold(op, dst[i * to],
                                      src[i * from]) : src[i * from];
        for (d = last - 1; d >= 0; d--) {
            src += box->src_stride[d];
            dst += box->dst_stride[d];
            if (++at[d] < box->size[d])
                break;
            src -= box->src_stride[d] * box->size[d];
            dst -= box->dst_stride[d] * box->size[d];
            at[d] = 0;
        }
    }
}

/* What receiver r lacks: each element of its part once, or once for each term;
 * nothing it holds.  -1: where shards become terms, that is not so simple.
 */
static int64_t lacks(const struct dtn_phase *phase, int r)
{
    const struct dtensor_mesh *mesh = phase->src.mesh;
    bool same = mesh == phase->dst.mesh;
    int64_t terms = 1, all = oracle_count(&phase->dst, &dst_held[r]);

    for (int m = 0; m < mesh->ndim; m++) {
        bool term = phase->src.placement[m].kind == DTENSOR_PARTIAL;
        bool cut = !term &&
                   phase->src.placement[m].kind != DTENSOR_REPLICATE;
        bool stays = same &&
                     phase->dst.placement[m].kind == DTENSOR_PARTIAL &&
                     !(cut && phase->dst.placement[m].op == DTENSOR_AVG);

        if (stays && cut)
            return -1;
        if (term && !stays)
            terms *= mesh->size[m];
    }
    if (r < mesh->group.n)
        return terms * all - common(&phase->src, &src_held[r], &dst_held[r]);
    return terms * all;
}

/* Something that differs when pieces do, whatever their order. */
static uint64_t piece_mark(const struct dtn_piece *piece)
{
    uint64_t h = (uint64_t)(piece->source * 31 + piece->receiver);

    h = h * 1000003 + piece->src_offset;
    h = h * 1000003 + piece->dst_offset;
    h = h * 1000003 + piece->accumulate;
    for (int d = 0; d < piece->box.ndim; d++) {
        h = h * 1000003 + (uint64_t)piece->box.size[d];
        h = h * 1000003 + (uint64_t)piece->box.src_stride[d];
        h = h * 1000003 + (uint64_t)piece->box.dst_stride[d];
    }
    return h ^ h >> 29;
}

/* What sources think they send, marked. */
static uint64_t sent_mark(const struct dtn_phase *phase)
{
    static struct dtn_pieces pieces;
    uint64_t mark = 0;

    for (int s = 0; s < phase->src.mesh->group.n; s++) {
        pieces.n = 0;
        if (dtn_pieces_sent(&phase->src, &phase->dst, s, &pieces, NULL) != 0)
            abort();
        for (int i = 0; i < pieces.n; i++)
            if (!phase->first_only ||
                !dtn_phase_idle(phase, pieces.list[i].receiver))
                mark += piece_mark(&pieces.list[i]);
    }
    return mark;
}

/* All pieces of a receiver; returns the elements from others. */
static int64_t receive(const struct dtn_phase *phase, int r, uint64_t *mark)
{
    static struct dtn_pieces pieces;
    int64_t got = 0;

    pieces.n = 0;
    if (dtn_pieces_received(&phase->src, &phase->dst, r, &pieces, NULL) != 0)
        abort();
    for (int i = 0; i < pieces.n; i++) {
        const struct dtn_piece *piece = &pieces.list[i];

        apply(piece, phase->redop, parts[0][piece->source], parts[1][r]);
        got += piece->source != r ? dtn_box_count(&piece->box) : 0;
        *mark += piece_mark(piece);
    }
    return got;
}

/* Positions are ranks here: both meshes begin with rank 0. */
static bool exchange(const struct dtn_phase *phase, uint64_t *movedp,
                     uint64_t *boundp)
{
    uint64_t mark = 0;

    for (int s = 0; s < phase->src.mesh->group.n; s++)
        oracle_hold(&phase->src, s, &src_held[s]);
    for (int r = 0; r < phase->dst.mesh->group.n; r++) {
        int64_t all, got, lack;

        oracle_hold(&phase->dst, r, &dst_held[r]);
        all = oracle_count(&phase->dst, &dst_held[r]);
        for (int64_t i = 0; i < all; i++)
            parts[1][r][i] = phase->neutral ? oracle_neutral(phase->redop)
                                            : -1e200;
        if (phase->first_only && dtn_phase_idle(phase, r))
            continue;
        got = receive(phase, r, &mark);
        lack = lacks(phase, r);
        *movedp += (uint64_t)got;
        *boundp += (uint64_t)(lack < 0 ? got : lack);
        if (lack >= 0 && got != lack)
            return false;
    }
    return mark == sent_mark(phase);
}

static void allreduce(const struct dtn_phase *phase)
{
    const struct dtensor_mesh *mesh = phase->src.mesh;
    int home[ORACLE_RANKS];

    for (int r = 0; r < mesh->group.n; r++) {
        const int *coord = oracle_coord(mesh, r);
        int64_t n = dtn_local_numel(&phase->src, r);

        home[r] = 0;
        for (int m = 0; m < mesh->ndim; m++)
            home[r] = home[r] * mesh->size[m] +
                      (phase->dims >> m & 1 ? 0 : coord[m]);
        for (int64_t i = 0; i < n; i++)
            parts[1][home[r]][i] = home[r] == r ? parts[0][r][i] :
                oracle_fold(phase->redop, parts[1][home[r]][i], parts[0][r][i]);
    }
    for (int r = 0; r < mesh->group.n; r++)
        if (home[r] != r)
            memcpy(parts[1][r], parts[1][home[r]],
                   (size_t)dtn_local_numel(&phase->src, r) * sizeof(double));
}

static bool run(const struct dtn_phase *phase, uint64_t *movedp,
                uint64_t *boundp)
{
    if (phase->kind == DTN_PHASE_REDUCE)
        allreduce(phase);
    else if (!exchange(phase, movedp, boundp))
        return false;
    for (int r = 0; r < phase->dst.mesh->group.n; r++) {
        int64_t n = dtn_local_numel(&phase->dst, r);

        for (int64_t i = 0; i < n; i++)
            parts[0][r][i] = parts[1][r][i] / phase->divide;
    }
    return true;
}

static bool complain(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, enum dtensor_route route,
                     const char *what)
{
    char a[300], b[300];

    snprintf(oracle_complaint, sizeof oracle_complaint, "%s, %s: %s -> %s",
             dtn_route_name(route), what, dtn_spec_format(src, a, sizeof a),
             dtn_spec_format(dst, b, sizeof b));
    return false;
}

/* The phases of a route, by the library. */
static int phases(const struct dtensor_spec *src,
                  const struct dtensor_spec *dst, enum dtensor_route route,
                  struct dtn_phase phase[])
{
    static struct dtn_routes routes;
    struct dtn_cost cost;

    if (src->mesh != dst->mesh)
        return dtn_cross_phases(src, dst, phase);
    if (route == DTENSOR_ROUTE_DIRECT)
        return dtn_phases(src, dst, phase);
    dtn_cost_init(src->mesh, &cost);
    if (dtn_routes_find(&cost, src, dst, route, UINT64_MAX, &routes, NULL) != 0)
        return dtn_phases(src, dst, phase);
    return dtn_route_phases(&routes.route[routes.chosen], src, dst, phase);
}

bool oracle_case(const struct dtensor_spec *src, const struct dtensor_spec *dst,
                 enum dtensor_route route, uint64_t *movedp, uint64_t *boundp)
{
    static struct dtn_phase phase[DTN_ROUTE_PHASES_MAX];
    int n = phases(src, dst, route, phase);

    return oracle_phases(src, dst, route, phase, n, movedp, boundp);
}

bool oracle_phases(const struct dtensor_spec *src,
                   const struct dtensor_spec *dst, enum dtensor_route route,
                   const struct dtn_phase phase[], int n, uint64_t *movedp,
                   uint64_t *boundp)
{
    struct oracle_terms terms;

    oracle_terms_init(&terms, src);
    for (int r = 0; r < src->mesh->group.n; r++)
        fill(src, &terms, r, parts[0][r]);
    for (int i = 0; i < n; i++)
        if (!run(&phase[i], movedp, boundp))
            return complain(src, dst, route, "a rank gets more or less than it "
                            "lacks, or other than is sent");
    if (!oracle_terms_right(src, dst, parts[0]))
        return complain(src, dst, route, "a rank holds another term");
    if (!laid_out(dst))
        return complain(src, dst, route, "a rank holds the wrong elements");
    return true;
}
