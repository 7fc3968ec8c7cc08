/* golden.c - reading the tables of tests/golden */
#include "tests/support/golden.h"

#include <stdlib.h>
#include <string.h>

bool golden_open(struct golden *table, const char *name)
{
    const char *dir = getenv("top_srcdir");
    char path[512];

    snprintf(path, sizeof path, "%s/tests/golden/%s", dir ? dir : ".", name);
    memset(table, 0, sizeof *table);
    table->file = fopen(path, "r");
    return table->file != NULL;
}

void golden_close(struct golden *table)
{
    fclose(table->file);
}

bool golden_next(struct golden *table)
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

const char *golden_word(struct golden *table)
{
    char *word = table->next;

    table->next += strcspn(word, " ");
    if (*table->next)
        *table->next++ = '\0';
    return word;
}

int golden_sizes(const char *word, int64_t sizes[])
{
    int n = 0;

    while (*word >= '0' && *word <= '9') {
        char *end;

        sizes[n++] = strtoll(word, &end, 10);
        word = end + (*end == 'x');
    }
    return n;
}

char *golden_format(int n, const int64_t sizes[], char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", n ? "" : "-");

    for (int d = 0; d < n && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld",
                                 d ? "x" : "", (long long)sizes[d]);
    return text;
}

unsigned golden_hash(const double *values, int64_t n)
{
    uint32_t h = 2166136261u;

    for (int64_t i = 0; i < n; i++)
        h = (h ^ (uint32_t)(int64_t)values[i]) * 16777619u;
    return h >> 8;
}
