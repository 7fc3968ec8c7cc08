/* reader.c - lines for libinih, counted and checked
 *
 * libinih cuts a line at 200 bytes and a section name at 49, takes an indented
 * line as a continuation of the last value, and does not give its handler a
 * line number.  But it asks for its lines one by one, and calls the handler
 * before it asks for the next.  So this reader counts the lines, and knows the
 * line of every key.  It checks each line first, so that libinih gets no line
 * that it would cut or misread.  Example: line 3, `  ranks=4 ; each`, is passed
 * on as `ranks=4 ; each`.  A section header, a comment or a wrong line is
 * passed on as an empty line.
 */
#include "cluster/reader.h"
#include "base/error.h"
#include "cluster/bytes.h"
#include "cluster/check.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/sections.h"
#include "cluster/value.h"
#include "dtensor.h"

#include <ini.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    char *next;                    /* bytes not yet looked at                 */
    char *end;
    int line;                      /* number of the line handed out           */
    struct dtn_document *doc;
    struct dtn_findings *findings;
    struct dtn_section *section;   /* the current one, NULL before the first  */
    bool skipping;                 /* its header is wrong: leave its keys     */
};

static char *reader_trim(char *text)
{
    size_t n;

    text += strspn(text, " \t");
    n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    text[n] = '\0';
    return text;
}

/* ----------------------------------------------------- section headers --- */

char *dtn_section_title(const struct dtn_section *section, char *buf)
{
    if (section->name[0])
        snprintf(buf, DTN_TITLE_SIZE, "[%s \"%s\"]", section->kind->name,
                 section->name);
    else
        snprintf(buf, DTN_TITLE_SIZE, "[%s]", section->kind->name);
    return buf;
}

static void reader_unknown_section(struct reader *r, const char *name)
{
    const char *known[DTN_NKINDS + 1] = { NULL };
    char list[200] = "one of ", advice[300];

    for (int i = 0, n = 0; i < DTN_NKINDS; i++) {
        strcat(strcat(list, n ? ", " : ""), dtn_section_kinds[i].name);
        known[n++] = dtn_section_kinds[i].name;
    }
    dtn_finding(r->findings, r->line, "unknown section \"%s\"; %s", name,
                dtensor_advise(name, known, list, advice, sizeof advice));
}

/* Check the text between the kind and "]", and copy the name from it. */
static bool reader_section_name(struct reader *r,
                                const struct dtn_section_kind *kind, char *text,
                                const char **namep)
{
    size_t n = strlen(text);

    *namep = "";
    if (!kind->named && n > 0)
        dtn_finding(r->findings, r->line, "%s follows \"%s\"; expected [%s]",
                    text, kind->name, kind->name);
    if (!kind->named)
        return n == 0;
    if (n == 0) {
        dtn_finding(r->findings, r->line, "section \"%s\" has no name; "
                    "expected [%s \"name\"]", kind->name, kind->name);
        return false;
    }
    if (n < 2 || text[0] != '"' || text[n - 1] != '"') {
        dtn_finding(r->findings, r->line, "the name %s is not in double "
                    "quotes; expected [%s \"%s\"]", text, kind->name,
                    dtn_name_ok(text) ? text : "name");
        return false;
    }
    text[n - 1] = '\0';
    if (!dtn_name_ok(text + 1)) {
        dtn_finding(r->findings, r->line, "bad name \"%s\"; expected "
                    DTN_NAME_GRAMMAR, text + 1);
        return false;
    }
    *namep = text + 1;
    return true;
}

static bool reader_section_add(struct reader *r,
                               const struct dtn_section_kind *kind,
                               const char *name)
{
    struct dtn_document *doc = r->doc;
    struct dtn_section *section;
    char title[DTN_TITLE_SIZE];

    for (int i = 0; i < doc->nsections; i++) {
        section = &doc->sections[i];
        if (section->kind != kind || strcmp(section->name, name) != 0)
            continue;
        dtn_finding(r->findings, r->line, "section %s was already given on "
                    "line %d", dtn_section_title(section, title),
                    section->line);
        return false;
    }
    if (doc->nsections == DTN_MAX_SECTIONS) {
        dtn_finding(r->findings, r->line, "one section too many; expected at "
                    "most %d", DTN_MAX_SECTIONS);
        return false;
    }
    section = &doc->sections[doc->nsections++];
    *section = (struct dtn_section){ .kind = kind, .line = r->line,
                                     .first = doc->nentries };
    strcpy(section->name, name);
    r->section = section;
    return true;
}

