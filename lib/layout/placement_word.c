/* placement_word.c - the words of a text of placements
 *
 * "S(0),R" has two words, and so has S(0)[1]R of PyTorch: a word ends at a
 * comma, or where another one begins.  A word that is none gets a suggestion:
 * S(0) for Shard(0) and for s0.
 */
#include "layout/placement_word.h"
#include "base/words.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Does another word begin at p without a comma before it, as in RS(0)[1]P? */
static bool placement_begins(const char *begin, const char *p)
{
    return p > begin && strchr("RSPC_", *p) &&
           (p[-1] == ')' || p[-1] == ']' || (p[-1] == 'R' && p - 1 == begin));
}

bool dtn_placement_next(struct dtn_placement_word *w, const char **posp)
{
    const char *p = *posp;
    int depth = 0;

    if (!p)
        return false;
    w->begin = p + strspn(p, " ");
    for (; p < w->stop && (depth > 0 || (*p != ',' &&
                                         !placement_begins(w->begin, p)));
         p++) {
        depth += *p == '(';
        depth -= *p == ')' && depth > 0;
    }
    *posp = p >= w->stop ? NULL : *p == ',' ? p + 1 : p;
    while (p > w->begin && p[-1] == ' ')
        p--;
    w->end = p < w->begin ? w->begin : p;
    w->number++;
    return true;
}

bool dtn_placement_named(const struct dtn_placement_word *w, const char *name,
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

const char *const dtn_placement_reductions[] = {
    "sum", "avg", "prod", "min", "max", "band", "bor", "bxor", NULL
};

/* Copy the letters at the beginning of `p`, fewer than `size`. */
static size_t placement_letters(const char *p, const char *end, char *name,
                                size_t size)
{
    size_t n = 0;

    while (p + n < end && n < size - 1 && isalpha((unsigned char)p[n]))
        n++;
    snprintf(name, size, "%.*s", (int)n, p);
    return n;
}

/* The reduction of Partial(mean) is avg; without a name it is sum. */
static const char *placement_reduction(const char *p, const char *end)
{
    char name[24];
    const char *op;

    p += strcspn(p, "(");
    p += p < end ? 1 + strspn(p + 1, " \"'") : 0;
    if (p >= end || placement_letters(p, end, name, sizeof name) == 0)
        return "sum";
    op = dtn_synonym(name, dtn_placement_reductions);
    return op ? op : "sum";
}

const char *dtn_placement_guess(const struct dtn_placement_word *w,
                                char guess[64])
{
    static const char *const known[] = { "R", "S", "SS", "C", "P", "HT", NULL };
    static const char *const long_names[] = {
        "replicate", "shard", "stridedshard", "cyclic", "partial", "headtail",
        NULL
    };
    const char *p = w->begin + strspn(w->begin, "_"), *kind;
    char name[24];
    size_t letters = placement_letters(p, w->end, name, sizeof name);
    size_t digits = letters + strcspn(p + letters, "-0123456789");
    long dim = p + digits < w->end ? strtol(p + digits, NULL, 10) : 0;

    guess[0] = '\0';
    kind = dtn_synonym(name, known);
    for (int i = 0; letters > 0 && !kind && long_names[i]; i++)
        if (strncasecmp(name, long_names[i], letters) == 0)
            kind = known[i];
    if (letters > 0 && p > w->begin)           /* _Shard, _StridedShard       */
        kind = "SS";
    if (!kind)
        return guess;
    if (strcmp(kind, "SS") == 0)
        snprintf(guess, 64, " (did you mean SS(%ld,factor)?)", dim);
    else if (strcmp(kind, "S") == 0)
        snprintf(guess, 64, " (did you mean S(%ld)?)", dim);
    else if (strcmp(kind, "C") == 0)
        snprintf(guess, 64, " (did you mean C(%ld,block)?)", dim);
    else if (strcmp(kind, "HT") == 0)
        snprintf(guess, 64, " (did you mean HT(%ld)?)", dim);
    else if (strcmp(kind, "P") == 0)
        snprintf(guess, 64, " (did you mean P(%s)?)",
                 placement_reduction(p, w->end));
    else
        snprintf(guess, 64, " (did you mean R?)");
    return guess;
}
