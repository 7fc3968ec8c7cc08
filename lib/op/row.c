/* row.c - what an operator accepts along one mesh dimension
 *
 * A row says how each input and output lies along one mesh dimension.  The
 * letters of "mk,kn->mn" make three of them,
 *
 *   k sharded   S(1),S(0) -> P(sum)
 *   m sharded   S(0),R    -> S(0)
 *   n sharded   R,S(1)    -> S(1)
 *
 * the terms of the rule those for inputs that are terms, "s.>s" P(sum),R ->
 * P(sum); and all whole is always allowed.  Rows of several mesh dimensions are
 * combined in combine.c.
 */
#include "op/row.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static struct dtn_rule_row *row_add(struct dtn_rowset *rows)
{
    struct dtn_rule_row *row = &rows->row[rows->n];

    *row = (struct dtn_rule_row){ .shards = false };
    rows->n += rows->n < DTN_ROWS_MAX - 1;
    return row;
}

/* -------------------------------------------------------------- letters --- */

/* The dimension of an operand that has this letter; -1: none. */
static int operand_dim(const struct dtn_operand *operand, int letter)
{
    for (int d = 0; d < operand->ndim; d++)
        if (operand->letter[d] == letter)
            return d;
    return -1;
}

static struct dtn_row_place place_shard(int dim)
{
    return (struct dtn_row_place){
        .kind = dim >= 0 ? DTENSOR_SHARD : DTENSOR_REPLICATE,
        .dim = dim >= 0 ? dim : 0 };
}

/* Which terms of the sum have a factor with this letter: a bit set. */
static unsigned letter_sums(const struct dtn_signature *sig, int letter)
{
    unsigned sums = 0;

    for (int i = 0; i < sig->nin; i++)
        if (operand_dim(&sig->in[i], letter) >= 0)
            sums |= 1u << sig->in[i].sum;
    return sums;
}

/* Is the letter missing in some output, which is then a term? */
static bool letter_reduced(const struct dtn_signature *sig, int letter)
{
    for (int i = 0; i < sig->nout; i++)
        if (!sig->out[i].constant && operand_dim(&sig->out[i], letter) < 0)
            return true;
    return false;
}

/* Is the sum of parts rounded?  Extremes are exact, and so are integers. */
static bool sums_round(const struct dtn_signature *sig)
{
    const enum dtensor_redop op = sig->rule->reduce;

    for (int i = 0; i < sig->nin; i++)
        if (dtn_dtype_is_float(sig->call->in[i].dtype))
            return op == DTENSOR_SUM || op == DTENSOR_AVG || op == DTENSOR_PROD;
    return false;
}

/* Are neighbouring indices needed where this letter is sharded? */
static bool letter_plain(const struct dtn_signature *sig, int letter)
{
    return sig->rule->flags & DTN_RULE_PLAIN &&
           (sig->ndims == 0 ||
            dtn_signature_names(sig, operand_dim(&sig->in[0], letter)));
}

/* The row in which one letter is sharded.  What is added to a term has to be a
 * term too, or it would be added once for each rank.
 */
static void row_letter(const struct dtn_signature *sig, int letter,
                       struct dtn_rowset *rows)
{
    const struct dtn_row_place term = { .kind = DTENSOR_PARTIAL,
                                    .op = sig->rule->reduce };
    const unsigned sums = letter_sums(sig, letter);
    const bool reduced = letter_reduced(sig, letter);
    struct dtn_rule_row *row = row_add(rows);

    row->shards = true;
    row->plain = letter_plain(sig, letter);
    for (int i = 0; i < sig->nin; i++) {
        row->in[i] = place_shard(operand_dim(&sig->in[i], letter));
        if (reduced && !(sums >> sig->in[i].sum & 1))
            row->in[i] = term;
    }
    for (int i = 0; i < sig->nout; i++) {
        row->out[i] = place_shard(operand_dim(&sig->out[i], letter));
        if (row->out[i].kind == DTENSOR_REPLICATE && !sig->out[i].constant)
            row->out[i] = term;
    }
}

