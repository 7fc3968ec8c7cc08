/* test_invalid_tensors.c - invalid calls on tensors, and what is allowed
 *
 * The rows of test_invalid_specs.c that need ranks: four of them make the same
 * mistake, are told so, and go on.  Without this test a refused call could
 * leave the ranks in different states.  The groups have the numbers of
 * test_invalid_specs.c:
 *
 *   2.4  parts that do not fit                        parts
 *   4.4, 4.6 redistribute, plans, batches             conversions, plans
 *   5    distribute, from_local, factories            creation
 *   6, 13.3  seeds and offsets                        random_numbers
 *   9    pictures of three dimensions                 permitted
 *   2.3, 4.4, 12, 13.1  what PyTorch refuses          permitted
 *
 * Ranks that make different mistakes are in test_parts.c and test_tensor.c.
 */
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "random/generator.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/redist/refused.h"
#include "tests/support/tensor_job.h"

#include <string.h>

#define row(section, call, words)                                             \
    need(REFUSED(call, words), "%s: %s", section, why.text)

/* What the rows are about: [4,6] of f32, by rows, on all ranks and on 2 x 2. */
struct room {
    struct job *job;
    const struct dtensor_mesh *world, *grid;
    struct dtensor_spec rows, cols, wide, square;
    struct dtensor *t, *c, *w;         /* with those specs, all ones          */
};

#define WORLD "  on world(world=4)"
#define ROWS "f32[4,6]  S(0)" WORLD
#define NOT_ALIKE(shape) ROWS " cannot become " shape "  S(0)" WORLD           \
    " (context, dtype and shape must be the same)"

static void room_open(struct room *room, struct job *job)
{
    const int64_t shape[] = { 4, 6 }, wide[] = { 4, 7 };

    room->job = job;
    good(dtensor_mesh_find(job->ctx, "world", &room->world, &job->err));
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, "a,b", NULL,
                             &room->grid, &job->err));
    room->rows = spec_of(job, room->world, DTENSOR_F32, shape, "S(0)");
    room->cols = spec_of(job, room->world, DTENSOR_F32, shape, "S(1)");
    room->wide = spec_of(job, room->world, DTENSOR_F32, wide, "S(0)");
    room->square = spec_of(job, room->grid, DTENSOR_F32, shape, "S(0),S(1)");
    good(dtensor_ones(&room->rows, &room->t, &job->err));
    good(dtensor_ones(&room->cols, &room->c, &job->err));
    good(dtensor_ones(&room->wide, &room->w, &job->err));
}

/* All is as it was: every element, and the context. */
static void room_close(struct room *room)
{
    struct dtensor *const all[] = { room->t, room->c, room->w };
    struct job *job = room->job;

    for (int k = 0; k < 3; k++) {
        const float *x = dtensor_to_local(all[k]);

        for (size_t i = 0; i < dtensor_local_bytes(all[k]) / sizeof *x; i++)
            need(x[i] == 1, "tensor %d was written to", k);
    }
    good(dtensor_redistribute_into(room->t, room->c, &job->err));
    for (int k = 0; k < 3; k++)
        dtensor_destroy(all[k]);
}

/* ---------------------------------------------------------------- creation */

