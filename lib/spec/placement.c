/* placement.c - S(0), R, P(sum): text, checks, and specs made of them
 *
 * "S(-1),P" for a mesh of two dimensions and a matrix is S(1) on the first and
 * P(sum) on the second.  Every refusal quotes the word, its place and the mesh,
 * and guesses what was meant: for Shard(0) and s0 alike, S(0).
 */
#include "spec/spec.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --------------------------------------------------------------- words --- */

#define WORD_MAX 40

/* Take the next word of `text` from *posp on, spaces trimmed; false at the end.
 * Longer words are cut, which no placement survives.
 */
static bool placement_word(const char *text, size_t *posp, char word[WORD_MAX])
{
    const char *begin, *end;

    if (*posp > strlen(text))
        return false;
    begin = text + *posp;
    end = begin + strcspn(begin, ",");
    *posp = (size_t)(end - text) + 1;
    while (begin < end && *begin == ' ')
        begin++;
    while (begin < end && end[-1] == ' ')
        end--;
    snprintf(word, WORD_MAX, "%.*s", (int)(end - begin), begin);
    return true;
}

/* The text between the parentheses of "X(text)" into `inner`; false when the
 * word has no such form.
 */
static bool placement_inner(const char *word, char inner[WORD_MAX])
{
    size_t n = strlen(word);

    if (n < 4 || word[1] != '(' || word[n - 1] != ')')
        return false;
    snprintf(inner, WORD_MAX, "%.*s", (int)(n - 3), word + 2);
    return true;
}

/* What someone who wrote `word` may have meant; "" for no idea. */
static const char *placement_guess(const char *word, char guess[WORD_MAX])
{
    size_t letters = 0, from;
    int dim;

    while (isalpha((unsigned char)word[letters]))
        letters++;
    from = letters + strcspn(word + letters, "-0123456789");
    dim = atoi(word + from);
    guess[0] = '\0';
    if (strncasecmp(word, "shard", letters > 5 ? 5 : letters) == 0 &&
        letters > 0)
        snprintf(guess, WORD_MAX, " (did you mean S(%d)?)", dim);
    else if (strncasecmp(word, "replicated", letters) == 0 && letters > 0)
        snprintf(guess, WORD_MAX, " (did you mean R?)");
    else if (strncasecmp(word, "partial", letters) == 0 && letters > 0)
        snprintf(guess, WORD_MAX, " (did you mean P(sum)?)");
    return guess;
}

/* ------------------------------------------------------- reading a text --- */

/* One word: where it stands, for messages. */
struct placement_at {
    const char *text;
    const char *word;
    int number;                        /* from 1                              */
};

static int placement_parse_shard(const struct placement_at *at,
                                 const char *inner, int ndim,
                                 struct dtensor_placement *placement,
                                 struct dtensor_error *err)
{
    bool negative = inner[0] == '-';
    uint64_t value;
    int dim;

    if (!dtn_parse_u64(inner + negative, false, INT_MAX, &value))
        return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" "
                        "is \"%s\"; expected S(dimension), such as S(0)",
                        at->number, at->text, at->word);
    dim = negative ? ndim - (int)value : (int)value;
    if (dim < 0 || dim >= ndim)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" "
                        "is \"%s\", but the tensor has %d dimensions%s",
                        at->number, at->text, at->word, ndim,
                        ndim ? "" : " (a scalar cannot be sharded)");
    *placement = (struct dtensor_placement){ DTENSOR_SHARD, dim, DTENSOR_SUM };
    return 0;
}

static int placement_parse_partial(const struct placement_at *at,
                                   const char *inner,
                                   struct dtensor_placement *placement,
                                   struct dtensor_error *err)
{
    static const char *const names[] = {
        "sum", "avg", "prod", "min", "max", "band", "bor", "bxor", NULL
    };
    const char *near;
    enum dtensor_redop op;

