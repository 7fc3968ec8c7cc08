/* table.c - print the reports of all ranks
 *
 *        rank  host  device  state   link  rate      mtu    lid  gid
 *           0  n0    rxe0:1  ACTIVE  RoCE  100 Gb/s  4096     -  1 v2 10.0.0.1
 *           1  n1    rxe0:1  ACTIVE  RoCE  100 Gb/s  1024*    -  1 v2 10.0.0.2
 *     rank 1: MTU 1024, most have 4096: connections between them use the ...
 *
 * A rank with several rails has one row for each.  An array describes the
 * columns: the heading, and a function that writes a cell.  Each mark `*` is
 * explained below the table by a sentence, printed once for all ranks to which
 * it applies.
 */
#include "base/compiler.h"
#include "base/units.h"
#include "cluster/cluster.h"
#include "fabric/fabric.h"
#include "transport/device.h"
#include "transport/memlock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct table {
    const struct dtensor_cluster *cluster;
    const struct dtn_fabric_report *report;
    int nrails, nrows;            /* rails of a rank, of all                  */
    struct dtn_fabric_majority usual;
    FILE *out;
    int *ranks;                   /* [world_size] scratch                     */
    bool *said;                   /* [nrows] scratch                          */
};

#define CELL 96

static const struct dtn_host *table_host(const struct table *table, int row)
{
    const struct dtn_host *host = table->cluster->hosts;
    int rank = row / table->nrails;

    while (rank >= host->first_rank + host->nranks)
        host++;
    return host;
}

/* ----------------------------------------------------------- columns --- */

static void cell_rank(const struct table *t, int r, char *buf)
{
    snprintf(buf, CELL, "%7d", r / t->nrails);
}

static void cell_host(const struct table *t, int r, char *buf)
{
    snprintf(buf, CELL, "%.90s", table_host(t, r)->name);
}

static void cell_device(const struct table *t, int r, char *buf)
{
    snprintf(buf, CELL, "%.64s:%d", t->report[r].device, t->report[r].port);
}

static void cell_state(const struct table *t, int r, char *buf)
{
    snprintf(buf, CELL, "%s", dtn_port_state_name(t->report[r].state));
}

static void cell_link(const struct table *t, int r, char *buf)
{
    snprintf(buf, CELL, "%s", t->report[r].ethernet ? "RoCE" : "IB");
}

static void cell_rate(const struct table *t, int r, char *buf)
{
    dtn_rate_text(t->report[r].rate_mbps, buf, CELL);
}

static void cell_mtu(const struct table *t, int r, char *buf)
{
    snprintf(buf, CELL, "%d", t->report[r].mtu);
}

static void cell_lid(const struct table *t, int r, char *buf)
{
    snprintf(buf, CELL, t->report[r].lid ? "%d" : "-", t->report[r].lid);
}

static void cell_gid(const struct table *t, int r, char *buf)
{
    const struct dtn_fabric_report *report = &t->report[r];
    char text[64];

    snprintf(buf, CELL, report->gid_index < 0 ? "-" : "%d", report->gid_index);
    for (int i = 0; i < report->ngids && i < DTN_FABRIC_GIDS; i++)
        if (report->gid[i].index == report->gid_index)
            snprintf(buf, CELL, "%d %s %s", report->gid_index,
                     dtn_gid_type_name(report->gid[i].type),
                     dtn_gid_text(report->gid[i].raw, text, sizeof text));
}

static void cell_memlock(const struct table *t, int r, char *buf)
{
    dtn_memlock_text(t->report[r].memlock, buf, CELL);
}

static const struct column {
    const char *heading;
    void (*write)(const struct table *t, int row, char *buf);
    unsigned marks;               /* any of these puts a mark behind it       */
    bool always;                  /* also of a rank without a device          */
} columns[] = {
    { "   rank", cell_rank, 0, true },
    { "host", cell_host, 0, true },
    { "device", cell_device, DTN_FABRIC_DEVICE, false },
    { "state", cell_state, DTN_FABRIC_STATE, false },
    { "link", cell_link, DTN_FABRIC_LINK, false },
    { "rate", cell_rate, DTN_FABRIC_RATE, false },
    { "mtu", cell_mtu, DTN_FABRIC_MTU, false },
    { "lid", cell_lid, 0, false },
    { "gid", cell_gid, DTN_FABRIC_GID, false },
    { "memlock", cell_memlock, DTN_FABRIC_MEMLOCK, true }
};
#define NCOLUMNS DTN_COUNT(columns)

