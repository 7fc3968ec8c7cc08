/* style.c - tensor-parallel styles: the table, and their text
 *
 * A style says how the parameters of a module lie on a mesh of one dimension,
 * and how its inputs and outputs do.  Of a linear layer f32[16,8] on 4 ranks,
 * colwise gives each rank 4 of the 16 outputs: the weight is cut along
 * dimension 0, and so is the bias; the input is whole on each rank, the output
 * is S(-1).  The layer after it, rowwise, takes that as it is, and its products
 * are terms, which the output layout R sums.
 *
 * Programs and cluster files name a style by the same text, which is read here.
 */
#include "cluster/style.h"
#include "cluster/file.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct dtn_style_row rows[] = {
    { "colwise", "linear", { { "weight", "S(0)" }, { "bias", "S(0)" } },
      { "R", "S(-1)" } },
    { "colwise", "embedding", { { "weight", "S(1)" } }, { "R", "S(-1)" } },
    { "rowwise", "linear", { { "weight", "S(1)" }, { "bias", "R" } },
      { "S(-1)", "R" } },
    { "rowwise", "embedding", { { "weight", "S(0)" } }, { "R", "R" } },
    { "sequence", NULL, { { NULL, NULL } }, { "S(1)", NULL } },
    { "prepare", NULL, { { NULL, NULL } }, { NULL, NULL } }
};

enum { NROWS = (int)(sizeof rows / sizeof rows[0]) };

/* The options of each style. */
static const struct {
    const char *style;             /* its name                                */
    const char *option[3];         /* with their "=", ended by NULL           */
    const char *expected;          /* for a message                           */
} options[] = {
    { "colwise", { "output=" }, "output=LAYOUT" },
    { "rowwise", { "output=" }, "output=LAYOUT" },
    { "sequence", { "dim=" }, "dim=N" },
    { "prepare", { "input=", "output=" }, "input=LAYOUTS or output=LAYOUTS" }
};

enum { NOPTIONS = (int)(sizeof options / sizeof options[0]) };

static bool why_not(char why[DTN_WHY_SIZE], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static bool why_not(char why[DTN_WHY_SIZE], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, DTN_WHY_SIZE, fmt, ap);
    va_end(ap);
    return false;
}

static bool is_style(const struct dtn_style_words *words, const char *name)
{
    return strcmp(words->row->name, name) == 0;
}

bool dtn_style_takes_terms(const struct dtn_style_words *words)
{
    return !is_style(words, "colwise");
}

bool dtn_style_takes_dash(const struct dtn_style_words *words)
{
    return is_style(words, "prepare");
}

const struct dtn_style_row *dtn_style_row_next(const struct dtn_style_row *row)
{
    const struct dtn_style_row *next = row + 1;

    return next < rows + NROWS && strcmp(next->name, row->name) == 0 ? next
                                                                     : NULL;
}

const struct dtn_style_row *dtn_style_row_for(const struct dtn_style_row *row,
                                              const char *type)
{
    while (row && row->type && strcmp(row->type, type) != 0)
        row = dtn_style_row_next(row);
    return row;
}

/* -------------------------------------------------------------- reading --- */

static bool row_find(const char *name, struct dtn_style_words *words,
                     char why[DTN_WHY_SIZE])
{
    const char *known[NOPTIONS + 1] = { NULL };
    char advice[200];

    for (int i = 0; i < NROWS; i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        words->row = &rows[i];
        return true;
    }
    for (int i = 0; i < NOPTIONS; i++)
        known[i] = options[i].style;
    return why_not(why, "no style \"%.40s\"; %s", name,
                   dtensor_advise(name, known, NULL, advice, sizeof advice));
}

/* The length of the layout at `text`: up to a comma outside parentheses. */
static size_t layout_length(const char *text)
{
    size_t n = 0;

    for (int depth = 0; text[n] && (text[n] != ',' || depth > 0); n++)
        depth += (text[n] == '(') - (text[n] == ')');
    return n;
}

static bool layouts_read(struct dtn_style_words *words,
                         enum dtn_style_side side, const char *text,
                         char why[DTN_WHY_SIZE])
{
    const int most = is_style(words, "prepare") ? DTN_LAYOUTS : 1;
    int n = 0;

    for (size_t length;; text += length + 1) {
        length = layout_length(text);
        if (n == most || length >= DTN_LAYOUT_SIZE)
            return why_not(why, "\"%.60s\": too many or too long layouts "
                           "(expected at most %d)", text, most);
        memcpy(words->side[side].layout[n], text, length);
        words->side[side].layout[n++][length] = '\0';
        if (!text[length])
            break;
    }
    words->side[side].n = n;
    return true;
}

/* dim=N of sequence: the input layout is S(N). */
static bool dim_read(struct dtn_style_words *words, const char *text,
                     char why[DTN_WHY_SIZE])
{
    const char *digits = text + (text[0] == '-');

    if (strlen(digits) != 1 || digits[0] < '0' || digits[0] > '7' ||
        strcmp(text, "-0") == 0)
        return why_not(why, "dim=%.20s: not a dimension (expected 0 to 7, or "
                       "-1 to -7)", text);
    snprintf(words->side[DTN_STYLE_INPUT].layout[0], DTN_LAYOUT_SIZE, "S(%s)",
             text);
    words->side[DTN_STYLE_INPUT].n = 1;
    return true;
}

static bool option_read(struct dtn_style_words *words, const char *word,
                        char why[DTN_WHY_SIZE])
{
    int s = 0;

    while (!is_style(words, options[s].style))
        s++;
    for (int i = 0; options[s].option[i]; i++) {
        const char *option = options[s].option[i];
        const char *value = word + strlen(option);

        if (strncmp(word, option, strlen(option)) != 0)
            continue;
        if (option[0] == 'd')
            return dim_read(words, value, why);
        return layouts_read(words, option[0] == 'i' ? DTN_STYLE_INPUT
                                                    : DTN_STYLE_OUTPUT,
                            value, why);
    }
    return why_not(why, "%s has no option \"%.40s\" (expected %s)",
                   words->row->name, word, options[s].expected);
}

bool dtn_style_words_read(const char *text, struct dtn_style_words *words,
                          char why[DTN_WHY_SIZE])
{
    char copy[DTN_LAYOUT_SIZE], *rest, *word;

    if (!text || strlen(text) >= sizeof copy)
        return why_not(why, "%s (expected at most %d bytes)",
                       text ? "the style is too long" : "no style",
                       DTN_LAYOUT_SIZE - 1);
    *words = (struct dtn_style_words){ .row = NULL };
    strcpy(copy, text);
    word = strtok_r(copy, " \t", &rest);
    if (!row_find(word ? word : "", words, why))
        return false;
    strcpy(words->text, words->row->name);
    while ((word = strtok_r(NULL, " \t", &rest))) {
        if (!option_read(words, word, why))
            return false;
        strcat(strcat(words->text, " "), word);
    }
    if (is_style(words, "prepare") && words->side[DTN_STYLE_INPUT].n +
                                      words->side[DTN_STYLE_OUTPUT].n == 0)
        return why_not(why, "prepare without input=LAYOUTS or output=LAYOUTS");
    return true;
}
