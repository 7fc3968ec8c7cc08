/* test_golden.c - the tables of a real PyTorch, compared without one
 *
 * tests/golden/make.py lets PyTorch make tensors and redistribute them on up
 * to eight ranks and writes down what each rank ends with; here eight ranks of
 * ours do the same.  A line such as
 *
 *     13x2 4x2 S(0),S(0) 2x2@0x0:f0e9a3 2x2@2x0:...
 *
 * is a tensor of 13 x 2 on a mesh of 4 x 2 and, for each rank of the mesh, its
 * local shape, global offset and a hash of the global indices of its elements.
 *
 * Without this test, layouts and results could differ from PyTorch's.
 */
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/golden.h"
#include "tests/support/tensor_job.h"

#include <stdbool.h>
#include <string.h>

#define WORLD 8
#define ELEMS 160

/* A line: the tensor and its mesh, and what is left to read. */
struct entry {
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    int64_t numel;
    int index;                         /* position of this rank, or -1        */
};

static void entry_read(struct job *job, struct golden *table,
                       struct entry *entry)
{
    int64_t sizes[DTENSOR_MAX_DIMS];
    int ranks[DTENSOR_MAX_DIMS], n;

    *entry = (struct entry){ .numel = 1 };
    entry->spec.dtype = DTENSOR_F64;
    entry->spec.ndim = golden_sizes(golden_word(table), entry->spec.shape);
    for (int d = 0; d < entry->spec.ndim; d++)
        entry->numel *= entry->spec.shape[d];
    need(entry->numel <= ELEMS, "%s: a tensor of over %d elements",
         table->line, ELEMS);
    n = golden_sizes(golden_word(table), sizes);
    for (int m = 0; m < n; m++)
        ranks[m] = (int)sizes[m];
    good(dtensor_mesh_create(job->ctx, n, ranks, NULL, NULL, &entry->mesh,
                             &job->err));
    entry->spec.mesh = entry->mesh;
    entry->index = dtensor_mesh_index(entry->mesh, job->rank);
}

/* The next word of the line as placements of the spec. */
static void entry_place(struct job *job, struct golden *table,
                        struct dtensor_spec *spec)
{
    good(dtensor_placements_parse(spec->mesh, golden_word(table), spec->ndim,
                                  spec->placement, &job->err));
    good(dtensor_spec_check(spec, &job->err));
}

/* The word of this rank among those of all ranks of the mesh. */
static const char *entry_own(struct golden *table, const struct entry *entry)
{
    for (int i = 0; i < entry->index; i++)
        golden_word(table);
    return golden_word(table);
}

/* -------------------------------------------------------------- layouts --- */

/* Element g of every tensor here is g. */
static struct dtensor *entry_indices(struct job *job,
                                     const struct dtensor_spec *spec,
                                     int64_t numel)
{
    struct dtensor *t = NULL;
    double full[ELEMS + 1];

    for (int64_t g = 0; g < numel; g++)
        full[g] = (double)g;
    good(dtensor_distribute(spec, full, -1, &t, &job->err));
    return t;
}

static int64_t elements_of(const struct dtensor *t)
{
    return (int64_t)(dtensor_local_bytes(t) / sizeof(double));
}

static void layout(struct job *job, struct golden *table)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    char local[64], at[64], mine[160];
    struct entry entry;
    struct dtensor *t;

    entry_read(job, table, &entry);
    entry_place(job, table, &entry.spec);
    if (entry.index < 0)
        return;
    dtensor_spec_local(&entry.spec, job->rank, shape, offset);
    t = entry_indices(job, &entry.spec, entry.numel);
    snprintf(mine, sizeof mine, "%s@%s:%06x",
             golden_format(entry.spec.ndim, shape, local, sizeof local),
             golden_format(entry.spec.ndim, offset, at, sizeof at),
             golden_hash(dtensor_to_local(t), elements_of(t)));
    need(strcmp(mine, entry_own(table, &entry)) == 0, "%s: rank %d has %s",
         table->line, job->rank, mine);
    dtensor_destroy(t);
}

