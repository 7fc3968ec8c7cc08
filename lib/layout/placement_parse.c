/* placement_parse.c - placements read from text: S(0), R, P(sum)
 *
 * For a mesh of two dimensions and a matrix, "S(-1),P" is S(1) on the first
 * mesh dimension and P(sum) on the second.  The grammar has one word for each
 * mesh dimension:
 *
 *   R  S(dim)  S(dim:length,...)  SS(dim,factor)  C(dim,block)  HT(dim)  P
 *   P(reduction)
 *
 * The two forms that PyTorch prints are read too.  A spec has no commas,
 * _S(dim, factor) for SS, P(product), and brackets that show which shard of a
 * dimension comes first: S(0)[1]S(0)[0]R on 4 x 2 x 2 is SS(0,2),S(0),R.  A
 * tensor shows a tuple such as (_StridedShard(dim=0, sf=2), Shard(dim=0),
 * Replicate()), which means the same.
 *
 * Every error quotes the word, its place and the mesh, and suggests what was
 * meant: S(0) for Shard(0) and for s0.
 */
#include "layout/placement.h"
#include "base/compiler.h"
#include "base/error.h"
#include "layout/lengths.h"
#include "layout/placement_word.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Read a number of at most 2^63-1 with spaces around it, and the character
 * after it.
 */
static bool placement_number(const char **atp, int64_t *valuep)
{
    const char *p = *atp + strspn(*atp, " ");
    bool negative = *p == '-';
    int64_t value = 0;

    p += negative;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++) {
        if (value > (INT64_MAX - (*p - '0')) / 10)
            return false;
        value = 10 * value + (*p - '0');
    }
    *valuep = negative ? -value : value;
    *atp = p + strspn(p, " ");
    return true;
}

/* If `word` is at *atp, move *atp past it and the spaces before it. */
static bool placement_skip(const char **atp, const char *word)
{
    const char *p = *atp + strspn(*atp, " ");

    if (strncmp(p, word, strlen(word)) != 0)
        return false;
    *atp = p + strlen(word);
    return true;
}

static int placement_dim(const struct dtn_placement_word *w, int64_t value,
                         int *dimp, struct dtensor_error *err)
{
    if (value < -w->ndim || value >= w->ndim)
        return dtn_fail(err, DTENSOR_EINVAL, DTN_WORD ", but the tensor has %d "
                        "dimensions%s", DTN_WORD_ARGS(w), w->ndim,
                        w->ndim ? "" : " (a scalar cannot be sharded)");
    *dimp = (int)(value < 0 ? value + w->ndim : value);
    return 0;
}

/* "3,5,2)": one length for each rank along the mesh dimension. */
static int placement_sizes(const struct dtn_placement_word *w, const char *at,
                           const int64_t **sizesp, struct dtensor_error *err)
{
    const int n = w->mesh->size[w->number - 1];
    int64_t *list = calloc((size_t)n, sizeof *list), value;
    int count = 0, rc = 0;

    if (!list)
        return dtn_fail_nomem(err, "placements", (size_t)n * sizeof *list);
    for (at--; rc == 0 && at < w->end - 1; count++) {
        at++;
        if (!placement_number(&at, &value) || value < 0 ||
            (*at != ',' && at != w->end - 1))
            rc = dtn_fail(err, DTENSOR_EINVAL, DTN_WORD "; expected "
                          "S(dimension:length,...), such as S(0:3,5,2)",
                          DTN_WORD_ARGS(w));
        else if (count < n)
            list[count] = value;
    }
    if (rc == 0 && count != n)
        rc = dtn_fail(err, DTENSOR_EINVAL, DTN_WORD " with %d lengths, but "
                      "mesh dimension %d has %d ranks (give one for each)",
                      DTN_WORD_ARGS(w), count, w->number - 1, n);
    if (rc == 0)
        rc = dtn_lengths_keep(w->mesh->ctx, list, n, sizesp, err);
    free(list);
    return rc;
}

/* S, perhaps with lengths, and HT. */
static int placement_parse_shard(const struct dtn_placement_word *w,
                                 const char *at,
                                 enum dtensor_placement_kind kind,
                                 struct dtensor_placement *placement,
                                 struct dtensor_error *err)
{
    const char *name = kind == DTENSOR_SHARD ? "S" : "HT";
    struct dtensor_placement read = { .kind = kind };
    int64_t dim;
    int rc;