/* `[kind "name"] ; comment`, without leading blanks. */
static bool reader_section(struct reader *r, char *text)
{
    char *close = strchr(text, ']'), *rest, name[DTN_LINE_MAX + 1];
    const struct dtn_section_kind *kind;
    const char *inner;
    int n;

    if (!close) {
        dtn_finding(r->findings, r->line, "the section header has no \"]\"; "
                    "expected [kind] or [kind \"name\"]");
        return false;
    }
    rest = reader_trim(close + 1);
    if (*rest && *rest != ';' && *rest != '#') {
        dtn_finding(r->findings, r->line, "\"%s\" follows the section header; "
                    "expected only a comment after \"]\"", rest);
        return false;
    }
    *close = '\0';
    text = reader_trim(text + 1);
    n = (int)strcspn(text, " \t\"");
    snprintf(name, sizeof name, "%.*s", n, text);
    kind = dtn_section_kind_find(name);
    if (!kind) {
        reader_unknown_section(r, name);
        return false;
    }
    return reader_section_name(r, kind, reader_trim(text + n), &inner) &&
           reader_section_add(r, kind, inner);
}

/* --------------------------------------------------------------- lines --- */

/* Has the line, which is no header, the form key = value? */
static bool reader_key_form(struct reader *r, const char *text)
{
    size_t before = strcspn(text, "=:");

    while (before > 0 && strchr(" \t", text[before - 1]))
        before--;
    if (!text[strcspn(text, "=:")])
        dtn_finding(r->findings, r->line, "\"%s\" is neither a section nor "
                    "\"key = value\"; expected key = value", text);
    else if (text[strcspn(text, "=:")] == ':')
        dtn_finding(r->findings, r->line, "\":\" after \"%.*s\"; expected "
                    "\"=\" between a key and its value", (int)before, text);
    else if (before == 0)
        dtn_finding(r->findings, r->line, "no key before \"=\"; expected "
                    "key = value");
    else
        return true;
    return false;
}

/* Check a line of n bytes, at most `max`.  True: inih gets *textp. */
static bool reader_line(struct reader *r, char *line, size_t n, int max,
                        char **textp)
{
    int bad;

    if (n > (size_t)max) {
        dtn_finding(r->findings, r->line, "the line has %zu bytes; expected at "
                    "most %d; use host ranges such as node[001-128]", n, max);
        return false;
    }
    bad = dtn_bytes_bad(line, n);
    if (bad >= 0) {
        dtn_finding(r->findings, r->line, "the line has a byte 0x%02x that is "
                    "not text; expected UTF-8 without control characters",
                    (unsigned)bad);
        return false;
    }
    *textp = reader_trim(line);
    if (**textp == '[') {
        r->skipping = !reader_section(r, *textp);
        return false;
    }
    return **textp && **textp != ';' && **textp != '#' &&
           reader_key_form(r, *textp);
}

/* inih calls this instead of fgets(). */
static char *reader_gets(char *str, int num, void *stream)
{
    struct reader *r = stream;
    char *line = r->next, *text = NULL;
    char *newline = memchr(line, '\n', (size_t)(r->end - line));
    char *stop = newline ? newline : r->end;
    int max = num - 3 < DTN_LINE_MAX ? num - 3 : DTN_LINE_MAX;

    if (line == r->end)
        return NULL;
    r->next = newline ? newline + 1 : r->end;
    r->line++;
    if (r->line == 1 && stop - line >= 3 &&
        memcmp(line, "\xEF\xBB\xBF", 3) == 0)        /* a byte order mark     */
        line += 3;
    if (stop > line && stop[-1] == '\r')
        stop--;
    *stop = '\0';
    if (!reader_line(r, line, (size_t)(stop - line), max, &text))
        text = stop;
    snprintf(str, (size_t)num, "%s\n", text);
    return str;
}

/* ---------------------------------------------------------------- keys --- */

static void reader_unknown_key(struct reader *r, const char *name)
{
    const struct dtn_section_kind *kind = r->section->kind;
    const char *known[32] = { NULL };
    char list[300] = "one of ", advice[400];

    for (int i = 0; kind->keys[i].name; i++) {
        known[i] = kind->keys[i].name;
        strcat(strcat(list, i ? ", " : ""), known[i]);
    }
    dtn_finding(r->findings, r->line, "unknown key \"%s\" in [%s]; %s", name,
                kind->name, dtensor_advise(name, known, list, advice,
                                           sizeof advice));
}

/* Is there a "#" that the user may have taken for the start of a comment? */
static bool reader_hash_comment(const char *value)
{
    const char *hash = value;

    while ((hash = strchr(hash, '#')) != NULL) {
        if (hash == value || hash[-1] == ' ' || hash[-1] == '\t')
            return true;
        hash++;
    }
    return false;
}

static char *reader_keep(struct dtn_document *doc, const char *text)
{
    char *kept = doc->text + doc->text_used;

    doc->text_used += strlen(text) + 1;
    return strcpy(kept, text);
}