static void creation(struct room *room)
{
    const struct dtensor_spec *rows = &room->rows;
    struct dtensor_spec terms = *rows, mixed = *rows;
    float x[64] = { 0 };
    char words[200];

    row("5", dtensor_distribute(rows, x, 4, &out.t, &why), "distribute: root 4 "
        "is no position of the mesh; expected 0 to 3, or -1");
    row("5", dtensor_distribute(rows, x, -2, &out.t, &why), "distribute: root "
        "-2 is no position of the mesh; expected 0 to 3, or -1");
    snprintf(words, sizeof words, "distribute: full is NULL on position %d, "
             "but root is -1", room->job->rank);
    row("5", dtensor_distribute(rows, NULL, -1, &out.t, &why), words);
    mixed.placement[0].dim = 2;
    row("2.1", dtensor_distribute(&mixed, x, 0, &out.t, &why), "spec: "
        "placement 0 is of dimension 2, but the tensor has 2 dimensions");
    mixed = (struct dtensor_spec){ .mesh = room->grid, .placement = {
        { .kind = DTENSOR_PARTIAL, .op = DTENSOR_MIN },
        { .kind = DTENSOR_PARTIAL, .op = DTENSOR_MAX } } };
    row("5", dtensor_distribute(&mixed, x, 0, &out.t, &why), "spec: P(min) and "
        "P(max) in one tensor (reduce one of them first; only sum and avg go "
        "together)");
    snprintf(words, sizeof words, "from_local: 20 bytes, but rank %d holds 24 "
             "of " ROWS, room->job->rank);
    row("5", dtensor_from_local(rows, x, 20, &out.t, &why), words);
    snprintf(words, sizeof words, "from_local: local is NULL, but rank %d "
             "holds 24 bytes", room->job->rank);
    row("5", dtensor_from_local(rows, NULL, 24, &out.t, &why), words);
    terms.placement[0] = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL };
    row("5", dtensor_arange(&terms, &out.t, &why), "arange: f32[4,6]  P(sum)"
        WORLD ": no placement may be Partial (make it of R and redistribute)");
    terms.shape[0] = -4;
    row("12", dtensor_ones(&terms, &out.t, &why), "spec: size -4 of tensor "
        "dimension 0; expected 0 or more");
}

/* All ranks say that they hold one row more than they can. */
static void parts(struct room *room)
{
    const int64_t shape[] = { 2, 6 };
    struct dtensor_spec part = room->rows;
    float x[64] = { 0 };

    row("12", dtensor_from_local_checked(&room->rows, x, shape, &out.t, &why),
        "parts: rank 0 holds [2,6], but [1,6] is its part of " ROWS);
    part.shape[1] = room->job->rank == 3 ? 5 : 6;
    row("2.4", dtensor_from_parts(&part, x, &out.t, &why), "parts: rank 3 "
        "holds [4,5], but [4,6] is its part of f32[16,6]  S(0)" WORLD);
    part.placement[0].dim = 2;
    row("2.1", dtensor_from_parts(&part, x, &out.t, &why), "spec: placement 0 "
        "is of dimension 2, but the tensor has 2 dimensions");
}

/* ------------------------------------------------------------- conversions */

static void conversions(struct room *room, struct dtensor_ctx *foreign)
{
    struct dtensor_spec there = room->rows, halves = room->rows;
    struct dtensor *grid = NULL, *two = NULL;
    struct job *job = room->job;

    row("4.6", dtensor_redistribute(room->t, NULL, &out.t, &why),
        "placements: there are none; expected one for each of the 1 mesh "
        "dimensions, such as \"S(0)\" or \"R\"");
    row("5", dtensor_redistribute(room->t, "R,R", &out.t, &why), "placements: "
        "\"R,R\" has 2, but the mesh has 1 dimensions (give one for each)");
    row("2.1", dtensor_redistribute(room->t, "S(2)", &out.t, &why),
        "placements: word 1 of \"S(2)\" is \"S(2)\", but the tensor has 2 "
        "dimensions");
    row("4.4", dtensor_redistribute_to(room->t, &room->wide, &out.t, &why),
        "redistribute: " NOT_ALIKE("f32[4,7]"));
    halves.dtype = DTENSOR_F16;
    row("4.4", dtensor_redistribute_to(room->t, &halves, &out.t, &why),
        "redistribute: " NOT_ALIKE("f16[4,6]"));
    good(dtensor_mesh_find(foreign, "world", &there.mesh, &job->err));
    row("4.4", dtensor_redistribute_to(room->t, &there, &out.t, &why),
        "redistribute: " NOT_ALIKE("f32[4,6]"));
    row("4.4", dtensor_redistribute_into(room->t, room->w, &why),
        "redistribute: " NOT_ALIKE("f32[4,7]"));
    row("5", dtensor_full_tensor(room->t, out.array, 95, &why), "full_tensor: "
        "95 bytes, but the whole is 96: " ROWS);
    row("5", dtensor_full_tensor(room->t, NULL, 96, &why), "full_tensor: full "
        "is NULL, but the whole is 96 bytes");
    good(dtensor_redistribute_to(room->t, &room->square, &grid, &job->err));
    row("5", dtensor_equal(room->t, grid, out.number, &why), "equal: " ROWS
        " and f32[4,6]  S(0),S(1)  on mesh(a=2,b=2) (mesh and dtype "
        "must be the same: redistribute or convert one)");
    good(dtensor_zeros(&halves, &two, &job->err));
    row("5", dtensor_equal(room->t, two, out.number, &why), "equal: " ROWS
        " and f16[4,6]  S(0)" WORLD " (mesh and dtype must be the same: "
        "redistribute or convert one)");
    dtensor_destroy(grid);
    dtensor_destroy(two);
}