/* ------------------------------------------------------- redistribution --- */

/* Which of its terms this rank holds; *opp is the reduction. */
static int term_of(const struct job *job, const struct dtensor_spec *spec,
                   enum dtensor_redop *opp)
{
    int coord[DTENSOR_MAX_DIMS], term = 0;

    *opp = DTENSOR_SUM;
    dtensor_mesh_coord(spec->mesh, job->rank, coord);
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++) {
        if (spec->placement[m].kind != DTENSOR_PARTIAL)
            continue;
        *opp = spec->placement[m].op;
        term = term * dtensor_mesh_dim_size(spec->mesh, m) + coord[m];
    }
    return term;
}

/* What make.py calls value(): multiples of 840, or 1 and 2 to be multiplied. */
static double term_value(int term, int64_t g, enum dtensor_redop op)
{
    if (op == DTENSOR_PROD)
        return (double)(1 + (g + term) % 2);
    return 840.0 * (double)((7 * g + 11 * term) % 31 + 1);
}

static struct dtensor *entry_source(struct job *job, const struct entry *entry)
{
    struct dtensor_spec whole = entry->spec;
    struct dtensor *indices, *t = NULL;
    enum dtensor_redop op = DTENSOR_SUM;
    double *local;
    int term;

    for (int m = 0; m < dtensor_mesh_ndim(entry->mesh); m++)
        if (whole.placement[m].kind == DTENSOR_PARTIAL)
            whole.placement[m].kind = DTENSOR_REPLICATE;
    indices = entry_indices(job, &whole, entry->numel);
    local = dtensor_to_local(indices);
    term = entry->index < 0 ? 0 : term_of(job, &entry->spec, &op);
    for (int64_t i = 0; i < elements_of(indices); i++)
        local[i] = term_value(term, (int64_t)local[i], op);
    good(dtensor_from_local(&entry->spec, local, dtensor_local_bytes(indices),
                            &t, &job->err));
    dtensor_destroy(indices);
    return t;
}

static void redistribute(struct job *job, struct golden *table)
{
    struct dtensor_spec dst;
    struct dtensor *a, *b = NULL;
    struct entry entry;
    char mine[8];

    entry_read(job, table, &entry);
    dst = entry.spec;
    entry_place(job, table, &entry.spec);
    entry_place(job, table, &dst);
    a = entry_source(job, &entry);
    good(dtensor_redistribute_to(a, &dst, &b, &job->err));
    snprintf(mine, sizeof mine, "%06x",
             golden_hash(dtensor_to_local(b), elements_of(b)));
    need(entry.index < 0 || strcmp(mine, entry_own(table, &entry)) == 0,
         "%s: rank %d has %s (%s)", table->line, job->rank, mine,
         dtensor_last_plan(job->ctx));
    dtensor_destroy(b);
    dtensor_destroy(a);
}

/* ----------------------------------------------------------------- runs --- */

struct run {
    const char *file;
    void (*line)(struct job *job, struct golden *table);
    const char *claim;
};

static void every_line(int rank, int n, void *arg)
{
    const struct run *run = arg;
    struct job the_job, *job = &the_job;
    struct golden table;

    job_open(job, rank, n, NULL);
    need(golden_open(&table, run->file), "%s cannot be read", run->file);
    while (golden_next(&table))
        if (rounds_pick())
            run->line(job, &table);
    golden_close(&table);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const struct run runs[] = {
        { "layout.txt", layout, "local shapes, offsets and elements" },
        { "redistribute.txt", redistribute, "redistributed tensors" }
    };
    struct golden table;

    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        int lines = 0;

        if (!golden_open(&table, runs[i].file)) {
            ok(false, "%s can be read", runs[i].file);
            continue;
        }
        while (golden_next(&table))
            lines++;
        ok(ranks_run(WORLD, 120, every_line, (void *)(uintptr_t)&runs[i],
                     NULL) == 0 && lines > 0,
           "%s of %d cases are those of %s", runs[i].claim, lines,
           table.origin);
        golden_close(&table);
    }
    return done();
}
