/* placement.c - S(0), R, P(sum) as text
 *
 * "S(-1),P" for a mesh of two dimensions and a matrix is S(1) on the first and
 * P(sum) on the second.  The grammar, one word for each mesh dimension:
 *
 *   R  S(dim)  S(dim:length,...)  SS(dim,factor)  C(dim,block)  P  P(reduction)
 *
 * Every refusal quotes the word, its place and the mesh, and guesses what was
 * meant: for Shard(0) and s0 alike, S(0).
 */
#include "spec/spec.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --------------------------------------------------------------- words --- */

/* One word of the text: where it stands, for reading it and for messages. */
struct placement_word {
    const struct dtensor_mesh *mesh;
    int ndim;                          /* of the tensor                       */
    const char *text;                  /* all words                           */
    const char *begin, *end;           /* this one, without spaces around     */
    int number;                        /* from 1                              */
};

/* "word 2 of "R,s0" is "s0"", the head of most messages; both are cut. */
#define WORD_FMT "placements: word %d of \"%.80s\" is \"%.*s\""
#define WORD_ARGS(w) (w)->number, (w)->text, placement_word_length(w), (w)->begin

static int placement_word_length(const struct placement_word *w)
{
    return w->end - w->begin < 40 ? (int)(w->end - w->begin) : 40;
}

/* Find the next word after *posp: up to a comma outside parentheses.  False at
 * the end.
 */
static bool placement_next(struct placement_word *w, const char **posp)
{
    const char *p = *posp;
    int depth = 0;

    if (!p)
        return false;
    w->begin = p + strspn(p, " ");
    for (; *p && (*p != ',' || depth > 0); p++) {
        depth += *p == '(';
        depth -= *p == ')' && depth > 0;
    }
    *posp = *p ? p + 1 : NULL;
    while (p > w->begin && p[-1] == ' ')
        p--;
    w->end = p < w->begin ? w->begin : p;
    w->number++;
    return true;
}

/* Is the word `name`, or, when `inner` is wanted, "name(...)"?  *inner is then
 * what follows the parenthesis, which ends at w->end - 1.
 */
static bool placement_is(const struct placement_word *w, const char *name,
                         const char **inner)
{
    size_t n = strlen(name), length = (size_t)(w->end - w->begin);

    if (length < n || memcmp(w->begin, name, n) != 0)
        return false;
    if (!inner)
        return length == n;
    if (length < n + 3 || w->begin[n] != '(' || w->end[-1] != ')')
        return false;
    *inner = w->begin + n + 1;
    return true;
}

/* What someone who wrote the word may have meant; "" for no idea. */
static const char *placement_guess(const struct placement_word *w,
                                   char guess[64])
{
    const char *p = w->begin + strspn(w->begin, "_");
    size_t letters = 0, digits;
    long dim;

    while (p + letters < w->end && isalpha((unsigned char)p[letters]))
        letters++;
    digits = letters + strcspn(p + letters, "-0123456789");
    dim = p + digits < w->end ? strtol(p + digits, NULL, 10) : 0;
    guess[0] = '\0';
    if (letters == 0)
        return guess;
    if (p > w->begin || strncasecmp(p, "stridedshard", letters > 1 ? letters
                                                                    : 99) == 0)
        snprintf(guess, 64, " (did you mean SS(%ld,factor)?)", dim);
    else if (strncasecmp(p, "shard", letters > 5 ? 5 : letters) == 0)
        snprintf(guess, 64, " (did you mean S(%ld)?)", dim);
    else if (strncasecmp(p, "replicated", letters) == 0)
        snprintf(guess, 64, " (did you mean R?)");
    else if (strncasecmp(p, "partial", letters) == 0)
        snprintf(guess, 64, " (did you mean P(sum)?)");
    else if (strncasecmp(p, "cyclic", letters) == 0)
        snprintf(guess, 64, " (did you mean C(%ld,block)?)", dim);
    return guess;
}

/* ------------------------------------------------------- reading a text --- */

/* Read a number, at most 2^63-1, spaces around it, and what follows it. */
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

static int placement_dim(const struct placement_word *w, int64_t value,
                         int *dimp, struct dtensor_error *err)
{
    if (value < -w->ndim || value >= w->ndim)
        return dtn_fail(err, DTENSOR_EINVAL, WORD_FMT ", but the tensor has %d "
                        "dimensions%s", WORD_ARGS(w), w->ndim,
                        w->ndim ? "" : " (a scalar cannot be sharded)");
    *dimp = (int)(value < 0 ? value + w->ndim : value);
    return 0;
}