/* Plans and batches take the tensors that they were made for. */
static void plans(struct room *room, struct dtensor_ctx *foreign)
{
    struct dtensor_spec there = room->rows;
    const struct dtensor_spec src[] = { room->rows, room->cols };
    const struct dtensor_spec dst[] = { room->cols, room->rows };
    const struct dtensor_spec odd[] = { room->wide, room->rows };
    const struct dtensor *const from[] = { room->t, room->t };
    struct dtensor *const to[] = { room->c, room->t };
    struct dtensor_batch *batch = NULL;
    struct dtensor_plan *plan = NULL;
    struct job *job = room->job;

    good(dtensor_plan_create(&room->rows, &room->cols, NULL, &plan, &job->err));
    row("4.4", dtensor_plan_run(plan, room->c, room->t, &why), "plan: the "
        "source is f32[4,6]  S(1)" WORLD ", but the plan was made for " ROWS);
    row("4.4", dtensor_plan_run(plan, room->t, room->t, &why), "plan: the "
        "destination is " ROWS ", but the plan was made for f32[4,6]  S(1)"
        WORLD);
    row("4.4", dtensor_plan_start(plan, room->t, room->w, &out.request, &why),
        "plan: the destination is f32[4,7]  S(0)" WORLD ", but the plan was "
        "made for f32[4,6]  S(1)" WORLD);
    dtensor_plan_destroy(plan);
    row("4.4", dtensor_batch_create(2, src, odd, &out.batch, &why), "batch: "
        "tensor 0 changes its shape, dtype or context (only the mesh and the "
        "placements may change)");
    row("4.4", dtensor_batch_create(0, src, dst, &out.batch, &why), "batch: 0 "
        "tensors; expected 1 or more, each with a mesh");
    good(dtensor_mesh_find(foreign, "world", &there.mesh, &job->err));
    row("4.4", dtensor_batch_create(2, (struct dtensor_spec[]){ room->rows,
                                    there }, (struct dtensor_spec[]){
                                    room->cols, there }, &out.batch, &why),
        "batch: tensor 1 changes its shape, dtype or context (only the mesh "
        "and the placements may change)");
    good(dtensor_batch_create(2, src, dst, &batch, &job->err));
    row("4.4", dtensor_batch_run(batch, from, to, &why), "batch: the source "
        "of tensor 1 is f32[4,6]  S(0)  on world(world=4), but the batch was "
        "made for f32[4,6]  S(1)  on world(world=4)");
    dtensor_batch_destroy(batch);
}

/* ---------------------------------------------------------- random numbers */

static void random_numbers(struct room *room)
{
    const int rank = room->job->rank, next[] = { (rank + 1) % 4 };
    struct dtensor_generator *gen = NULL;
    const struct dtensor_mesh *other;
    struct dtensor *terms = NULL;
    unsigned char state[DTENSOR_STATE_BYTES] = { [8] = 3 };
    struct job *job = room->job;
    char words[200];

    good(dtensor_generator_create(7, &gen, &job->err));
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 1 }, "x", next, &other,
                             &job->err));
    snprintf(words, sizeof words, "manual_seed: rank %d is not in the mesh "
             "mesh(x=1), so its generator would not be that of the others "
             "(call it on the ranks of the mesh only)", rank);
    row("13.3", dtensor_manual_seed(other, 8, gen, &why), words);
    row("6", dtensor_generator_set_state(gen, state, sizeof state, &why),
        "generator: offset 3; expected a multiple of 4 that is not negative");
    row("6", dtensor_generator_set_state(gen, state, 15, &why), "generator: a "
        "state of 15 bytes; expected 16");
    good(dtensor_redistribute(room->t, "P", &terms, &job->err));
    row("6", dtensor_fill_uniform(terms, 0, 1, gen, &why), "uniform: f32[4,6]  "
        "P(sum)" WORLD ": no placement may be Partial (make it of R and "
        "redistribute)");
    need(dtensor_generator_seed(gen) == 7 && dtensor_generator_offset(gen) == 0,
         "the generator was written to");
    dtensor_destroy(terms);
    dtensor_generator_destroy(gen);
}