    if (dtensor_redop_parse(inner, &op, NULL) == 0) {
        *placement = (struct dtensor_placement){ DTENSOR_PARTIAL, 0, op };
        return 0;
    }
    near = dtn_nearest(inner, names);
    if (near)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" "
                        "has the unknown reduction \"%s\" (did you mean "
                        "P(%s)?)", at->number, at->text, inner, near);
    return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" has "
                    "the unknown reduction \"%s\"; expected sum, avg, prod, "
                    "min, max, band, bor or bxor", at->number, at->text, inner);
}

static int placement_parse_word(const struct placement_at *at, int ndim,
                                struct dtensor_placement *placement,
                                struct dtensor_error *err)
{
    char inner[WORD_MAX], guess[WORD_MAX];

    if (strcmp(at->word, "R") == 0) {
        *placement = (struct dtensor_placement){ DTENSOR_REPLICATE, 0,
                                                 DTENSOR_SUM };
        return 0;
    }
    if (strcmp(at->word, "P") == 0)
        return placement_parse_partial(at, "sum", placement, err);
    if (placement_inner(at->word, inner) && at->word[0] == 'S')
        return placement_parse_shard(at, inner, ndim, placement, err);
    if (placement_inner(at->word, inner) && at->word[0] == 'P')
        return placement_parse_partial(at, inner, placement, err);
    return dtn_fail(err, DTENSOR_EINVAL, "placements: word %d of \"%.80s\" is "
                    "\"%s\"; expected R, S(dimension) or P(reduction)%s",
                    at->number, at->text, at->word,
                    placement_guess(at->word, guess));
}

int dtensor_placements_parse(const char *text, int n, int ndim,
                             struct dtensor_placement placement[],
                             struct dtensor_error *err)
{
    struct dtensor_placement read[DTENSOR_MAX_DIMS];
    char word[WORD_MAX];
    struct placement_at at = { text, word, 0 };
    size_t pos = 0;
    int rc;

    if (n < 1 || n > DTENSOR_MAX_DIMS || ndim < 0 || ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: %d of them for %d "
                        "tensor dimensions; expected at most %d of each", n,
                        ndim, DTENSOR_MAX_DIMS);
    while (placement_word(text, &pos, word)) {
        if (at.number++ >= n)
            continue;
        rc = placement_parse_word(&at, ndim, &read[at.number - 1], err);
        if (rc != 0)
            return rc;
    }
    if (at.number != n)
        return dtn_fail(err, DTENSOR_EINVAL, "placements: \"%.80s\" has %d, "
                        "but the mesh has %d dimensions (give one for each)",
                        text, at.number, n);
    memcpy(placement, read, (size_t)n * sizeof read[0]);
    return 0;
}

/* ------------------------------------------------------- writing a text --- */

static int placement_format_one(const struct dtensor_placement *p, char *text,
                                size_t size)
{
    switch (p->kind) {
    case DTENSOR_SHARD:
        return snprintf(text, size, "S(%d)", p->dim);
    case DTENSOR_PARTIAL:
        return snprintf(text, size, "P(%s)", dtensor_redop_name(p->op));
    case DTENSOR_REPLICATE:
        break;
    }
    return snprintf(text, size, "R");
}

int dtensor_placements_format(const struct dtensor_placement placement[], int n,
                              char *text, size_t size)
{
    char one[WORD_MAX];
    size_t used = 0;

    if (size > 0)
        text[0] = '\0';
    for (int m = 0; m < n; m++) {
        placement_format_one(&placement[m], one, sizeof one);
        used += (size_t)snprintf(used < size ? text + used : NULL,
                                 used < size ? size - used : 0, "%s%s",
                                 m ? "," : "", one);
    }
    return (int)used;
}

char *dtn_spec_format(const struct dtensor_spec *spec, char *buf, size_t size)
{
    char placements[DTENSOR_MAX_DIMS * 12], mesh[256];
    size_t used;

    used = (size_t)snprintf(buf, size, "%s[", dtensor_dtype_name(spec->dtype));
    for (int d = 0; d < spec->ndim && used < size; d++)
        used += (size_t)snprintf(buf + used, size - used, "%s%lld",
                                 d ? "," : "", (long long)spec->shape[d]);
    dtensor_placements_format(spec->placement, spec->mesh->ndim, placements,
                              sizeof placements);
    if (used < size)
        snprintf(buf + used, size - used, "]  %s  on %s", placements,
                 dtn_mesh_format(spec->mesh, mesh, sizeof mesh));
    return buf;
}

