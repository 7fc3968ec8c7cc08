/* golden.h - reading the tables of tests/golden
 *
 * A table is lines of words; those that begin with '#' say what they are and
 * which PyTorch made them.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct golden {
    FILE *file;
    char origin[32];              /* "PyTorch 2.15.0"                         */
    char line[1024];              /* as it stands, for messages               */
    char words[1024];             /* the same, cut up as it is read           */
    char *next;
};

static inline bool golden_open(struct golden *table, const char *name)
{
    const char *dir = getenv("top_srcdir");
    char path[512];

    snprintf(path, sizeof path, "%s/tests/golden/%s", dir ? dir : ".", name);
    memset(table, 0, sizeof *table);
    table->file = fopen(path, "r");
    return table->file != NULL;
}

static inline void golden_close(struct golden *table)
{
    fclose(table->file);
}

/* Go to the next line that is a case; false at the end. */
static inline bool golden_next(struct golden *table)
{
    const char *made;

    while (fgets(table->line, sizeof table->line, table->file)) {
        made = strstr(table->line, "PyTorch ");
        if (table->line[0] == '#') {
            if (made && !table->origin[0])
                snprintf(table->origin, sizeof table->origin, "PyTorch %.*s",
                         (int)strcspn(made + 8, "+, \n"), made + 8);
            continue;
        }
        table->line[strcspn(table->line, "\n")] = '\0';
        memcpy(table->words, table->line, sizeof table->words);
        table->next = table->words;
        return true;
    }
    return false;
}

/* The next word of the line; "" when there are no more. */
static inline const char *golden_word(struct golden *table)
{
    char *word = table->next;

    table->next += strcspn(word, " ");
    if (*table->next)
        *table->next++ = '\0';
    return word;
}

/* "13x2" into {13, 2}; returns how many, 0 for "-". */
static inline int golden_sizes(const char *word, int64_t sizes[])
{
    int n = 0;

    while (*word >= '0' && *word <= '9') {
        char *end;

        sizes[n++] = strtoll(word, &end, 10);
        word = end + (*end == 'x');
    }
    return n;
}

static inline char *golden_format(int n, const int64_t sizes[], char *text,
                                  size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", n ? "" : "-");

    for (int d = 0; d < n && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld",
                                 d ? "x" : "", (long long)sizes[d]);
    return text;
}

/* 24 bits of FNV-1a over whole numbers, as make.py has it. */
static inline unsigned golden_hash(const double *values, int64_t n)
{
    uint32_t h = 2166136261u;

    for (int64_t i = 0; i < n; i++)
        h = (h ^ (uint32_t)(int64_t)values[i]) * 16777619u;
    return h >> 8;
}

#endif