/* --------------------------------------------------------------- permitted */

/* PyTorch refuses these; here every element is right.  On 2 x 2. */
static const struct { const char *section, *from, *to; } pairs[] = {
    { "13.1", "S(0),R", "S(0),P" }, { "13.1", "S(0),R", "R,P" },
    { "13.1", "S(0),S(1)", "R,P" }, { "13.1", "S(0),P(prod)", "R,P(sum)" },
    { "4.4", "S(0),R", "P(max),R" }, { "4.4", "S(1),S(0)", "P(prod),P(prod)" },
    { "4.4", "P(sum),R", "P(avg),R" }, { "4.4", "P(min),R", "P(max),S(0)" },
    { "2.3", "R,R", "P(prod),R" }, { "2.3", "R,R", "P(sum),P(avg)" },
    { "4.3", "SS(0,2),S(0)", "S(0),S(0)" }, { "4.3", "P,R", "SS(0,2),R" },
    { "4.4", "SS(0,2),R", "SS(1,3),R" }, { "4.6", "R,S(0)", "P,S(0)" },
    { "12", "S(0:1,3),R", "S(0:4,0),S(1)" }, { "12", "C(0,1),R", "S(1),R" },
};

static void permitted(struct room *room)
{
    const int64_t shape[] = { 4, 6 }, part[] = { 1, 3 };
    struct job *job = room->job;
    struct dtensor_spec from, to;
    struct dtensor *a, *b = NULL;
    char text[2000] = "";
    FILE *stream;

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        from = spec_of(job, room->grid, DTENSOR_F64, shape, pairs[i].from);
        a = make(job, &from, -1);
        good(dtensor_redistribute(a, pairs[i].to, &b, &job->err));
        need(whole_is_right(job, b) && (is_partial(dtensor_spec_of(b)) ||
             local_is_right(job, b)), "%s: %s to %s", pairs[i].section,
             pairs[i].from, pairs[i].to);
        to = spec_of(job, room->world, DTENSOR_F64, shape, "S(1)");
        dtensor_destroy(b);
        good(dtensor_redistribute_to(a, &to, &b, &job->err));
        need(local_is_right(job, b), "12: %s to another mesh", pairs[i].from);
        dtensor_destroy(a);
        dtensor_destroy(b);
    }
    from = spec_of(job, room->grid, DTENSOR_F64, part, "S(0),S(1)");
    good(dtensor_from_parts(&from, (const double[3]){ 0 }, &b, &job->err));
    need(dtensor_spec_of(b)->shape[0] == 2 && dtensor_spec_of(b)->shape[1] == 6,
         "2.4: the whole of parts on two mesh dimensions");
    dtensor_destroy(b);
    from = (struct dtensor_spec){ .mesh = room->world, .ndim = 3,
                                  .shape = { 4, 2, 2 } };
    from.placement[0].kind = DTENSOR_SHARD;
    stream = fmemopen(text, sizeof text, "w");
    dtensor_spec_draw(&from, stream);
    fclose(stream);
    need(strstr(text, "rank 3"), "9: a picture of three dimensions: %s", text);
}

static void refusals(int rank, int n, void *arg)
{
    struct dtensor_ctx *foreign = NULL;
    struct job the_job, *job = &the_job;
    struct room room;

    (void)arg;
    job_open(job, rank, n, NULL);
    good(dtensor_init_offline(NULL, n, 0, &foreign, &job->err));
    room_open(&room, job);
    creation(&room);
    parts(&room);
    conversions(&room, foreign);
    plans(&room, foreign);
    random_numbers(&room);
    room_close(&room);
    permitted(&room);
    dtensor_fini(foreign);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(4, 60, refusals, NULL, NULL) == 0, "what is refused is "
       "refused in words, with nothing written, and what is not works");
    return done();
}
