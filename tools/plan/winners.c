/* winners.c - which algorithm is the fastest, by bytes and ranks
 *
 *   $ dtensor-plan allreduce --winners 64,1024 --per-host 8
 *
 * A cell is the algorithm with the least predicted time, and how many times as
 * long the next one takes.  A column is a mesh of so many ranks: of as many as
 * there are, or of the first ones of a cluster file.
 */
#include "tools/draw/bytes.h"
#include "tools/plan/plan.h"

#include <stdlib.h>

enum { ROWS_MAX = 8, COLUMNS_MAX = 8 };

/* Bytes of the first row, and of each next one. */
static const uint64_t row_first = 64, row_factor = 8;

struct cell {
    const char *name;             /* NULL: no such call                       */
    double factor;                /* of the next one; 0: there is none        */
};

struct table {
    int rows, columns;
    char mesh[COLUMNS_MAX][12];   /* ranks                                    */
    uint64_t bytes[ROWS_MAX];
    struct cell cell[ROWS_MAX][COLUMNS_MAX];
};

static int cell_fill(const struct plan_job *job, struct dtensor_call *call,
                     uint64_t bytes, struct cell *cell)
{
    const size_t unit = plan_call_unit(call, dtensor_mesh_size(job->mesh));
    struct dtensor_way ways[2];
    struct dtensor_error err;
    int n;

    if (bytes % unit != 0)
        return PLAN_GOOD;
    call->count = bytes / unit;
    if (dtensor_call_ways(job->mesh, call, ways, 2, &n, &err) != 0) {
        fprintf(stderr, "%s: %s\n", plan_program, err.text);
        return PLAN_BAD;
    }
    cell->name = ways[0].name;
    if (n > 1)
        cell->factor = ways[1].ns / ways[0].ns;
    return PLAN_GOOD;
}

static int column_fill(const struct plan_options *opt, struct table *table,
                       int column)
{
    struct plan_options mesh = *opt;
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE };
    struct plan_job job;
    uint64_t bytes;
    int status;

    mesh.collective = NULL;
    mesh.mesh = table->mesh[column];
    status = plan_job_open(&mesh, &job);
    if (status == PLAN_GOOD)
        status = plan_call(opt, job.mesh, opt->collective, NULL, &call, &bytes);
    for (int r = 0; r < table->rows && status == PLAN_GOOD; r++)
        status = cell_fill(&job, &call, table->bytes[r],
                           &table->cell[r][column]);
    plan_job_close(&job);
    return status;
}

/* "64,1024" into columns. */
static int columns_read(const char *text, struct table *table)
{
    size_t length;

    do {
        length = strcspn(text, ",");
        if (length < 1 || length >= sizeof table->mesh[0] || *text == '0'
            || strspn(text, "0123456789") != length
            || table->columns == COLUMNS_MAX)
            return plan_usage("--winners: expected up to %d numbers of ranks "
                              "such as 64,1024", COLUMNS_MAX);
        memcpy(table->mesh[table->columns++], text, length);
        text += length;
    } while (*text++ == ',');
    return PLAN_GOOD;
}

static void table_print(const struct table *table,
                        const struct plan_options *opt, FILE *stream)
{
    char bytes[32];

    fprintf(stream, "%s%s%s: fastest by prediction, and the next one's time "
            "over it\n%10s", opt->collective,
            opt->per_host ? ", ranks on a host: " : "",
            opt->per_host ? opt->per_host : "", "ranks");
    for (int c = 0; c < table->columns; c++)
        fprintf(stream, " %19s", table->mesh[c]);
    fputc('\n', stream);
    for (int r = 0; r < table->rows; r++) {
        fprintf(stream, "%10s", draw_bytes((double)table->bytes[r], bytes,
                                           sizeof bytes));
        for (int c = 0; c < table->columns; c++) {
            const struct cell *cell = &table->cell[r][c];

            if (cell->factor > 0)
                fprintf(stream, " %13s %5.2f", cell->name, cell->factor);
            else
                fprintf(stream, " %19s", cell->name ? cell->name : "-");
        }
        fputc('\n', stream);
    }
}

int plan_winners(const struct plan_options *opt, FILE *stream)
{
    struct table table = { .rows = ROWS_MAX };
    int status = columns_read(opt->winners, &table);
    uint64_t bytes = row_first;

    for (int r = 0; r < table.rows; r++, bytes *= row_factor)
        table.bytes[r] = bytes;
    if (strcmp(opt->collective, "barrier") == 0) {
        table.rows = 1;
        table.bytes[0] = 0;
    }
    for (int c = 0; c < table.columns && status == PLAN_GOOD; c++)
        status = column_fill(opt, &table, c);
    if (status == PLAN_GOOD)
        table_print(&table, opt, stream);
    return status;
}
