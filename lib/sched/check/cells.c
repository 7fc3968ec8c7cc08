/* cells.c - the checker's memory: what is in it and who may access it
 *
 * Each element is a cell with a symbolic value, such as "element 5 of ranks 0,
 * 1 and 3, added in this order", and stamps: who wrote it, who has read it, and
 * in which epoch.  Two accesses, one of them a write, are a race unless the
 * later actor knew of the earlier access.  Example: rank 0 writes a cell in its
 * epoch 4, and rank 1 reads it, but knows rank 0's epochs only up to 3.  This
 * run happens to write first; some other run reads first.  So one run finds the
 * races of all runs.
 *
 * A put is in flight from its step until the receiver has waited for a signal
 * that the sender sent after the put.  Until then nobody, not even the sender,
 * may access the cell.  From then on the cell counts as written by the
 * receiver.
 *
 * In place, IN and OUT are windows on the same cells.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "sched/check.h"
#include "sched/check/check.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct stamp {
    int writer;
    uint32_t written;             /* epoch of the writer at the last write    */
    uint32_t owner_read;          /* owner's epoch at its last read; 0: none  */
    int busy;                     /* puts that may still read it              */
    bool flight;                  /* written by a put that has not landed     */
    bool peers_read;              /* some entry of reads[] is newer than      */
                                  /* `written`                                */
};

struct dtn_cells_rank {
    int64_t count[DTN_NSPACES];
    int64_t base[DTN_NSPACES];    /* first cell of each space                 */
    int64_t begin[DTN_NSPACES], end[DTN_NSPACES];  /* elements exposed to     */
                                                   /* peers                   */
    size_t ncells;
    struct dtn_cell *values;      /* [ncells]                                 */
    struct stamp *stamps;         /* [ncells]                                 */
    uint32_t *reads;              /* [ncells][n] epochs of peers' last reads  */
};

static const char *const space_names[DTN_NSPACES] = {
    "IN", "OUT", "TMP", "ACC"
};

/* ------------------------------------------------------------------ layout */

/* Set the windows of a rank on its cells; in place IN and OUT overlap. */
static void rank_layout(struct dtn_cells_rank *rank,
                        const struct dtn_sched *sched, int64_t elem_bytes,
                        const int64_t *alias)
{
    int64_t end = 0;

    for (int s = 0; s < DTN_NSPACES; s++) {
        rank->count[s] = (int64_t)sched->bytes[s] / elem_bytes;
        rank->begin[s] = (int64_t)sched->exposed_range[s].offset / elem_bytes;
        rank->end[s] = rank->begin[s]
                     + (int64_t)sched->exposed_range[s].bytes / elem_bytes;
        if (!sched->exposed[s])
            rank->end[s] = rank->begin[s];
        else if (sched->exposed_range[s].bytes == 0)
            rank->end[s] = rank->count[s];
    }
    if (alias) {
        int64_t shift = *alias / elem_bytes;

        rank->base[DTN_IN] = shift < 0 ? -shift : 0;
        rank->base[DTN_OUT] = shift < 0 ? 0 : shift;
    } else {
        rank->base[DTN_OUT] = rank->count[DTN_IN];
    }
    for (int s = DTN_IN; s <= DTN_OUT; s++)
        if (rank->base[s] + rank->count[s] > end)
            end = rank->base[s] + rank->count[s];
    rank->base[DTN_TMP] = end;
    rank->base[DTN_ACC] = end + rank->count[DTN_TMP];
    rank->ncells = (size_t)(rank->base[DTN_ACC] + rank->count[DTN_ACC]);
}