/* "3,5,2)": one length for each rank along the mesh dimension. */
static int placement_sizes(const struct placement_word *w, const char *at,
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
            rc = dtn_fail(err, DTENSOR_EINVAL, WORD_FMT "; expected "
                          "S(dimension:length,...), such as S(0:3,5,2)",
                          WORD_ARGS(w));
        else if (count < n)
            list[count] = value;
    }
    if (rc == 0 && count != n)
        rc = dtn_fail(err, DTENSOR_EINVAL, WORD_FMT " with %d lengths, but "
                      "mesh dimension %d has %d ranks (give one for each)",
                      WORD_ARGS(w), count, w->number - 1, n);
    if (rc == 0)
        rc = dtn_lengths_keep(w->mesh->ctx, list, n, sizesp, err);
    free(list);
    return rc;
}

static int placement_parse_shard(const struct placement_word *w,
                                 const char *at,
                                 struct dtensor_placement *placement,
                                 struct dtensor_error *err)
{
    struct dtensor_placement read = { .kind = DTENSOR_SHARD };
    int64_t dim;
    int rc;

    if (!placement_number(&at, &dim) || (*at != ':' && at != w->end - 1))
        return dtn_fail(err, DTENSOR_EINVAL, WORD_FMT "; expected "
                        "S(dimension), such as S(0)", WORD_ARGS(w));
    rc = placement_dim(w, dim, &read.dim, err);
    if (rc == 0 && *at == ':')
        rc = placement_sizes(w, at + 1, &read.sizes, err);
    if (rc == 0)
        *placement = read;
    return rc;
}

/* SS and C: a dimension, and the factor or the block. */
static int placement_parse_block(const struct placement_word *w,
                                 const char *at,
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
                placement_number(&at, &read.block) && at == w->end - 1;
    int rc;

    if (!good)
        return dtn_fail(err, DTENSOR_EINVAL, WORD_FMT "; expected %s",
                        WORD_ARGS(w), usage);
    if (read.block < 1)
        return dtn_fail(err, DTENSOR_EINVAL, WORD_FMT "; a %s of 1 or more is "
                        "expected", WORD_ARGS(w),
                        kind == DTENSOR_STRIDED ? "factor" : "block");
    rc = placement_dim(w, dim, &read.dim, err);
    if (rc == 0)
        *placement = read;
    return rc;
}

static int placement_parse_partial(const struct placement_word *w,
                                   const char *name,
                                   struct dtensor_placement *placement,
                                   struct dtensor_error *err)
{
    static const char *const names[] = {
        "sum", "avg", "prod", "min", "max", "band", "bor", "bxor", NULL
    };
    struct dtensor_placement read = { .kind = DTENSOR_PARTIAL };
    char inner[24];
    const char *near;

    snprintf(inner, sizeof inner, "%.*s", (int)(w->end - 1 - name), name);
    if (dtensor_redop_parse(inner, &read.op, NULL) == 0) {
        *placement = read;
        return 0;
    }
    near = dtn_nearest(inner, names);
    if (near)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" "
                        "has the unknown reduction \"%s\" (did you mean "
                        "P(%s)?)", w->number, w->text, inner, near);
    return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" has "
                    "the unknown reduction \"%s\"; expected sum, avg, prod, "
                    "min, max, band, bor or bxor", w->number, w->text, inner);
}

static int placement_parse_word(const struct placement_word *w,
                                struct dtensor_placement *placement,
                                struct dtensor_error *err)
{
    const char *inner;
    char guess[64];

    if (placement_is(w, "R", NULL))
        *placement = (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
    else if (placement_is(w, "P", NULL))
        *placement = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL };
    else if (placement_is(w, "S", &inner))
        return placement_parse_shard(w, inner, placement, err);
    else if (placement_is(w, "SS", &inner))
        return placement_parse_block(w, inner, DTENSOR_STRIDED, placement, err);
    else if (placement_is(w, "C", &inner))
        return placement_parse_block(w, inner, DTENSOR_CYCLIC, placement, err);
    else if (placement_is(w, "P", &inner))
        return placement_parse_partial(w, inner, placement, err);
    else
        return dtn_fail(err, DTENSOR_EINVAL, WORD_FMT "; expected R, "
                        "S(dimension), SS(dimension,factor), "
                        "C(dimension,block) or P(reduction)%s", WORD_ARGS(w),
                        placement_guess(w, guess));
    return 0;
}

