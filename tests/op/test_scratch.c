/* test_scratch.c - an operator works with the memory that it says, and no more
 *
 * Every operator, with placements drawn at random, on tensors that are there:
 * its first run takes as many bytes of the arena and of the heap as
 * dtensor_op_infer() predicts in scratch_bytes, to the byte; and when it is
 * repeated, it allocates nothing.  What redistributes keep is there before, and
 * so is the memory that a context has for all operators (math/room.h).  A
 * second job has a network so slow that operators reduce by themselves where
 * rows are cut.
 *
 * Without this test, an operator could need a copy of its input that no plan
 * shows, and a job that fits by the plan would run out of memory.
 */
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/op/allocated.h"
#include "tests/op/draw.h"
#include "tests/op/row.h"
#include "tests/support/allocations.h"
#include "tests/support/rand.h"
#include "tests/support/job.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { WORLD = 4, INPUTS = 6, OUTPUTS = 8, SEED = 20261128 };

static const struct row rows[] = {
    { "dropout", "p=0.5", "6x5:f32:w", 0 },
    { "rand_like", "", "6x5:f32:w", 0 },
    { "randn_like", "", "6x5:f64:w", 0 },
#include "tests/op/computed_rows.h"
}, cut_rows[] = {
#include "tests/op/cut_rows.h"
};
enum {
    ROWS = sizeof rows / sizeof rows[0],
    CUT_ROWS = sizeof cut_rows / sizeof cut_rows[0]
};

/* How many runs of each kind there were, on rank 0. */
static struct counts {
    long ran, worked, reduced, refused;
} *counts;

/* One call on tensors. */
struct drawn {
    struct dtensor_op_call call;       /* of spec                         */
    struct dtensor_spec spec[INPUTS], want[INPUTS], out[OUTPUTS];
    struct dtensor *in[INPUTS], *made[OUTPUTS];
    int64_t length[INPUTS][WORLD];     /* chosen lengths                  */
    struct dtensor_op_info info;
};

/* False: chosen lengths and cuts do not fit. */
static bool inputs_make(struct job *job, uint64_t *state,
                        const struct dtensor_mesh *mesh, const char *text,
                        struct drawn *c)
{
    static struct whole whole[INPUTS];
    bool fits = true;

    for (c->call.nin = 0; *text; c->call.nin++) {
        const int i = c->call.nin;
        struct dtensor_spec *spec = &c->spec[i];

        text = draw_input(state, text, &whole[i]);
        draw_spec(&whole[i], mesh, spec);
        draw_placements(state, true, spec, c->length[i]);
        fits &= dtensor_spec_check(spec, NULL) == 0;
    }
    for (int i = 0; fits && i < c->call.nin; i++)
        good(draw_tensor(&whole[i], &c->spec[i], &c->in[i], &job->err));
    return fits;
}

/* As if the context had decided nothing, and taken no memory for operators. */
static void decisions_drop(struct dtensor_ctx *ctx)
{
    struct dtn_slot *slot = &ctx->slots[DTN_ROOM_OP];

    if (slot->state) {
        slot->finish(ctx);
        slot->destroy(slot->state);
        *slot = (struct dtn_slot){ 0 };
    }
}

static void infer(struct job *job, struct drawn *c)
{
    good(dtensor_op_infer(&c->call, c->want, OUTPUTS, c->out, &c->info,
                          &job->err));
}

static void run(struct job *job, const struct drawn *c)
{
    good(dtensor_op_into(c->call.op, c->call.nin,
                         (const struct dtensor *const *)c->in, &c->call.args,
                         c->info.nout, (struct dtensor **)c->made, &job->err));
}

/* Run any operator, so that the context has its memory for all of them. */
static void room_make(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *in = NULL, *out = NULL;

    good(dtensor_zeros(&(struct dtensor_spec){ .mesh = mesh }, &in, &job->err));
    good(dtensor_op("relu", 1, (const struct dtensor *const *)&in, NULL, 1,
                    &out, &job->err));
    dtensor_destroy(in);
    dtensor_destroy(out);
}