int dtn_cells_init(struct dtn_cells *cells, const struct dtn_sched scheds[],
                   int n, const int64_t alias[], struct dtensor_error *err)
{
    memset(cells, 0, sizeof *cells);
    cells->n = n;
    cells->elem_bytes = dtensor_dtype_size(scheds[0].dtype);
    cells->ranks = calloc((size_t)n, sizeof *cells->ranks);
    if (!cells->ranks)
        return dtn_fail_nomem(err, "check", (size_t)n * sizeof *cells->ranks);
    for (int r = 0; r < n; r++) {
        struct dtn_cells_rank *rank = &cells->ranks[r];
        size_t room;

        rank_layout(rank, &scheds[r], (int64_t)cells->elem_bytes,
                    alias ? &alias[r] : NULL);
        room = rank->ncells + 1;                         /* never 0 bytes     */
        rank->values = calloc(room, sizeof *rank->values);
        rank->stamps = calloc(room, sizeof *rank->stamps);
        rank->reads = calloc(room, (size_t)n * sizeof *rank->reads);
        if (!rank->values || !rank->stamps || !rank->reads)
            return dtn_fail_nomem(err, "check", room * (sizeof *rank->values
                                  + sizeof *rank->stamps
                                  + (size_t)n * sizeof *rank->reads));
    }
    return 0;
}

void dtn_cells_fini(struct dtn_cells *cells)
{
    for (int r = 0; cells->ranks && r < cells->n; r++) {
        free(cells->ranks[r].values);
        free(cells->ranks[r].stamps);
        free(cells->ranks[r].reads);
    }
    free(cells->ranks);
    cells->ranks = NULL;
}

static bool cells_bad(struct dtn_cells *cells, const char *fmt, ...)
    DTN_PRINTF(2, 3);

static bool cells_bad(struct dtn_cells *cells, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(cells->why, sizeof cells->why, fmt, ap);
    va_end(ap);
    return false;
}

static bool spot_inside(const struct dtn_cells *cells, struct dtn_spot spot)
{
    return spot.index >= 0
        && spot.index < cells->ranks[spot.rank].count[spot.space];
}

static size_t spot_cell(const struct dtn_cells *cells, struct dtn_spot spot)
{
    return (size_t)(cells->ranks[spot.rank].base[spot.space] + spot.index);
}

/* Record what is wrong with a spot; `fmt` follows the place in the text. */
static bool spot_bad(struct dtn_cells *cells, struct dtn_spot spot,
                     const char *what, int other)
{
    return cells_bad(cells, "%s+%lld of rank %d %s rank %d",
                     space_names[spot.space],
                     (long long)spot.index * (long long)cells->elem_bytes,
                     spot.rank, what, other);
}

/* May the actor access this spot at all? */
static bool spot_allowed(struct dtn_cells *cells, struct dtn_actor actor,
                         struct dtn_spot spot)
{
    const struct dtn_cells_rank *rank = &cells->ranks[spot.rank];

    if (!spot_inside(cells, spot))
        return cells_bad(cells, "%s+%lld is outside the %lld bytes of rank %d",
                         space_names[spot.space],
                         (long long)spot.index * (long long)cells->elem_bytes,
                         (long long)rank->count[spot.space]
                         * (long long)cells->elem_bytes, spot.rank);
    if (actor.rank != spot.rank && (spot.index < rank->begin[spot.space]
                                    || spot.index >= rank->end[spot.space]))
        return spot_bad(cells, spot, "is not exposed to", actor.rank);
    return true;
}

/* ---------------------------------------------------------------- accesses */

/* Does the actor know the last write? */
static bool after_write(struct dtn_cells *cells, struct dtn_actor actor,
                        struct dtn_spot spot, const struct stamp *stamp)
{
    if (stamp->flight)
        return spot_bad(cells, spot, "is still being put by", stamp->writer);
    if (stamp->written > actor.clock[stamp->writer])
        return spot_bad(cells, spot, "was written, with no signal since, by",
                        stamp->writer);
    return true;
}

/* Does the actor know all reads? */
static bool after_reads(struct dtn_cells *cells, struct dtn_actor actor,
                        struct dtn_spot spot, const struct stamp *stamp)
{
    const uint32_t *reads = cells->ranks[spot.rank].reads
                          + spot_cell(cells, spot) * (size_t)cells->n;