static void column_cell(const struct table *t, const struct column *column,
                        int row, char buf[CELL + 1])
{
    unsigned marks = dtn_fabric_marks(&t->report[row], &t->usual);

    strcpy(buf, "-");
    if (column->always || t->report[row].device[0])
        column->write(t, row, buf);
    if (marks & column->marks)
        strcat(buf, "*");
}

static void table_rows(const struct table *t)
{
    int width[NCOLUMNS];
    char cell[CELL + 1];

    for (size_t c = 0; c < NCOLUMNS; c++) {
        width[c] = (int)strlen(columns[c].heading);
        for (int r = 0; r < t->nrows; r++) {
            column_cell(t, &columns[c], r, cell);
            if ((int)strlen(cell) > width[c])
                width[c] = (int)strlen(cell);
        }
    }
    for (int r = -1; r < t->nrows; r++)
        for (size_t c = 0; c < NCOLUMNS; c++) {
            bool last = c + 1 == NCOLUMNS;

            if (r >= 0)
                column_cell(t, &columns[c], r, cell);
            fprintf(t->out, "%-*s%s", last ? 0 : width[c],
                    r < 0 ? columns[c].heading : cell, last ? "\n" : "  ");
        }
}

/* --------------------------------------------------------- sentences --- */

#define SENTENCE 600

static void say_device(const struct table *t, int r, char *buf)
{
    snprintf(buf, SENTENCE, "%s", t->report[r].why);
}

static void say_link(const struct table *t, int r, char *buf)
{
    static const char *const names[] = { "InfiniBand", "RoCE" };
    int here = t->report[r].ethernet != 0;

    snprintf(buf, SENTENCE, "%s, most have %s: nothing leads from one to the "
             "other (see hca)", names[here], names[!here]);
}

static void say_memlock(const struct table *t, int r, char *buf)
{
    char have[32], need[32];

    snprintf(buf, SENTENCE, "%s of memory may be locked, rc needs %s before "
             "any tensor (set ulimit -l unlimited; for Slurm see "
             "PropagateResourceLimitsExcept in slurm.conf)",
             dtn_memlock_text(t->report[r].memlock, have, sizeof have),
             dtn_memlock_text(t->report[r].need, need, sizeof need));
}

static void say_gid(const struct table *t, int r, char *buf)
{
    const char *why = strstr(t->report[r].why, "GID: ");

    snprintf(buf, SENTENCE, "GID %d: %s", t->report[r].gid_index,
             why ? why + 5 : t->report[r].why);
}

static void say_mtu(const struct table *t, int r, char *buf)
{
    snprintf(buf, SENTENCE, "MTU %d, most have %d: connections between them "
             "use the smaller (see the MTU of its network interface)",
             t->report[r].mtu, t->usual.mtu);
}

static void say_rate(const struct table *t, int r, char *buf)
{
    char here[32], usual[32];

    snprintf(buf, SENTENCE, "%s, most have %s (another cable, or did the link "
             "come up with fewer lanes?)",
             dtn_rate_text(t->report[r].rate_mbps, here, sizeof here),
             dtn_rate_text(t->usual.rate_mbps, usual, sizeof usual));
}

static void say_choice(const struct table *t, int r, char *buf)
{
    snprintf(buf, SENTENCE, "%s:%d, %s", t->report[r].device, t->report[r].port,
             t->report[r].why);
}

/* The limit of locked memory is the same for all rails of a rank; it is
 * reported for the first only.
 */
static bool table_marked(const struct table *t, int row, unsigned mark)
{
    const struct dtn_fabric_report *report = &t->report[row];

    if (mark == DTN_FABRIC_MEMLOCK && row % t->nrails > 0)
        return false;
    return mark ? dtn_fabric_marks(report, &t->usual) & mark
                : report->device[0] && report->code == 0;
}

/* Print a sentence once for all ranks that have this mark on the same rail and
 * need the same sentence.  Mark 0: the ranks with a choice.
 */