/* The first run makes what redistributes keep. */
static void runs_check(struct job *job, struct drawn *c)
{
    long least = LONG_MAX;

    run(job, c);
    decisions_drop(job->ctx);
    room_make(job, c->spec[0].mesh);
    infer(job, c);
    allocated = 0;
    run(job, c);
    need(allocated == c->info.scratch_bytes, "%s: it took %zu bytes, and said "
         "%llu", draw_words(&c->call, c->spec), allocated,
         (unsigned long long)c->info.scratch_bytes);
    for (int k = 0; k < 3; k++) {
        const long before = allocations;

        run(job, c);
        if (allocations - before < least)
            least = allocations - before;
    }
    need(least == 0, "%s: a repeated call makes %ld allocations",
         draw_words(&c->call, c->spec),
         least);
}

static void one_case(struct job *job, const struct row *row,
                     const struct dtensor_mesh *mesh, uint64_t *state)
{
    const bool inplace = row->op[strlen(row->op) - 1] == '_';
    static struct drawn c;

    c = (struct drawn){ .call = { .op = row->op, .in = c.spec } };
    good(dtensor_op_args_parse(row->args, &c.call.args, &job->err));
    if (!inputs_make(job, state, mesh, row->in, &c))
        return;
    if (dtensor_op_infer(&c.call, c.want, OUTPUTS, c.out, &c.info, NULL) != 0) {
        counts->refused += job->rank == 0;
    } else {
        for (int k = 0; k < c.info.nout; k++)
            if (inplace)
                c.made[k] = c.in[0];
            else
                good(dtensor_empty(&c.out[k], &c.made[k], &job->err));
        runs_check(job, &c);
        counts->ran += job->rank == 0;
        counts->worked += job->rank == 0 && c.info.scratch_bytes > 0;
        counts->reduced += job->rank == 0 && c.info.reduces;
    }
    for (int k = 0; k < OUTPUTS && !inplace; k++)
        dtensor_destroy(c.made[k]);
    for (int i = 0; i < c.call.nin; i++)
        dtensor_destroy(c.in[i]);
}

static void cases(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct suite *suite = arg;
    uint64_t state = rand_seed(SEED);
    const struct dtensor_mesh *mesh = NULL;

    job_open(job, rank, n, suite->file);
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL, NULL,
                             &mesh, &job->err));
    for (int i = 0; i < suite->n; i++)
        for (int k = 0; k < suite->each; k++)
            one_case(job, &suite->row[i], mesh, &state);
    dtensor_fini(job->ctx);
}

static void suite_run(const struct suite *suite, const char *what)
{
    memset(counts, 0, sizeof *counts);
    ok(ranks_run(WORLD, 120, cases, (void *)(uintptr_t)suite, NULL) == 0,
       "%d calls of operators%s, %d placements each, work with the memory that "
       "they say (TEST_SEED=%llu)", suite->n, what, suite->each,
       (unsigned long long)rand_seed(SEED));
    note("%ld ran, %ld with some, %ld reduced over the ranks, %ld were refused",
         counts->ran, counts->worked, counts->reduced, counts->refused);
}

/* Is there a row of each operator? */
static void check_all(void)
{
    int missing = 0;

    for (int i = 0; dtensor_op_name(i); i++) {
        int k = 0;

        while (k < ROWS && strcmp(rows[k].op, dtensor_op_name(i)) != 0)
            k++;
        missing += k == ROWS;
        if (k == ROWS)
            note("no row of %s", dtensor_op_name(i));
    }
    ok(missing == 0, "these are all operators");
}

int main(void)
{
    const int each = sanitized() ? 1 : rounds_of(3);
    const char *file = ranks_file("shm", WORLD, "[tuning]\n"
                                  "intra_latency_ns = 1\n"
                                  "intra_bandwidth = 1K\n");

    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check_all();
    suite_run(&(struct suite){ rows, ROWS, each, NULL }, "");
    ok(counts->worked > 0, "some need memory");
    suite_run(&(struct suite){ cut_rows, CUT_ROWS, 2 * each, file },
              " on a slow network");
    ok(counts->reduced > 0, "some reduce over the ranks by themselves");
    remove(file);
    return done();
}