    if (!placement_number(&at, &dim) ||
        (at != w->end - 1 && (*at != ':' || kind != DTENSOR_SHARD)))
        return dtn_fail(err, DTENSOR_EINVAL, DTN_WORD "; expected "
                        "%s(dimension), such as %s(0)", DTN_WORD_ARGS(w), name,
                        name);
    rc = placement_dim(w, dim, &read.dim, err);
    if (rc == 0 && *at == ':')
        rc = placement_sizes(w, at + 1, &read.sizes, err);
    if (rc == 0)
        *placement = read;
    return rc;
}

/* SS and C: a dimension, then the text `second`, then the factor or the block.
 */
static int placement_parse_block(const struct dtn_placement_word *w,
                                 const char *at, const char *second,
                                 enum dtensor_placement_kind kind,
                                 struct dtensor_placement *placement,
                                 struct dtensor_error *err)
{
    struct dtensor_placement read = { .kind = kind };
    const char *usage = kind == DTENSOR_STRIDED
        ? "SS(dimension,factor), such as SS(0,2)"
        : "C(dimension,block), such as C(0,64)";
    int64_t dim;
    bool good = placement_number(&at, &dim) && *at++ == ',' &&
                placement_skip(&at, second) &&
                placement_number(&at, &read.block) && at == w->end - 1;
    int rc;

    if (!good)
        return dtn_fail(err, DTENSOR_EINVAL, DTN_WORD "; expected %s",
                        DTN_WORD_ARGS(w), usage);
    if (read.block < 1)
        return dtn_fail(err, DTENSOR_EINVAL, DTN_WORD "; a %s of 1 or more is "
                        "expected", DTN_WORD_ARGS(w),
                        kind == DTENSOR_STRIDED ? "factor" : "block");
    rc = placement_dim(w, dim, &read.dim, err);
    if (rc == 0)
        *placement = read;
    return rc;
}

static int placement_parse_partial(const struct dtn_placement_word *w,
                                   const char *name,
                                   struct dtensor_placement *placement,
                                   struct dtensor_error *err)
{
    struct dtensor_placement read = { .kind = DTENSOR_PARTIAL };
    char inner[24], advice[120];

    snprintf(inner, sizeof inner, "%.*s", (int)(w->end - 1 - name), name);
    if (dtensor_redop_parse(inner, &read.op, NULL) != 0)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" "
                        "has the unknown reduction \"%s\"; %s", w->number,
                        w->text, inner,
                        dtensor_advise(inner, dtn_placement_reductions, NULL,
                                       advice, sizeof advice));
    *placement = read;
    return 0;
}

/* Remove "[1]" from the end of a word. */
static int placement_take_place(struct dtn_placement_word *w,
                                struct dtensor_error *err)
{
    const struct dtn_placement_word whole = *w;
    const char *at = w->end;
    int64_t place;

    w->place = -1;
    if (w->end == w->begin || w->end[-1] != ']')
        return 0;
    while (at > w->begin && *at != '[')
        at--;
    w->end = at++;
    if (!placement_number(&at, &place) || at != whole.end - 1 || place < 0 ||
        place >= DTENSOR_MAX_DIMS || *w->begin != 'S')
        return dtn_fail(err, DTENSOR_EINVAL, DTN_WORD "; brackets say which "
                        "mesh dimension shards first, as in S(0)[1],S(0)[0]",
                        DTN_WORD_ARGS(&whole));
    w->place = (int)place;
    return 0;
}

/* The forms of a placement, ours and PyTorch's: the name, which has no
 * parentheses unless `first` is given, and the text before each of its two
 * numbers.
 */
static const struct placement_form {
    enum dtensor_placement_kind kind;
    const char *name, *first, *second;
} forms[] = {
    { DTENSOR_REPLICATE, "R", NULL, NULL },
    { DTENSOR_REPLICATE, "Replicate()", NULL, NULL },
    { DTENSOR_PARTIAL,   "P", NULL, NULL },
    { DTENSOR_PARTIAL,   "P", "", NULL },
    { DTENSOR_PARTIAL,   "Partial", "", NULL },
    { DTENSOR_SHARD,     "S", "", NULL },
    { DTENSOR_SHARD,     "Shard", "dim=", NULL },
    { DTENSOR_STRIDED,   "SS", "", "" },
    { DTENSOR_STRIDED,   "_S", "", "" },
    { DTENSOR_STRIDED,   "_StridedShard", "dim=", "sf=" },
    { DTENSOR_CYCLIC,    "C", "", "" },
    { DTENSOR_HEADTAIL,  "HT", "", NULL },
};

