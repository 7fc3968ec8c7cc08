/* oracle_terms.c - which term each rank must hold
 *
 * Terms of a P differ between ranks and make the value only together.  The
 * contract of dtensor_redistribute() defines them, and this file computes them
 * element by element: from [S(0),R] to [S(0),P(max)] the value, from [S(0)] to
 * [P(max)] the value on the rank that held it and minus infinity on the others.
 */
#include "base/dtype.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/redist/oracle_terms.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The coordinate of a position, divided out when the mesh is first asked for:
 * it is by far the most frequent question.
 */
const int *oracle_coord(const struct dtensor_mesh *mesh, int position)
{
    enum { SLOTS = 256 };
    static struct {
        int ndim, size[DTENSOR_MAX_DIMS];
        int coord[ORACLE_RANKS][DTENSOR_MAX_DIMS];
    } slots[SLOTS], *slot;
    const size_t bytes = (size_t)mesh->ndim * sizeof mesh->size[0];

    slot = &slots[(uintptr_t)mesh / 64 % SLOTS];
    if (slot->ndim != mesh->ndim || memcmp(slot->size, mesh->size, bytes)) {
        slot->ndim = mesh->ndim;
        memcpy(slot->size, mesh->size, bytes);
        for (int r = 0; r < mesh->group.n; r++)
            dtn_mesh_coord_of(mesh, r, slot->coord[r]);
    }
    return slot->coord[position];
}

/* ---------------------------------------------------------------- terms --- */

/* To be divided without a rest by two numbers of up to 16, one after another.
 */
static const double unit = 720720.0 * 720720.0;

double oracle_value(int64_t g)
{
    return unit * (double)(g + 1);
}

void oracle_terms_init(struct oracle_terms *terms,
                       const struct dtensor_spec *spec)
{
    const struct dtensor_mesh *mesh = spec->mesh;

    for (int r = 0; r < mesh->group.n; r++) {
        const int *coord = oracle_coord(mesh, r);

        terms->op = DTENSOR_SUM;
        terms->divide = terms->n = 1;
        terms->of[r] = terms->home[r] = 0;
        for (int m = 0; m < mesh->ndim; m++) {
            bool is = spec->placement[m].kind == DTENSOR_PARTIAL;

            terms->home[r] = terms->home[r] * mesh->size[m] +
                             (is ? 0 : coord[m]);
            if (!is)
                continue;
            terms->op = spec->placement[m].op;
            if (terms->op == DTENSOR_AVG) {
                terms->op = DTENSOR_SUM;
                terms->divide *= mesh->size[m];
            }
            terms->of[r] = terms->of[r] * mesh->size[m] + coord[m];
            terms->n *= mesh->size[m];
        }
    }
}

double oracle_fold(enum dtensor_redop op, double a, double b)
{
    switch (op) {
    case DTENSOR_PROD: return a * b;
    case DTENSOR_MIN:  return a < b ? a : b;
    case DTENSOR_MAX:  return a > b ? a : b;
    case DTENSOR_BAND: return (double)((int64_t)a & (int64_t)b);
    case DTENSOR_BOR:  return (double)((int64_t)a | (int64_t)b);
    case DTENSOR_BXOR: return (double)((int64_t)a ^ (int64_t)b);
    default:           return a + b;
    }
}

double oracle_neutral(enum dtensor_redop op)
{
    return op == DTENSOR_PROD ? 1 : op == DTENSOR_MIN ? 1e300
         : op == DTENSOR_MAX ? -1e300 : op == DTENSOR_BAND ? -1 : 0;
}

/* Term c > 0 of element g. */
static double term_at(enum dtensor_redop op, int c, int g)
{
    const int64_t value = (int64_t)oracle_value(g), bits = g * 31 + c * 17;

    switch (op) {
    case DTENSOR_PROD: return (g + c) % 2 ? -1 : 1;
    case DTENSOR_MIN:  return oracle_value(g + (g + c) % 5);
    case DTENSOR_MAX:  return oracle_value(g - (g + c) % 5);
    case DTENSOR_BAND: return (double)(value | bits);
    case DTENSOR_BOR:  return (double)(value & bits);
    case DTENSOR_BXOR: return (double)bits;
    default:           return unit * (double)(bits % 64);
    }
}

/* Term 0: what makes the value together with the others. */
static double term_rest(const struct oracle_terms *terms, int g)
{
    double rest = oracle_value(g) * terms->divide;

    for (int c = 1; c < terms->n; c++)
        switch (terms->op) {
        case DTENSOR_PROD: case DTENSOR_BXOR:
            rest = oracle_fold(terms->op, rest, term_at(terms->op, c, g));
            break;
        case DTENSOR_SUM:
            rest -= term_at(terms->op, c, g);
            break;
        default:
            break;
        }
    return rest;
}

double oracle_term(const struct oracle_terms *terms, int c, int g)
{
    return c == 0 ? term_rest(terms, g) : term_at(terms->op, c, g);
}

/* ----------------------------------------------------------- every term --- */

