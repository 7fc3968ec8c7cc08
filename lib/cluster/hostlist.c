/* hostlist.c - "node[001-064]-ib" as 64 names
 *
 * An entry is text with brackets, and a bracket is a list of numbers and
 * ranges.  An entry with several brackets stands for all combinations; the
 * first bracket changes slowest: "r[1-2]n[08-10]" is r1n08 r1n09 r1n10 r2n08
 * r2n09 r2n10.  Each number has at least as many digits as the first one of its
 * range, so leading zeros are kept: 08-10 is 08 09 10, and 8-10 is 8 9 10.
 *
 * Slurm's parser reads "n[1-3" as a host called "n]" and exits with 0.  This
 * parser refuses an entry that is ambiguous or incomplete.  It checks the whole
 * entry (entry_check) before it expands it.
 */
#include "cluster/hostlist.h"
#include "base/array.h"
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 9

/* The names read so far, and the current entry for messages. */
struct hostlist {
    char **names;
    int n;
    int capacity;
    const char *entry;
    int entry_len;
    char *why;
    size_t why_size;
};

/* "7" is {7, 7, 1, 1, 0}; "08-10" is {8, 10, 2, 2, 2}. */
struct range {
    int low, high;
    int low_digits, high_digits;
    int zero_digits;             /* of a number that begins with a zero, or 0 */
};

static int why_bad(char *why, size_t size, const char *fmt, ...)
    DTN_PRINTF(3, 4);

static int why_bad(char *why, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, size, fmt, ap);
    va_end(ap);
    return DTENSOR_ECONF;
}

static int why_nomem(char *why, size_t size)
{
    snprintf(why, size, "out of memory");
    return DTENSOR_ENOMEM;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Is the character allowed in a name?  <ctype.h> depends on the locale. */
static bool is_name_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr(".-_", c));
}

/* ------------------------------------------------------------- reading --- */

/* Step over the digits of a number and return how many there are. */
static int digits_read(const char **textp, int *value, int *zero_digits)
{
    const char *start = *textp, *p = start;
    int digits;

    for (*value = 0; is_digit(*p); p++)
        if (p - start < MAX_DIGITS)
            *value = *value * 10 + (*p - '0');
    digits = (int)(p - start);
    if (*start == '0' && digits > 1 && digits > *zero_digits)
        *zero_digits = digits;
    *textp = p;
    return digits;
}

/* Read "7" or "08-10" and step over it; false if the text is neither. */
static bool range_read(const char **textp, struct range *range)
{
    range->zero_digits = 0;
    range->low_digits = digits_read(textp, &range->low,
                                    &range->zero_digits);
    range->high = range->low;
    range->high_digits = range->low_digits;
    if (**textp == '-') {
        ++*textp;
        range->high_digits = digits_read(textp, &range->high,
                                         &range->zero_digits);
    }
    return range->low_digits && range->high_digits &&
           (**textp == ',' || **textp == ']');
}

/* ------------------------------------------------------------ checking --- */

static int range_check(const struct hostlist *list, const char *text)
{
    int len = (int)strcspn(text, ",]");
    const char *p = text;
    struct range range;

    if (!range_read(&p, &range))
        return why_bad(list->why, list->why_size, "bad range \"%.*s\" in "
                       "\"%.*s\"; expected a number or two, such as 001-064",
                       len, text, list->entry_len, list->entry);
    if (range.low_digits > MAX_DIGITS || range.high_digits > MAX_DIGITS)
        return why_bad(list->why, list->why_size, "range \"%.*s\" in \"%.*s\" "
                       "has a number too long; expected at most %d digits",
                       len, text, list->entry_len, list->entry, MAX_DIGITS);
    if (range.low > range.high)
        return why_bad(list->why, list->why_size, "range \"%.*s\" in \"%.*s\" "
                       "runs backwards; expected %0*d-%0*d", len, text,
                       list->entry_len, list->entry, range.high_digits,
                       range.high, range.low_digits, range.low);
    return 0;
}

/* Check the bracket whose content begins at `text`.  Every range must be valid,
 * and no number may have fewer digits than one with leading zeros: in
 * [01-03,7] the 7 may mean n7 or n07.  More digits are clear: [98-99,100] and
 * [08-100].
 */
