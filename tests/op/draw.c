/* draw.c - inputs of operators from words, their placements by chance */
#include "base/dtype.h"
#include "tests/op/draw.h"
#include "tests/support/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double element(uint64_t *state, const char *kind, int64_t i)
{
    switch (*kind) {
    case 'w':
        return rand_below(state, 9) - 4;
    case 'p':
        return 1 + rand_below(state, 4);
    case 'b':
        return rand_below(state, 2);
    case 'd':
        return (double)(i * 7919 % 1009);
    default:
        return rand_below(state, (int)strtol(kind + 1, NULL, 10));
    }
}

const char *draw_input(uint64_t *state, const char *text, struct whole *w)
{
    char dtype[8], *end;

    w->ndim = 0;
    for (; *text != ':'; text = end + (*end == 'x'))
        w->shape[w->ndim++] = strtoll(text, &end, 10);
    text++;
    snprintf(dtype, sizeof dtype, "%.*s", (int)strcspn(text, ":"), text);
    if (dtensor_dtype_parse(dtype, &w->dtype, NULL) != 0)
        abort();
    text += strcspn(text, ":") + 1;
    for (int64_t i = 0; i < whole_count(w); i++)
        w->at[i] = element(state, text, i);
    text += strcspn(text, " ");
    return text + (*text == ' ');
}

void draw_spec(const struct whole *w, const struct dtensor_mesh *mesh,
               struct dtensor_spec *spec)
{
    *spec = (struct dtensor_spec){ .mesh = mesh, .dtype = w->dtype,
                                   .ndim = w->ndim };
    memcpy(spec->shape, w->shape, sizeof spec->shape);
}

/* Lengths that add up to the size of the dimension. */
static void draw_lengths(uint64_t *state, int64_t size, int n, int64_t length[])
{
    memset(length, 0, (size_t)n * sizeof length[0]);
    for (int64_t i = 0; i < size; i++)
        length[rand_below(state, n)]++;
}

bool draw_placements(uint64_t *state, bool terms, struct dtensor_spec *spec,
                     int64_t lengths[])
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_SUM,
        DTENSOR_AVG, DTENSOR_MAX, DTENSOR_MIN };
    const enum dtensor_redop op = ops[rand_below(state, 5)];
    bool whole = true;

    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++) {
        const int size = dtensor_mesh_dim_size(spec->mesh, m);
        struct dtensor_placement *p = &spec->placement[m];
        const int kind = rand_below(state, 13);

        *p = (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
        if (kind < 2 && terms) {
            *p = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL,
                                             .op = op };
            whole = whole && size != 3;
        } else if (kind > 2 && kind < 10 && spec->ndim > 0) {
            *p = (struct dtensor_placement){
                .kind = kind == 9 ? DTENSOR_HEADTAIL : kind == 8
                      ? DTENSOR_CYCLIC : kind == 7 ? DTENSOR_STRIDED
                                                   : DTENSOR_SHARD,
                .dim = rand_below(state, spec->ndim),
                .block = 1 + rand_below(state, 3) };
            if (kind == 6 && m == 0) {
                draw_lengths(state, spec->shape[p->dim], size, lengths);
                p->sizes = lengths;
            }
        }
    }
    return whole;
}

/* The ranks of a mesh that hold terms of the same elements. */
struct terms {
    enum dtensor_redop op;
    int n;                        /* how many they are                        */
    int me;                       /* which of them this rank is               */
};

static struct terms terms_of(const struct dtensor_spec *spec)
{
    struct terms terms = { .n = 1 };

    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++) {
        const int size = dtensor_mesh_dim_size(spec->mesh, m);
        int coord = 0;

        if (spec->placement[m].kind != DTENSOR_PARTIAL)
            continue;
        dtensor_mesh_coord_along(spec->mesh, m, &coord, NULL);
        terms.op = spec->placement[m].op;
        terms.me = terms.me * size + coord;
        terms.n *= size;
    }
    return terms;
}

/* What is added to the term of element k: their reduction stays the same. */
static int term_change(const struct terms *terms, size_t k, size_t owner_of_0)
{
    const int change = 1 + (int)(k % 3);
    const int owner = (int)((k + owner_of_0) % (size_t)terms->n);

    if (terms->op == DTENSOR_MAX || terms->op == DTENSOR_MIN)
        return terms->me == owner ? 0
             : terms->op == DTENSOR_MAX ? -change : change;
    return terms->me == owner ? change
         : terms->me == (owner + 1) % terms->n ? -change : 0;
}

/* Can terms be negative, and are they exact?  Thirds of a whole number are not.
 */
static bool terms_may_differ(const struct terms *terms,
                             enum dtensor_dtype dtype)
{
    const enum dtn_dtype_kind kind = dtn_dtype_kind(dtype);
    const size_t size = dtensor_dtype_size(dtype);

    if (terms->n == 1 || size < 2)
        return false;
    if (terms->op == DTENSOR_MAX || terms->op == DTENSOR_MIN)
        return kind == DTN_DTYPE_SIGNED || dtn_dtype_is_float(dtype);
    return kind == DTN_DTYPE_SIGNED
        || (dtn_dtype_is_float(dtype) && size >= 4
            && (terms->n & (terms->n - 1)) == 0);
}

/* A replica becomes equal terms.  Let them differ: with equal ones the maximum
 * of the negatives would be the negative of the maximum.  The least of two
 * tensors that are drawn one after the other are on different ranks.
 */
static void terms_differ(struct dtensor *t)
{
    static size_t ndrawn;
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    const struct terms terms = terms_of(spec);
    const size_t n = dtensor_local_bytes(t) / dtensor_dtype_size(spec->dtype);
    unsigned char *local = dtensor_to_local(t);

    ndrawn++;
    for (size_t k = 0; k < n && terms_may_differ(&terms, spec->dtype); k++)
        dtn_store(spec->dtype, local, k, dtn_load(spec->dtype, local, k)
                                         + term_change(&terms, k, ndrawn));
}

int draw_tensor(const struct whole *w, const struct dtensor_spec *spec,
                struct dtensor **tp, struct dtensor_error *err)
{
    static unsigned char full[WHOLE_MAX * 16];
    int rc;

    for (int64_t k = 0; k < whole_count(w); k++)
        dtn_store(w->dtype, full, (size_t)k, w->at[k]);
    rc = dtensor_distribute(spec, full, -1, tp, err);
    if (rc == 0)
        terms_differ(*tp);
    return rc;
}

const char *draw_words(const struct dtensor_op_call *call,
                       const struct dtensor_spec spec[])
{
    static char text[1000];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", call->op);

    for (int i = 0; i < call->nin; i++) {
        text[at++] = ' ';
        at += (size_t)dtensor_spec_format(&spec[i], text + at,
                                          sizeof text - at);
    }
    return text;
}
