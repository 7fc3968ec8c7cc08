/* gpu_table.c - prints the reports of all ranks on their GPUs
 *
 * Ranks with the same sentence share a line.  So a healthy cluster of 1024
 * ranks with 8 GPUs per host needs only a few lines.
 */
#include "base/units.h"
#include "fabric/gpu.h"

#include <stdlib.h>
#include <string.h>

struct gpu_table {
    const struct dtn_gpu_report *report;
    int n;                        /* ranks                                    */
    int *ranks;                   /* [n] of a line                            */
    bool *said;                   /* [n] in an earlier line                   */
    FILE *out;
};

static void table_line(const struct gpu_table *t, int n, const char *text)
{
    char ranks[160];

    fprintf(t->out, "rank%s %s: %s\n", n > 1 ? "s" : "",
            dtn_format_ranks(t->ranks, n, ranks, sizeof ranks), text);
}

static bool is_told(const struct dtn_gpu_report *report)
{
    return report->code == 0 || report->wanted;
}

static void table_say(const struct gpu_table *t, int which)
{
    char first[DTN_GPU_WORDS], other[DTN_GPU_WORDS];

    memset(t->said, 0, (size_t)t->n * sizeof t->said[0]);
    for (int r = 0; r < t->n; r++) {
        int n = 0;

        if (t->said[r] || !is_told(&t->report[r])
            || !dtn_gpu_sentence(&t->report[r], which, first))
            continue;
        for (int i = r; i < t->n; i++) {
            dtn_gpu_sentence(&t->report[i], which, other);
            if (t->said[i] || !is_told(&t->report[i])
                || strcmp(first, other) != 0)
                continue;
            t->said[i] = true;
            t->ranks[n++] = i;
        }
        table_line(t, n, first);
    }
}

static bool same_device(const struct dtn_gpu_report *one,
                        const struct dtn_gpu_report *other)
{
    return strcmp(one->boot, other->boot) == 0
        && memcmp(one->uuid, other->uuid, sizeof one->uuid) == 0;
}

/* Ranks that have one device. */
static void table_shared(const struct gpu_table *t)
{
    memset(t->said, 0, (size_t)t->n * sizeof t->said[0]);
    for (int r = 0; r < t->n; r++) {
        int n = 0;

        for (int i = r; i < t->n && t->report[r].code == 0; i++)
            if (!t->said[i] && t->report[i].code == 0
                && same_device(&t->report[r], &t->report[i])) {
                t->said[i] = true;
                t->ranks[n++] = i;
            }
        if (n > 1)
            table_line(t, n, "they share one GPU, which does their work by "
                       "turns");
    }
}

/* Ranks of one machine that cannot see each other's processes. */
static void table_namespaces(const struct gpu_table *t)
{
    memset(t->said, 0, (size_t)t->n * sizeof t->said[0]);
    for (int r = 0; r < t->n; r++) {
        const struct dtn_gpu_report *first = &t->report[r];
        int n = 0;

        for (int i = r + 1; i < t->n && first->code == 0; i++)
            if (!t->said[i] && t->report[i].code == 0
                && strcmp(first->boot, t->report[i].boot) == 0
                && first->pid_namespace != t->report[i].pid_namespace) {
                t->said[i] = true;
                t->ranks[n++] = i;
            }
        if (n > 0)
            table_line(t, n, "on the machine of lower ranks, but in another "
                       "PID namespace: they cannot map each other's memory of "
                       "GPUs, which is staged (start containers with "
                       "--pid=host)");
    }
}

void dtn_gpu_table_write(const struct dtn_gpu_report reports[], int n,
                         FILE *out)
{
    struct gpu_table table = {
        .report = reports, .n = n, .out = out,
        .ranks = calloc((size_t)n, sizeof *table.ranks),
        .said = calloc((size_t)n, sizeof *table.said)
    };

    if (table.ranks && table.said) {
        for (int i = 0; i < DTN_GPU_SENTENCES; i++)
            table_say(&table, i);
        table_shared(&table);
        table_namespaces(&table);
    }
    free(table.ranks);
    free(table.said);
}