    if (stamp->busy > 0)
        return spot_bad(cells, spot, "is the source of a put not flushed by",
                        spot.rank);
    if (stamp->owner_read > actor.clock[spot.rank])
        return spot_bad(cells, spot, "was read, with no signal since, by",
                        spot.rank);
    for (int q = 0; stamp->peers_read && q < cells->n; q++)
        if (q != actor.rank && reads[q] > actor.clock[q])
            return spot_bad(cells, spot, "was read, with no signal since, by",
                            q);
    return true;
}

/* The stamp of a cell that the actor may access, if it knows the last write. */
static struct stamp *spot_open(struct dtn_cells *cells, struct dtn_actor actor,
                               struct dtn_spot spot)
{
    struct stamp *stamp;

    if (!spot_allowed(cells, actor, spot))
        return NULL;
    stamp = &cells->ranks[spot.rank].stamps[spot_cell(cells, spot)];
    return after_write(cells, actor, spot, stamp) ? stamp : NULL;
}

bool dtn_cells_read(struct dtn_cells *cells, struct dtn_actor actor,
                    struct dtn_spot spot, struct dtn_cell *value)
{
    struct dtn_cells_rank *rank = &cells->ranks[spot.rank];
    struct stamp *stamp = spot_open(cells, actor, spot);
    size_t cell;

    if (!stamp)
        return false;
    cell = spot_cell(cells, spot);
    if (!rank->values[cell].defined)
        return spot_bad(cells, spot, "holds nothing yet: read by", actor.rank);
    if (actor.rank == spot.rank) {
        stamp->owner_read = actor.clock[actor.rank];
    } else {
        stamp->peers_read = true;
        rank->reads[cell * (size_t)cells->n + (size_t)actor.rank]
            = actor.clock[actor.rank];
    }
    *value = rank->values[cell];
    return true;
}

bool dtn_cells_write(struct dtn_cells *cells, struct dtn_actor actor,
                     struct dtn_spot spot, const struct dtn_cell *value)
{
    struct stamp *stamp = spot_open(cells, actor, spot);

    if (!stamp || !after_reads(cells, actor, spot, stamp))
        return false;
    stamp->writer = actor.rank;
    stamp->written = actor.clock[actor.rank];
    stamp->peers_read = false;      /* later actors know these reads too      */
    cells->ranks[spot.rank].values[spot_cell(cells, spot)] = *value;
    return true;
}

bool dtn_cells_launch(struct dtn_cells *cells, struct dtn_actor actor,
                      struct dtn_spot dst, struct dtn_spot src)
{
    struct dtn_cell value;

    if (!dtn_cells_read(cells, actor, src, &value)
        || !dtn_cells_write(cells, actor, dst, &value))
        return false;
    cells->ranks[src.rank].stamps[spot_cell(cells, src)].busy++;
    cells->ranks[dst.rank].stamps[spot_cell(cells, dst)].flight = true;
    return true;
}

void dtn_cells_land(struct dtn_cells *cells, struct dtn_actor receiver,
                    struct dtn_spot dst)
{
    struct stamp *stamp = &cells->ranks[dst.rank].stamps[spot_cell(cells, dst)];

    stamp->flight = false;
    stamp->writer = receiver.rank;
    stamp->written = receiver.clock[receiver.rank];
}

void dtn_cells_free(struct dtn_cells *cells, struct dtn_actor sender,
                    struct dtn_spot src)
{
    struct stamp *stamp = &cells->ranks[src.rank].stamps[spot_cell(cells, src)];

    stamp->busy--;
    stamp->owner_read = sender.clock[sender.rank];
}

const struct dtn_cell *dtn_cells_peek(const struct dtn_cells *cells,
                                      struct dtn_spot spot)
{
    return spot_inside(cells, spot)
         ? &cells->ranks[spot.rank].values[spot_cell(cells, spot)] : NULL;
}