/* ---------------------------------------------------------------- terms --- */

/* Reductions that a letter of `terms` stands for. */
static const char *term_letters(char letter)
{
    return letter == 'L' ? "sa" : letter == 'A' ? "sanx" : NULL;
}

static struct dtn_row_place term_place(char letter)
{
    static const struct { char letter; enum dtensor_redop op; } ops[] = {
        { 's', DTENSOR_SUM }, { 'a', DTENSOR_AVG }, { 'x', DTENSOR_MAX },
        { 'n', DTENSOR_MIN }, { 'p', DTENSOR_PROD }
    };

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (ops[i].letter == letter)
            return (struct dtn_row_place){ .kind = DTENSOR_PARTIAL,
                                       .op = ops[i].op };
    return (struct dtn_row_place){ .kind = DTENSOR_REPLICATE };
}

/* Add "s.>s", with `now` for its capital letters. */
static void row_terms(const struct dtn_signature *sig, const char *word,
                      size_t len, char now, struct dtn_rowset *rows)
{
    const size_t nin = strcspn(word, ">");
    struct dtn_rule_row *row = row_add(rows);

    for (size_t i = 0; i < len; i++) {
        const char c = isupper((unsigned char)word[i]) ? now : word[i];

        if (i < nin)
            row->in[i] = term_place(c);
        else if (i > nin)
            row->out[i - nin - 1] = term_place(c);
    }
    for (int i = (int)(len - nin) - 1; i < sig->nout; i++)
        row->out[i] = row->out[0];
}

/* One word of `terms`; words with another number of inputs are not for this
 * call.  The average of integers is rounded, so nothing but a copy passes it.
 */
static void rows_word(const struct dtn_signature *sig, const char *word,
                      size_t len, struct dtn_rowset *rows)
{
    const bool rounds = !dtn_dtype_is_float(sig->call->in[0].dtype);
    const char *letters = NULL;

    if ((int)strcspn(word, ">") != sig->nin ||
        (rounds && memchr(word, 'a', len)))
        return;
    for (size_t i = 0; i < len && !letters; i++)
        letters = rounds && word[i] == 'L' ? "s" : term_letters(word[i]);
    if (!letters)
        row_terms(sig, word, len, 0, rows);
    for (; letters && *letters; letters++)
        row_terms(sig, word, len, *letters, rows);
}

static void rows_terms(const struct dtn_signature *sig, struct dtn_rowset *rows)
{
    const char *at = sig->rule->terms ? sig->rule->terms : "";

    while (*at) {
        const size_t len = strcspn(at, " ");

        rows_word(sig, at, len, rows);
        at += len + strspn(at + len, " ");
    }
}

/* --------------------------------------------------------------- gather --- */

/* gather takes from input 0, along dimension d, the elements that input 1
 * names.  Input 1 can be sharded there, if input 0 is whole; and if it has size
 * 1 there, input 0 can be: each rank takes what it has, and 0 for the rest.
 */
static void rows_gather(const struct dtn_signature *sig,
                        struct dtn_rowset *rows)
{
    const struct dtn_row_place shard = place_shard(sig->dim[0]);
    struct dtn_rule_row *row;

    if (sig->in[1].shape[sig->dim[0]] == 1) {
        row = row_add(rows);
        row->in[0] = shard;
        row->out[0] = term_place('s');
        row->shards = row->plain = true;
    }
    row = row_add(rows);
    row->in[1] = row->out[0] = shard;
    row->shards = row->plain = true;
}

/* ----------------------------------------------------------- collective --- */

static int inner_dim(const struct dtn_operand *operand, int number)
{
    for (int d = 0; d < operand->ndim; d++)
        if (operand->inner[d] == number)
            return d;
    return -1;
}