static int bracket_check(const struct hostlist *list, const char *text)
{
    struct range range;
    int fewest = MAX_DIGITS, zero_digits = 0, rc;

    for (const char *p = text;; p++) {
        rc = range_check(list, p);
        if (rc)
            return rc;
        range_read(&p, &range);
        if (range.low_digits < fewest)
            fewest = range.low_digits;
        if (range.high_digits < fewest)
            fewest = range.high_digits;
        if (range.zero_digits > zero_digits)
            zero_digits = range.zero_digits;
        if (*p == ']')
            break;
    }
    if (fewest < zero_digits)
        return why_bad(list->why, list->why_size, "\"%.*s\" mixes numbers of "
                       "%d and of %d digits; expected leading zeros in all or "
                       "none, such as 01-10", list->entry_len, list->entry,
                       fewest, zero_digits);
    return 0;
}

static int brackets_match(const struct hostlist *list)
{
    bool inside = false;

    for (int i = 0; i < list->entry_len; i++) {
        char c = list->entry[i];

        if (c == (inside ? '[' : ']'))
            return false;
        if (c == '[' || c == ']')
            inside = !inside;
    }
    return !inside;
}

static int char_bad(const struct hostlist *list, char c)
{
    char shown[8];

    snprintf(shown, sizeof shown, c >= ' ' && c < 0x7f ? "%c" : "\\x%02x",
             (unsigned char)c);
    return why_bad(list->why, list->why_size, "bad character \"%s\" in "
                   "\"%.*s\"; expected letters, digits, \".\", \"-\" and "
                   "ranges in [ ]", shown, list->entry_len, list->entry);
}

static int entry_check(const struct hostlist *list)
{
    const char *end = list->entry + list->entry_len;
    int rc;

    if (list->entry_len == 0)
        return why_bad(list->why, list->why_size, "empty entry between commas; "
                       "expected a list such as node[001-064]");
    if (!brackets_match(list))
        return why_bad(list->why, list->why_size, "\"[\" and \"]\" do not match "
                       "in \"%.*s\"; expected a list such as node[001-064]",
                       list->entry_len, list->entry);
    for (const char *p = list->entry; p < end; p++) {
        if (*p == '[') {
            rc = bracket_check(list, p + 1);
            if (rc)
                return rc;
            p = strchr(p, ']');
        } else if (!is_name_char(*p)) {
            return char_bad(list, *p);
        }
    }
    return 0;
}

/* ----------------------------------------------------------- expanding --- */

static int name_add(struct hostlist *list, const char *name)
{
    if (list->n == DTN_MAX_HOSTS)
        return why_bad(list->why, list->why_size, "more than %d names at "
                       "\"%.*s\"; expected at most that many", DTN_MAX_HOSTS,
                       list->entry_len, list->entry);
    if (!dtn_array_reserve(&list->names, &list->capacity, list->n + 1,
                           sizeof *list->names))
        return why_nomem(list->why, list->why_size);
    list->names[list->n] = strdup(name);
    if (!list->names[list->n])
        return why_nomem(list->why, list->why_size);
    list->n++;
    return 0;
}

/* Add all names that begin with `name[0..len)` and continue with the rest of a
 * checked entry.  The function calls itself once for each bracket.  Each
 * bracket makes the name longer, so the depth is below DTN_HOST_MAX.
 */