int dtensor_placements_parse(const struct dtensor_mesh *mesh, const char *text,
                             int ndim, struct dtensor_placement placement[],
                             struct dtensor_error *err)
{
    struct dtensor_placement read[DTENSOR_MAX_DIMS];
    struct placement_word w = { .mesh = mesh, .ndim = ndim, .text = text };
    const char *pos = text;
    int rc;

    if (ndim < 0 || ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: for %d tensor "
                        "dimensions; expected 0 to %d", ndim,
                        DTENSOR_MAX_DIMS);
    while (placement_next(&w, &pos)) {
        if (w.number > mesh->ndim)
            continue;
        rc = placement_parse_word(&w, &read[w.number - 1], err);
        if (rc != 0)
            return rc;
    }
    if (w.number != mesh->ndim)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: \"%.80s\" has %d, "
                        "but the mesh has %d dimensions (give one for each)",
                        text, w.number, mesh->ndim);
    memcpy(placement, read, (size_t)mesh->ndim * sizeof read[0]);
    return 0;
}

/* ------------------------------------------------------- writing a text --- */

/* Text in a buffer that may be too short: what it would need is counted. */
struct placement_text {
    char *text;
    size_t size;
    size_t used;
};

static void placement_say(struct placement_text *t, const char *fmt, ...)
    DTN_PRINTF(2, 3);

static void placement_say(struct placement_text *t, const char *fmt, ...)
{
    const size_t room = t->used < t->size ? t->size - t->used : 0;
    va_list ap;

    va_start(ap, fmt);
    t->used += (size_t)vsnprintf(room ? t->text + t->used : NULL, room, fmt,
                                 ap);
    va_end(ap);
}

static void placement_say_one(struct placement_text *t,
                              const struct dtensor_placement *p, int n)
{
    switch (p->kind) {
    case DTENSOR_REPLICATE:
        placement_say(t, "R");
        break;
    case DTENSOR_PARTIAL:
        placement_say(t, "P(%s)", dtensor_redop_name(p->op));
        break;
    case DTENSOR_STRIDED:
        placement_say(t, "SS(%d,%lld)", p->dim, (long long)p->block);
        break;
    case DTENSOR_CYCLIC:
        placement_say(t, "C(%d,%lld)", p->dim, (long long)p->block);
        break;
    case DTENSOR_SHARD:
        placement_say(t, "S(%d", p->dim);
        for (int r = 0; p->sizes && r < n; r++)
            placement_say(t, "%s%lld", r ? "," : ":", (long long)p->sizes[r]);
        placement_say(t, ")");
        break;
    }
}

int dtensor_placements_format(const struct dtensor_mesh *mesh,
                              const struct dtensor_placement placement[],
                              char *text, size_t size)
{
    struct placement_text t = { text, size, 0 };

    if (size > 0)
        text[0] = '\0';
    for (int m = 0; m < mesh->ndim; m++) {
        placement_say(&t, "%s", m ? "," : "");
        placement_say_one(&t, &placement[m], mesh->size[m]);
    }
    return (int)t.used;
}

/* ------------------------------------------------------------- comparing --- */

enum dtensor_placement_kind
dtn_placement_class(const struct dtensor_placement *p)
{
    switch (p->kind) {
    case DTENSOR_SHARD: case DTENSOR_STRIDED: case DTENSOR_CYCLIC:
        return DTENSOR_SHARD;
    case DTENSOR_PARTIAL:
        return DTENSOR_PARTIAL;
    case DTENSOR_REPLICATE:
        break;
    }
    return DTENSOR_REPLICATE;
}

bool dtn_placement_equal(const struct dtensor_placement *a,
                         const struct dtensor_placement *b, int n)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DTENSOR_REPLICATE:
        break;
    case DTENSOR_PARTIAL:
        return a->op == b->op;
    case DTENSOR_STRIDED: case DTENSOR_CYCLIC:
        return a->dim == b->dim && a->block == b->block;
    case DTENSOR_SHARD:
        if (a->dim != b->dim || !a->sizes != !b->sizes)
            return false;
        return a->sizes == b->sizes ||
               memcmp(a->sizes, b->sizes, (size_t)n * sizeof a->sizes[0]) == 0;
    }
    return true;
}