/* --------------------------------------------------------------- specs --- */

int dtn_spec_partial(const struct dtensor_spec *spec)
{
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            return (int)spec->placement[m].op;
    return -1;
}

/* The shape, and that neither the bytes nor any stride overflow: sizes of 0
 * count as 1.
 */
static int spec_check_shape(const struct dtensor_spec *spec,
                            struct dtensor_error *err)
{
    size_t bytes;

    if (!dtn_dtype_ok(spec->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "spec: dtype %d is none",
                        (int)spec->dtype);
    if (spec->ndim < 0 || spec->ndim > DTENSOR_MAX_DIMS)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: %d tensor dimensions; "
                        "expected 0 to %d", spec->ndim, DTENSOR_MAX_DIMS);
    bytes = dtensor_dtype_size(spec->dtype);
    for (int d = 0; d < spec->ndim; d++) {
        int64_t size = spec->shape[d];

        if (size < 0)
            return dtn_fail(err, DTENSOR_EINVAL, "spec: size %lld of tensor "
                            "dimension %d; expected 0 or more",
                            (long long)size, d);
        if (!dtn_mul_size(bytes, size ? (size_t)size : 1, &bytes) ||
            bytes > INT64_MAX)
            return dtn_fail(err, DTENSOR_EINVAL, "spec: sizes up to "
                            "dimension %d make over 2^63 bytes of %s", d,
                            dtensor_dtype_name(spec->dtype));
    }
    return 0;
}

static int spec_check_placement(const struct dtensor_spec *spec, int m,
                                struct dtensor_error *err)
{
    const struct dtensor_placement *p = &spec->placement[m];
    int op = dtn_spec_partial(spec);

    if ((unsigned)p->kind > DTENSOR_PARTIAL)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is of kind "
                        "%d, which is none", m, (int)p->kind);
    if (p->kind == DTENSOR_SHARD && (p->dim < 0 || p->dim >= spec->ndim))
        return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is S(%d), but "
                        "the tensor has %d dimensions", m, p->dim, spec->ndim);
    if (p->kind != DTENSOR_PARTIAL)
        return 0;
    if (!dtn_redop_ok(p->op, spec->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "spec: placement %d is P(%s), "
                        "which %s elements do not have", m,
                        dtensor_redop_name(p->op),
                        dtensor_dtype_name(spec->dtype));
    if ((int)p->op != op)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: P(%s) and P(%s) in one "
                        "tensor (reduce one of them first)",
                        dtensor_redop_name((enum dtensor_redop)op),
                        dtensor_redop_name(p->op));
    return 0;
}

int dtensor_spec_check(const struct dtensor_spec *spec,
                       struct dtensor_error *err)
{
    int rc;

    if (!spec->mesh)
        return dtn_fail(err, DTENSOR_EINVAL, "spec: it has no mesh");
    rc = spec_check_shape(spec, err);
    for (int m = 0; rc == 0 && m < spec->mesh->ndim; m++)
        rc = spec_check_placement(spec, m, err);
    return rc;
}

int dtensor_spec_init(struct dtensor_spec *spec, struct dtensor_ctx *ctx,
                      const char *mesh, const char *placements,
                      enum dtensor_dtype dtype, int ndim,
                      const int64_t shape[], struct dtensor_error *err)
{
    struct dtensor_spec made = { .dtype = dtype, .ndim = ndim };
    int rc;

    rc = dtensor_mesh_find(ctx, mesh, &made.mesh, err);
    if (rc != 0)
        return rc;
    if (ndim > 0 && ndim <= DTENSOR_MAX_DIMS)
        memcpy(made.shape, shape, (size_t)ndim * sizeof shape[0]);
    rc = spec_check_shape(&made, err);
    if (rc == 0)
        rc = dtensor_placements_parse(placements, made.mesh->ndim, ndim,
                                      made.placement, err);
    if (rc == 0)
        rc = dtensor_spec_check(&made, err);
    if (rc == 0)
        *spec = made;
    return rc;
}