/* The rows in which a dimension that is never sharded is sharded after all. */
static void rows_collective(const struct dtn_signature *sig,
                            struct dtn_rowset *rows)
{
    const struct dtn_operand *of = &sig->in[dtn_signature_rows(sig)];

    for (int d = 0; d < of->ndim; d++) {
        const int number = of->inner[d];
        struct dtn_rule_row *row;

        if (number == DTN_WHOLE)
            continue;
        row = row_add(rows);
        row->shards = row->collective = true;
        row->plain = sig->rule->flags & DTN_RULE_GAPLESS;
        for (int i = 0; i < sig->nin; i++)
            row->in[i] = place_shard(inner_dim(&sig->in[i], number));
        for (int i = 0; i < sig->nout; i++)
            row->out[i] = place_shard(inner_dim(&sig->out[i], number));
    }
}

/* Does a row make a term of inputs that are sharded? */
static bool row_sums(const struct dtn_signature *sig,
                     const struct dtn_rule_row *row)
{
    for (int i = 0; i < sig->nout; i++)
        if (row->shards && row->out[i].kind == DTENSOR_PARTIAL)
            return true;
    return false;
}

void dtn_rows_make(const struct dtn_signature *sig, unsigned which,
                   struct dtn_rowset *rows)
{
    const bool sharded = which & DTN_ROWS_SHARDED, round = sums_round(sig);
    struct dtn_rowset all;             /* large: only what is used is set     */

    all.n = 0;
    row_add(&all);
    if (sig->rule->engine == DTN_BY_GATHER)
        rows_gather(sig, &all);
    for (int k = 0; k < sig->nletters; k++)
        row_letter(sig, sig->order[k], &all);
    rows_terms(sig, &all);
    if (which & DTN_ROWS_COLLECTIVE && sharded && sig->rule->collective)
        rows_collective(sig, &all);
    rows->n = 0;
    rows->sums = false;
    for (int i = 0; i < all.n; i++) {
        const bool sums = round && row_sums(sig, &all.row[i]);

        rows->sums |= sums;
        if ((sharded || !all.row[i].shards || all.row[i].plain) &&
            !(sums && which & DTN_ROWS_WHOLE))
            *row_add(rows) = all.row[i];
    }
}

/* ------------------------------------------------------------ in words --- */

static size_t place_format(const struct dtn_row_place *place, char *buf,
                           size_t size)
{
    if (place->kind == DTENSOR_SHARD)
        return (size_t)snprintf(buf, size, "S(%d)", place->dim);
    if (place->kind == DTENSOR_PARTIAL)
        return (size_t)snprintf(buf, size, "P(%s)",
                                dtensor_redop_name(place->op));
    return (size_t)snprintf(buf, size, "R");
}

/* ", allreduces max, sum" */
static void collective_format(const struct dtn_signature *sig, char *buf,
                              size_t size)
{
    const char *word = sig->rule->collective;
    size_t at = 0;

    for (; *word && at + 32 < size; word += strcspn(word, " ")) {
        word += strspn(word, " ");
        at += (size_t)snprintf(buf + at, size - at, "%s %s",
                               at == 0 ? ", allreduces" : ",",
                               dtensor_redop_name(term_place(*word).op));
    }
}

char *dtn_row_format(const struct dtn_signature *sig,
                     const struct dtn_rule_row *row, char *buf, size_t size)
{
    size_t at = 0;

    for (int i = 0; i < sig->nin + sig->nout && at + 16 < size; i++) {
        at += (size_t)snprintf(buf + at, size - at, "%s",
                               i == 0 ? "" : i == sig->nin ? " -> " : ", ");
        at += place_format(i < sig->nin ? &row->in[i] : &row->out[i - sig->nin],
                           buf + at, size - at);
    }
    if (row->collective)
        collective_format(sig, buf + at, size - at);
    return buf;
}