static void table_say(const struct table *t, unsigned mark,
                      void (*say)(const struct table *, int, char *))
{
    char first[SENTENCE], other[SENTENCE], ranks[160], rail[32] = "";

    memset(t->said, 0, (size_t)t->nrows * sizeof t->said[0]);
    for (int r = 0; r < t->nrows; r++) {
        int n = 0;

        if (t->said[r] || !table_marked(t, r, mark))
            continue;
        say(t, r, first);
        for (int i = r; i < t->nrows; i += t->nrails) {
            if (t->said[i] || !table_marked(t, i, mark))
                continue;
            say(t, i, other);
            if (strcmp(first, other) != 0)
                continue;
            t->said[i] = true;
            t->ranks[n++] = i / t->nrails;
        }
        if (t->nrails > 1 && mark != DTN_FABRIC_MEMLOCK)
            snprintf(rail, sizeof rail, ", rail %d", r % t->nrails);
        fprintf(t->out, "rank%s %s%s: %s\n", n > 1 ? "s" : "",
                dtn_format_ranks(t->ranks, n, ranks, sizeof ranks), rail,
                first);
    }
}

static void table_sentences(const struct table *t)
{
    static const struct {
        unsigned mark;
        void (*say)(const struct table *t, int rank, char *buf);
    } sentences[] = {
        { 0, say_choice }, { DTN_FABRIC_DEVICE, say_device },
        { DTN_FABRIC_LINK, say_link }, { DTN_FABRIC_MEMLOCK, say_memlock },
        { DTN_FABRIC_GID, say_gid }, { DTN_FABRIC_MTU, say_mtu },
        { DTN_FABRIC_RATE, say_rate }
    };

    for (size_t i = 0; i < DTN_COUNT(sentences); i++)
        table_say(t, sentences[i].mark, sentences[i].say);
}

/* -------------------------------------------------------- GID tables --- */

static bool table_gids_seen(const struct table *t, int row)
{
    int first = table_host(t, row)->first_rank * t->nrails;

    for (int r = first; r < row; r++)
        if (strcmp(t->report[r].device, t->report[row].device) == 0
            && t->report[r].port == t->report[row].port)
            return true;
    return false;
}

/* Print the GID table of each port, once for each host. */
static void table_gids(const struct table *t)
{
    char text[64];

    for (int r = 0; r < t->nrows; r++) {
        const struct dtn_fabric_report *report = &t->report[r];

        if (!report->device[0] || table_gids_seen(t, r))
            continue;
        fprintf(t->out, "GIDs of %s %s:%d:%s", table_host(t, r)->name,
                report->device, report->port, report->ngids ? "" : " none");
        for (int i = 0; i < report->ngids && i < DTN_FABRIC_GIDS; i++)
            fprintf(t->out, "%s %d %s %s", i ? "," : "", report->gid[i].index,
                    dtn_gid_type_name(report->gid[i].type),
                    dtn_gid_text(report->gid[i].raw, text, sizeof text));
        if (report->ngids > DTN_FABRIC_GIDS)
            fprintf(t->out, ", and %d more", report->ngids - DTN_FABRIC_GIDS);
        fputc('\n', t->out);
    }
}

/* ------------------------------------------------------------- whole --- */

static int table_verdict(const struct table *t)
{
    bool wanted = dtn_fabric_wanted(t->cluster);
    int world = t->cluster->world_size;
    int unfit = dtn_fabric_unfit(t->cluster, t->report, &t->usual);

    fprintf(t->out, "%d rank%s: ", world, world == 1 ? "" : "s");
    if (unfit == 0)
        fputs("all fit for rc", t->out);
    else if (unfit == world)
        fputs("none fit for rc", t->out);
    else
        fprintf(t->out, "%d not fit for rc", unfit);
    fprintf(t->out, "; the cluster file %s\n", wanted ? "asks for it"
            : "does not ask for it");
    return unfit;
}

int dtn_fabric_table_write(const struct dtensor_cluster *cluster,
                           const struct dtn_fabric_report report[], FILE *out)
{
    size_t world = (size_t)cluster->world_size;
    size_t rows = world * (size_t)dtn_fabric_rails(cluster);
    struct table table = {
        .cluster = cluster, .report = report, .out = out,
        .nrails = dtn_fabric_rails(cluster), .nrows = (int)rows,
        .ranks = calloc(world, sizeof *table.ranks),
        .said = calloc(rows, sizeof *table.said)
    };
    int unfit;

    dtn_fabric_majority(report, (int)rows, &table.usual);
    table_rows(&table);
    if (table.ranks && table.said)
        table_sentences(&table);
    table_gids(&table);
    unfit = table_verdict(&table);
    free(table.ranks);
    free(table.said);
    return unfit;
}