/* The form of the word, or NULL.  *innerp is then the text of its first number.
 */
static const struct placement_form *
placement_form_of(const struct dtn_placement_word *w, const char **innerp)
{
    for (size_t i = 0; i < DTN_COUNT(forms); i++)
        if (dtn_placement_named(w, forms[i].name,
                                forms[i].first ? innerp : NULL) &&
            (!forms[i].first || placement_skip(innerp, forms[i].first)))
            return &forms[i];
    return NULL;
}

static int placement_parse_word(const struct dtn_placement_word *w,
                                struct dtensor_placement *placement,
                                struct dtensor_error *err)
{
    const char *inner = NULL;
    const struct placement_form *form = placement_form_of(w, &inner);
    char guess[64];

    if (!form)
        return dtn_fail(err, DTENSOR_EINVAL, DTN_WORD "; expected R, "
                        "S(dimension), SS(dimension,factor), "
                        "C(dimension,block), HT(dimension) or P(reduction)%s",
                        DTN_WORD_ARGS(w), dtn_placement_guess(w, guess));
    if (form->second)
        return placement_parse_block(w, inner, form->second, form->kind,
                                     placement, err);
    if (form->kind == DTENSOR_SHARD || form->kind == DTENSOR_HEADTAIL)
        return placement_parse_shard(w, inner, form->kind, placement, err);
    if (form->first)
        return placement_parse_partial(w, inner, placement, err);
    *placement = (struct dtensor_placement){ .kind = form->kind };
    return 0;
}

/* Put the placements in the order that the brackets give; without brackets the
 * order is from left to right.
 */
static int placement_order(struct dtensor_spec *read, int place[],
                           struct dtensor_error *err)
{
    const int n = read->mesh->ndim;
    bool given = false, gives;

    for (int m = 0; m < n; m++)
        given = given || place[m] >= 0;
    for (int d = 0; given && d < read->ndim; d++) {
        int cuts = 0;

        gives = false;
        for (int m = 0; m < n; m++)
            gives = gives || (read->placement[m].dim == d && place[m] >= 0);
        for (int m = 0; m < n && !gives; m++)
            if (read->placement[m].dim == d &&
                dtn_placement_class(&read->placement[m]) == DTENSOR_SHARD)
                place[m] = cuts++;
    }
    return given ? dtensor_spec_set_order(read, place, err) : 0;
}

/* Where the words begin and end.  For a tuple that is inside the parentheses,
 * and before the comma of "(Replicate(),)".
 */
static const char *placement_begin(const char *text, const char **stopp)
{
    const char *begin = text + strspn(text, " ");
    const char *stop = begin + strlen(begin);

    while (stop > begin && stop[-1] == ' ')
        stop--;
    if (stop - begin > 2 && *begin == '(' && stop[-1] == ')') {
        begin++;
        stop--;
        stop -= stop[-1] == ',';
    }
    *stopp = stop;
    return begin;
}

int dtensor_placements_parse(const struct dtensor_mesh *mesh, const char *text,
                             int ndim, struct dtensor_placement placement[],
                             struct dtensor_error *err)
{
    struct dtensor_spec read = { .mesh = mesh, .ndim = ndim };
    int place[DTENSOR_MAX_DIMS];
    struct dtn_placement_word w = { .mesh = mesh, .ndim = ndim, .text = text };
    const char *pos;
    int rc;

    if (!text)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: there are none; "
                        "expected one for each of the %d mesh dimensions, such "
                        "as \"S(0)\" or \"R\"", mesh->ndim);
    if (ndim < 0 || ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: for %d tensor "
                        "dimensions; expected 0 to %d", ndim,
                        DTENSOR_MAX_DIMS);
    pos = placement_begin(text, &w.stop);
    while (dtn_placement_next(&w, &pos)) {
        if (w.number > mesh->ndim)
            continue;
        rc = placement_take_place(&w, err);
        if (rc == 0)
            rc = placement_parse_word(&w, &read.placement[w.number - 1], err);
        if (rc != 0)
            return rc;
        place[w.number - 1] = w.place;
    }
    if (w.number != mesh->ndim)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: \"%.80s\" has %d, "
                        "but the mesh has %d dimensions (give one for each)",
                        text, w.number, mesh->ndim);
    rc = placement_order(&read, place, err);
    if (rc == 0)
        memcpy(placement, read.placement,
               (size_t)mesh->ndim * sizeof placement[0]);
    return rc;
}