int64_t dtn_cells_distance(const struct dtn_cells *cells, struct dtn_spot a,
                           struct dtn_spot b)
{
    const int64_t *base = cells->ranks[a.rank].base;

    return base[b.space] + b.index - base[a.space] - a.index;
}

/* ------------------------------------------------------------------ rounds */

/* A hash that depends on the order of the two (SplitMix64 finalizer). */
static uint64_t tree_mix(uint64_t left, uint64_t right)
{
    uint64_t x = left * 0x9e3779b97f4a7c15u + (right ^ right >> 29) + 1;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t dtn_check_tree(int n, int64_t index)
{
    uint64_t tree = tree_mix(0, (uint64_t)index);

    for (int r = 1; r < n; r++)
        tree = tree_mix(tree, tree_mix((uint64_t)r, (uint64_t)index));
    return tree;
}

void dtn_cells_begin(struct dtn_cells *cells, struct dtn_actor owner)
{
    struct dtn_cells_rank *rank = &cells->ranks[owner.rank];
    struct dtn_cell *in = rank->values + rank->base[DTN_IN];

    memset(rank->values, 0, rank->ncells * sizeof *rank->values);
    for (size_t i = 0; i < rank->ncells; i++)
        rank->stamps[i] = (struct stamp){ .writer = owner.rank,
                                  .written = owner.clock[owner.rank] };
    for (int64_t i = 0; i < rank->count[DTN_IN]; i++) {
        in[i].defined = true;
        in[i].index = i;
        in[i].ranks[owner.rank / 32] = 1u << owner.rank % 32;
        in[i].tree = tree_mix((uint64_t)owner.rank, (uint64_t)i);
    }
}

bool dtn_cells_end(struct dtn_cells *cells, struct dtn_actor owner)
{
    const struct dtn_cells_rank *rank = &cells->ranks[owner.rank];

    for (int s = 0; s < DTN_NSPACES; s++)
        for (int64_t i = 0; i < rank->count[s]; i++) {
            struct dtn_spot spot = { owner.rank, (enum dtn_space)s, i };
            const struct stamp *stamp = &rank->stamps[spot_cell(cells, spot)];

            if (!after_write(cells, owner, spot, stamp)
                || !after_reads(cells, owner, spot, stamp))
                return false;
        }
    return true;
}

/* ------------------------------------------------------------------ values */

bool dtn_cell_term(struct dtn_cells *cells, const struct dtn_cell *term)
{
    return !term->finalised || cells_bad(cells, "reduces what was divided or "
                                         "rounded already");
}

bool dtn_cell_reduce(struct dtn_cells *cells, struct dtn_cell *acc,
                     const struct dtn_cell *term)
{
    if (acc->index >= 0 && term->index >= 0 && acc->index != term->index)
        return cells_bad(cells, "reduces element %lld with element %lld",
                         (long long)acc->index, (long long)term->index);
    for (size_t w = 0; w < DTN_COUNT(acc->ranks); w++) {
        if (acc->ranks[w] & term->ranks[w])
            return cells_bad(cells, "reduces element %lld of rank %d in twice",
                             (long long)acc->index, (int)w * 32
                             + __builtin_ctz(acc->ranks[w] & term->ranks[w]));
        acc->ranks[w] |= term->ranks[w];
    }
    if (acc->index < 0)
        acc->index = term->index;
    acc->tree = tree_mix(acc->tree, term->tree);
    return true;
}

bool dtn_cell_scale(struct dtn_cells *cells, struct dtn_cell *acc)
{
    if (acc->finalised)
        return cells_bad(cells, "divides a second time");
    acc->finalised = true;
    return true;
}

struct dtn_cell dtn_cell_neutral(void)
{
    return (struct dtn_cell){ .defined = true, .index = -1, .tree = 1 };
}