static int entry_expand(struct hostlist *list, const char *p, char *name,
                        size_t len)
{
    const char *end = list->entry + list->entry_len, *rest;
    struct range range;
    int rc = 0, width;

    while (p < end && *p != '[' && len < DTN_HOST_MAX)
        name[len++] = *p++;
    if (len + MAX_DIGITS >= DTN_HOST_MAX)
        return why_bad(list->why, list->why_size, "\"%.40s...\" is too long; "
                       "expected names of at most %d characters", list->entry,
                       DTN_HOST_MAX - MAX_DIGITS - 1);
    name[len] = '\0';
    if (p == end)
        return name_add(list, name);
    rest = strchr(p, ']') + 1;
    while (*p != ']' && rc == 0) {
        p++;
        range_read(&p, &range);
        for (int i = range.low; i <= range.high && rc == 0; i++) {
            width = snprintf(name + len, DTN_HOST_MAX - len, "%0*d",
                             range.low_digits, i);
            rc = entry_expand(list, rest, name, len + (size_t)width);
        }
    }
    return rc;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_check_twice(const struct hostlist *list)
{
    char **sorted = malloc((size_t)list->n * sizeof *sorted);
    int rc = 0;

    if (!sorted)
        return why_nomem(list->why, list->why_size);
    memcpy(sorted, list->names, (size_t)list->n * sizeof *sorted);
    qsort(sorted, (size_t)list->n, sizeof *sorted, name_compare);
    for (int i = 1; i < list->n && rc == 0; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            rc = why_bad(list->why, list->why_size, "\"%s\" is listed twice",
                         sorted[i]);
    free(sorted);
    return rc;
}

/* The comma that ends the entry at `p`, or the end of the text. */
static const char *entry_end(const char *p)
{
    bool inside = false;

    for (; *p && (inside || *p != ','); p++)
        inside = *p == '[' || (inside && *p != ']');
    return p;
}

int dtn_hostlist_expand(const char *text, char ***namesp, int *np, char *why,
                        size_t why_size)
{
    struct hostlist list = { .entry = text, .why = why, .why_size = why_size };
    char name[DTN_HOST_MAX];
    const char *end;
    int rc;

    do {
        end = entry_end(list.entry);
        list.entry_len = (int)(end - list.entry);
        rc = entry_check(&list);
        if (rc == 0)
            rc = entry_expand(&list, list.entry, name, 0);
        list.entry = end + 1;
    } while (rc == 0 && *end);
    if (rc == 0)
        rc = list_check_twice(&list);
    if (rc) {
        dtn_hostlist_free(list.names, list.n);
        return rc;
    }
    *namesp = list.names;
    *np = list.n;
    return 0;
}

void dtn_hostlist_free(char **names, int n)
{
    for (int i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
}

/* ---------------------------------------------------------- formatting --- */

/* The length of the number at the end of a name, if a range could produce it.
 */
static int number_length(const char *name)
{
    int len = (int)strlen(name), n = 0;

    while (n < len && n < MAX_DIGITS && is_digit(name[len - 1 - n]))
        n++;
    return n;
}

/* Is `next` the name after `name`, with the number plus one: n09 and n10? */
static bool name_follows(const char *name, const char *next)
{
    int digits = number_length(name);
    int stem = (int)strlen(name) - digits;
    char wanted[DTN_HOST_MAX + MAX_DIGITS];

    if (digits == 0)
        return false;
    snprintf(wanted, sizeof wanted, "%.*s%0*d", stem, name, digits,
             atoi(name + stem) + 1);
    return strcmp(wanted, next) == 0;
}

char *dtn_hostlist_format(char *const names[], int n, char *buf, size_t size)
{
    size_t used = 0;
    int last, stem, len;

    buf[0] = '\0';
    for (int first = 0; first < n; first = last + 1) {
        for (last = first; last + 1 < n &&
             name_follows(names[last], names[last + 1]);)
            last++;
        stem = (int)strlen(names[first]) - number_length(names[first]);
        if (first == last)
            len = snprintf(buf + used, size - used, "%s%s", first ? "," : "",
                           names[first]);
        else
            len = snprintf(buf + used, size - used, "%s%.*s[%s-%s]",
                           first ? "," : "", stem, names[first],
                           names[first] + stem, names[last] + stem);
        if (used + (size_t)len >= size) {
            snprintf(buf + (used + 4 < size ? used : size - 4), 4, "...");
            break;
        }
        used += (size_t)len;
    }
    return buf;
}

/* -------------------------------------------------------------- counts --- */

/* Read "2" or "2(x3)" and step over it: `value` 2, `times` 3. */
static bool count_read(const char **textp, int *value, int *times)
{
    int digits, zero_digits = 0;

    *times = 1;
    digits = digits_read(textp, value, &zero_digits);
    if (digits < 1 || digits > MAX_DIGITS)
        return false;
    if (strncmp(*textp, "(x", 2) == 0) {
        *textp += 2;
        digits = digits_read(textp, times, &zero_digits);
        if (digits < 1 || digits > MAX_DIGITS || **textp != ')')
            return false;
        ++*textp;
    }
    return (**textp == ',' || **textp == '\0') &&
           zero_digits == 0;
}

int dtn_counts_expand(const char *text, int **countsp, int *np, char *why,
                      size_t why_size)
{
    int *counts = malloc(DTN_MAX_HOSTS * sizeof *counts);
    int value, times, n = 0, rc = 0;

    if (!counts)
        return why_nomem(why, why_size);
    for (const char *p = text;; p++) {
        if (!count_read(&p, &value, &times))
            rc = why_bad(why, why_size, "\"%s\" is not a list of counts; "
                         "expected such as 2(x3),1", text);
        else if (value < 1 || value > DTN_MAX_LOCAL)
            rc = why_bad(why, why_size, "%d in \"%s\" is out of range; "
                         "expected 1 to %d", value, text, DTN_MAX_LOCAL);
        else if (times < 1 || times > DTN_MAX_HOSTS - n)
            rc = why_bad(why, why_size, "\"%s\" is not for 1 to %d hosts",
                         text, DTN_MAX_HOSTS);
        if (rc)
            break;
        while (times-- > 0)
            counts[n++] = value;
        if (*p == '\0')
            break;
    }
    if (rc) {
        free(counts);
        return rc;
    }
    *countsp = counts;
    *np = n;
    return 0;
}
