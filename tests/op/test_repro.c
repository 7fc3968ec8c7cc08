/* test_repro.c - with repro an operator has the same bits on any mesh
 *
 * Every operator that can be computed, on 1, 2, 4 and 8 ranks and on 2 x 2 x 2,
 * with placements drawn at random, but no terms, which are reduced in the order
 * of the mesh.  The numbers have so many digits that every other order of a sum
 * shows.  The result, gathered, has the bits that it has on one rank.
 *
 * Without this test, a sum of an operator could depend on how many ranks there
 * are, and a run with repro end with other parameters on another cluster.
 */
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/op/draw.h"
#include "tests/op/naive.h"
#include "tests/op/row.h"
#include "tests/support/job.h"

#include <string.h>
#include <sys/mman.h>

enum { WORLD = 8, INPUTS = 6, OUTPUTS = 8, SEED = 20261127 };

static const struct row rows[] = {
#include "tests/op/computed_rows.h"
#include "tests/op/cut_rows.h"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* What one rank made of each row, and what has been compared. */
static struct shared {
    struct bits {
        int nout;                      /* outputs; 0: refused             */
        unsigned char out[OUTPUTS][WHOLE_MAX * 8];
    } row[ROWS];
    long compared, cut, refused;
} *shared;

/* One job: a mesh of all its ranks. */
struct grid {
    int ndim, size[3], each;           /* placements of each row          */
};

/* One call on tensors. */
struct drawn {
    struct dtensor_op_call call;       /* of spec                         */
    struct dtensor_spec spec[INPUTS];
    struct dtensor *tensor[INPUTS];
    int64_t length[INPUTS][WORLD];     /* chosen lengths                  */
};

/* The numbers of the row, and a part of each that needs all digits. */
static void fill(uint64_t *state, const struct whole *w, const char *text,
                 void *full)
{
    const char *kind = strrchr(text, ':') + 1;
    const bool rounds = dtn_dtype_is_float(w->dtype) && strchr("wpd", *kind);

    for (int64_t k = 0; k < whole_count(w); k++) {
        const double part = (double)(rand_next(state) >> 11) * 0x1p-53;

        dtn_store(w->dtype, full, (size_t)k, w->at[k] + (rounds ? part : 0));
    }
}

/* The inputs of row i, the same in every job. */
static void inputs_make(struct job *job, int i, struct drawn *c)
{
    static unsigned char full[WHOLE_MAX * 16];
    static struct whole whole;
    uint64_t state = rand_seed(SEED) + (uint64_t)i;
    const char *text = rows[i].in;

    for (int k = 0; *text; k++) {
        char one[80];
        const char *next = draw_input(&state, text, &whole);

        snprintf(one, sizeof one, "%.*s", (int)strcspn(text, " "), text);
        fill(&state, &whole, one, full);
        good(dtensor_distribute(&c->spec[k], full, -1, &c->tensor[k],
                                &job->err));
        text = next;
    }
}

/* The placements; false: chosen lengths and cuts do not fit. */
static bool case_draw(struct job *job, uint64_t *state, const struct row *row,
                      const struct dtensor_mesh *mesh, struct drawn *c)
{
    static struct whole whole;
    uint64_t other = 1;

    c->call = (struct dtensor_op_call){ .op = row->op, .in = c->spec };
    good(dtensor_op_args_parse(row->args, &c->call.args, &job->err));
    for (const char *text = row->in; *text; c->call.nin++) {
        struct dtensor_spec *spec = &c->spec[c->call.nin];

        text = draw_input(&other, text, &whole);
        draw_spec(&whole, mesh, spec);
        draw_placements(state, false, spec, c->length[c->call.nin]);
        if (dtensor_spec_check(spec, NULL) != 0)
            return false;
    }
    return true;
}

/* The bits of output k are kept by one rank, and compared by others. */
static void output_compare(struct job *job, const struct drawn *c,
                           struct bits *bits, int k, const struct dtensor *t)
{
    static unsigned char full[WHOLE_MAX * 8];
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    size_t size = dtensor_dtype_size(spec->dtype);

    for (int d = 0; d < spec->ndim; d++)
        size *= (size_t)spec->shape[d];
    need(size <= sizeof full, "%s: %zu bytes",
         draw_words(&c->call, c->spec), size);
    good(dtensor_full_tensor(t, full, size, &job->err));
    if (job->n == 1 && bits->nout == 0)
        memcpy(bits->out[k], full, size);
    need(memcmp(full, bits->out[k], size) == 0,
         "%s: output %d has other bits than on one rank",
         draw_words(&c->call, c->spec), k);
}

static void case_run(struct job *job, const struct row *row,
                     const struct drawn *c, struct bits *bits, int nout)
{
    const bool inplace = row->op[strlen(row->op) - 1] == '_';
    const struct dtensor *const *in = (const struct dtensor *const *)c->tensor;
    struct dtensor *out[OUTPUTS] = { inplace ? c->tensor[0] : NULL };

    if (inplace)
        good(dtensor_op_into(row->op, c->call.nin, in, &c->call.args, nout, out,
                             &job->err));
    else
        good(dtensor_op(row->op, c->call.nin, in, &c->call.args, nout, out,
                        &job->err));
    for (int k = 0; k < nout; k++) {
        output_compare(job, c, bits, k, out[k]);
        if (!inplace)
            dtensor_destroy(out[k]);
    }
    if (job->n == 1)
        bits->nout = nout;
}

static bool is_cut(const struct drawn *c)
{
    for (int i = 0; i < c->call.nin; i++)
        for (int m = 0; m < dtensor_mesh_ndim(c->spec[i].mesh); m++)
            if (c->spec[i].placement[m].kind != DTENSOR_REPLICATE)
                return true;
    return false;
}

static void one_case(struct job *job, int i, const struct dtensor_mesh *mesh,
                     uint64_t *state)
{
    static struct drawn c;
    struct dtensor_spec want[INPUTS], out[OUTPUTS];
    struct dtensor_op_info info;

    if (!case_draw(job, state, &rows[i], mesh, &c))
        return;
    if (dtensor_op_infer(&c.call, want, OUTPUTS, out, &info, &job->err) != 0) {
        shared->refused += job->rank == 0;
        return;
    }
    inputs_make(job, i, &c);
    case_run(job, &rows[i], &c, &shared->row[i], info.nout);
    for (int k = 0; k < c.call.nin; k++)
        dtensor_destroy(c.tensor[k]);
    shared->compared += job->rank == 0;
    shared->cut += job->rank == 0 && is_cut(&c);
}

static void cases(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct grid *grid = arg;
    const char *only = getenv("TEST_OP");
    uint64_t state = rand_seed(SEED) * 31 + (uint64_t)grid->size[0];
    const struct dtensor_mesh *mesh = NULL;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, grid->ndim, grid->size, NULL, NULL,
                             &mesh, &job->err));
    dtensor_set_repro(job->ctx, 1);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < grid->each; k++)
            if (!only || strcmp(only, rows[i].op) == 0)
                one_case(job, i, mesh, &state);
    dtensor_fini(job->ctx);
}

int main(void)
{
    const int each = sanitized() ? 1 : rounds_of(3);
    const struct grid grids[] = {
        { 1, { 1 }, each }, { 1, { 2 }, each }, { 1, { 4 }, each },
        { 1, { 8 }, each }, { 3, { 2, 2, 2 }, each } };

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        const int n = grids[i].ndim == 1 ? grids[i].size[0] : WORLD;

        shared->compared = shared->cut = shared->refused = 0;
        ok(ranks_run(n, 300, cases, (void *)(uintptr_t)&grids[i], NULL) == 0 &&
           (shared->cut > ROWS / 2 || getenv("TEST_OP")),
           "on %d ranks, a mesh of %d dimensions: the bits of one rank", n,
           grids[i].ndim);
        note("%ld calls of %d rows compared, of which %ld had an input that is "
             "cut; %ld refused (TEST_SEED=%llu)", shared->compared, ROWS,
             shared->cut, shared->refused,
             (unsigned long long)rand_seed(SEED));
    }
    munmap(shared, sizeof *shared);
    return done();
}