/* inih's handler.  The reader's own section is used, which has its line. */
static int reader_key(void *user, const char *section, const char *name,
                      const char *value)
{
    struct reader *r = user;
    struct dtn_document *doc = r->doc;

    if (!name || !value || r->skipping)
        return 1;
    if (!r->section) {
        dtn_finding(r->findings, r->line, "\"%s\" stands before the first "
                    "section; expected [cluster] first", name);
        r->skipping = true;
    } else if (!r->section->kind->open &&
               !dtn_key_find(r->section->kind, name)) {
        reader_unknown_key(r, name);
    } else if (!*value) {
        dtn_finding(r->findings, r->line, "\"%s\" has no value", name);
    } else if (reader_hash_comment(value)) {
        dtn_finding(r->findings, r->line, "\"#\" inside the value of \"%s\"; "
                    "expected \";\" to start a comment after a value", name);
    } else {
        doc->entries[doc->nentries++] = (struct dtn_entry){
            r->line, reader_keep(doc, name), reader_keep(doc, value) };
        r->section->n++;
    }
    return 1;
}

static int entry_by_line(const void *a, const void *b)
{
    const struct dtn_entry *x = a, *y = b;

    return (x->line > y->line) - (x->line < y->line);
}

static int entry_by_key(const void *a, const void *b)
{
    const struct dtn_entry *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order ? order : entry_by_line(a, b);
}

/* Find keys that are given twice: sort by key, then restore the order. */
static void reader_repeats(struct dtn_document *doc,
                           const struct dtn_section *section,
                           struct dtn_findings *findings)
{
    struct dtn_entry *entry = doc->entries + section->first;

    qsort(entry, (size_t)section->n, sizeof *entry, entry_by_key);
    for (int i = 1; i < section->n; i++)
        if (strcmp(entry[i - 1].key, entry[i].key) == 0)
            dtn_finding(findings, entry[i].line, "\"%s\" was already given on "
                        "line %d", entry[i].key, entry[i - 1].line);
    qsort(entry, (size_t)section->n, sizeof *entry, entry_by_line);
}

/* ------------------------------------------------------------ document --- */

static int document_parse(struct dtn_document *doc, char *bytes, size_t n,
                          struct dtn_findings *findings,
                          struct dtensor_error *err)
{
    struct reader r = { .next = bytes, .end = bytes + n, .doc = doc,
                        .findings = findings };
    size_t nlines = 1;
    int rc;

    for (size_t i = 0; i < n; i++)
        nlines += bytes[i] == '\n';
    doc->sections = calloc(nlines < DTN_MAX_SECTIONS ? nlines :
                           DTN_MAX_SECTIONS, sizeof *doc->sections);
    doc->entries = calloc(nlines, sizeof *doc->entries);
    doc->text = malloc(n + nlines);       /* "k=v" and a newline: two strings */
    if (!doc->sections || !doc->entries || !doc->text)
        return dtn_fail_nomem(err, findings->path, n);
    rc = ini_parse_stream(reader_gets, &r, reader_key, &r);
    if (rc == -2)
        return dtn_fail_nomem(err, findings->path, n);
    if (rc > 0 && findings->nerrors == 0)  /* an inih built in another way    */
        dtn_finding(findings, rc, "not understood; expected key = value");
    for (int i = 0; i < doc->nsections; i++)
        reader_repeats(doc, &doc->sections[i], findings);
    return 0;
}

int dtn_document_read(struct dtn_document *doc, struct dtn_findings *findings,
                      struct dtensor_error *err)
{
    char *bytes;
    size_t n;
    int rc;

    rc = dtn_bytes_read(findings, &bytes, &n, err);
    if (rc == 0) {
        rc = document_parse(doc, bytes, n, findings, err);
        free(bytes);
    }
    return rc;
}

void dtn_document_fini(struct dtn_document *doc)
{
    free(doc->sections);
    free(doc->entries);
    free(doc->text);
}

const struct dtn_entry *dtn_section_get(const struct dtn_document *doc,
                                        const struct dtn_section *section,
                                        const char *key)
{
    for (int i = 0; i < section->n; i++)
        if (strcmp(doc->entries[section->first + i].key, key) == 0)
            return &doc->entries[section->first + i];
    return NULL;
}

const struct dtn_section *dtn_section_next(const struct dtn_document *doc,
                                           enum dtn_section_kind_id kind,
                                           const struct dtn_section *section)
{
    int i = section ? (int)(section - doc->sections) + 1 : 0;

    for (; i < doc->nsections; i++)
        if (doc->sections[i].kind == &dtn_section_kinds[kind])
            return &doc->sections[i];
    return NULL;
}

const struct dtn_section *dtn_section_find(const struct dtn_document *doc,
                                           enum dtn_section_kind_id kind,
                                           const char *name)
{
    const struct dtn_section *section = NULL;

    while ((section = dtn_section_next(doc, kind, section)))
        if (strcmp(section->name, name) == 0)
            break;
    return section;
}