/* What becomes of each mesh dimension that is P in the target. */
struct making {
    const struct dtensor_spec *src, *dst;
    struct oracle_terms terms;                /* of src                       */
    unsigned kept;                     /* terms stay where they are           */
    unsigned placed;                   /* shards become terms                 */
    unsigned made;                     /* values become terms                 */
};

static void making_init(struct making *making, const struct dtensor_spec *src,
                        const struct dtensor_spec *dst)
{
    *making = (struct making){ .src = src, .dst = dst };
    oracle_terms_init(&making->terms, src);
    for (int m = 0; m < dst->mesh->ndim; m++) {
        const struct dtensor_placement *from = &src->placement[m];
        const struct dtensor_placement *to = &dst->placement[m];

        if (to->kind != DTENSOR_PARTIAL)
            continue;
        if (src->mesh != dst->mesh || from->kind == DTENSOR_REPLICATE ||
            (from->kind == DTENSOR_PARTIAL && from->op != to->op) ||
            (from->kind != DTENSOR_PARTIAL && to->op == DTENSOR_AVG))
            making->made |= 1u << m;
        else if (from->kind == DTENSOR_PARTIAL)
            making->kept |= 1u << m;
        else
            making->placed |= 1u << m;
    }
}

/* Element g, reduced over all terms but those that stay where they are. */
static double making_value(const struct making *making, const int coord[],
                           int g)
{
    const struct dtensor_mesh *mesh = making->src->mesh;
    const struct oracle_terms *terms = &making->terms;
    double value = 0;
    int n = 0, divide = 1;

    for (int c = 0; c < terms->n; c++) {
        bool mine = true;

        for (int m = mesh->ndim - 1, rest = c; m >= 0; m--) {
            if (making->src->placement[m].kind != DTENSOR_PARTIAL)
                continue;
            mine = mine && (!(making->kept >> m & 1) ||
                            rest % mesh->size[m] == coord[m]);
            rest /= mesh->size[m];
        }
        if (!mine)
            continue;
        value = n++ == 0 ? oracle_term(terms, c, g)
              : oracle_fold(terms->op, value, oracle_term(terms, c, g));
    }
    for (int m = 0; m < mesh->ndim; m++)
        if (making->src->placement[m].kind == DTENSOR_PARTIAL &&
            making->src->placement[m].op == DTENSOR_AVG &&
            !(making->kept >> m & 1))
            divide *= mesh->size[m];
    return value / divide;
}

static bool holds(const struct dtensor_spec *spec,
                  const struct oracle_held *held, int g)
{
    for (int d = spec->ndim - 1; d >= 0; d--) {
        const int want = g % (int)spec->shape[d];
        int i = 0;

        while (i < held->n[d] && held->index[d][i] != want)
            i++;
        if (i == held->n[d])
            return false;
        g /= (int)spec->shape[d];
    }
    return true;
}

static struct oracle_held made_held[ORACLE_RANKS];     /* of the source       */

/* Is g in the shards of those with these coordinates? */
static bool making_places(const struct making *making, const int coord[], int g)
{
    const struct dtensor_mesh *mesh = making->src->mesh;

    for (int r = 0; making->placed && r < mesh->group.n; r++) {
        const int *theirs = oracle_coord(mesh, r);
        bool mine = true;

        for (int m = 0; m < mesh->ndim; m++)
            mine = mine && (!(making->placed >> m & 1) ||
                            theirs[m] == coord[m]);
        if (mine && holds(making->src, &made_held[r], g))
            return true;
    }
    return making->placed == 0;
}

/* The term of a position of the target: what the manual says. */
static double making_term(const struct making *making, int position, int g)
{
    const struct dtensor_spec *dst = making->dst;
    const int *coord = oracle_coord(dst->mesh, position);
    const bool is_float = dtn_dtype_is_float(dst->dtype);
    double value;

    if (!making_places(making, coord, g))
        return oracle_neutral((enum dtensor_redop)dtn_spec_partial(dst));
    value = making_value(making, coord, g);
    for (int m = 0; m < dst->mesh->ndim; m++) {
        const enum dtensor_redop op = dst->placement[m].op;

        if (!(making->made >> m & 1))
            continue;
        if (op == DTENSOR_SUM && is_float)
            value /= dst->mesh->size[m];
        else if ((op == DTENSOR_SUM || op == DTENSOR_PROD ||
                  op == DTENSOR_BXOR) && coord[m] != 0)
            return oracle_neutral(op);
    }
    return value;
}

bool oracle_terms_right(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        double (*parts)[ORACLE_ELEMS])
{
    static struct oracle_held held;
    static int linear[ORACLE_ELEMS];
    struct making making;

    making_init(&making, src, dst);
    for (int r = 0; making.placed && r < src->mesh->group.n; r++)
        oracle_hold(src, r, &made_held[r]);
    for (int r = 0; dtn_spec_partial(dst) >= 0 && r < dst->mesh->group.n; r++) {
        int64_t n;

        oracle_hold(dst, r, &held);
        n = oracle_count(dst, &held);
        oracle_list(dst, &held, linear);
        for (int64_t i = 0; i < n; i++)
            if (parts[r][i] != making_term(&making, r, linear[i]))
                return false;
    }
    return true;
}
