/* test_keep.c - what a tape holds of inputs that were gathered
 *
 * Two products whose factors are cut, so that the forward gathers them: what
 * tensors take after it, what the backward gathers, and the gradients, for both
 * choices of dtensor_tape_keep(), and for one choice for each call.
 *
 * Without this test, a copy could be kept that nobody asked for, or the choice
 * change what the gradients are.
 */
#include "job/ctx.h"
#include "tensor/tensor.h"
#include "transport/arena.h"
#include "dtensor.h"
#include "tests/support/job.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1024, MIDDLE = 8, COLUMNS = 16, MAX_BLOCKS = 256 };

/* --------------------------------------------------------------- memory --- */

static struct { void *mem; size_t size; } blocks[MAX_BLOCKS];
static size_t live;               /* bytes of the arena that are in use       */
static size_t refused;            /* no memory for blocks of this size        */

void *__real_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void __real_dtn_arena_free(struct dtn_arena *arena, void *mem);
void __wrap_dtn_arena_free(struct dtn_arena *arena, void *mem);

void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size)
{
    void *mem = size == refused ? NULL : __real_dtn_arena_alloc(arena, size);
    int i = 0;

    while (mem && i < MAX_BLOCKS - 1 && blocks[i].mem)
        i++;
    if (mem) {
        blocks[i].mem = mem;
        blocks[i].size = size;
        live += size;
    }
    return mem;
}

void __wrap_dtn_arena_free(struct dtn_arena *arena, void *mem)
{
    for (int i = 0; i < MAX_BLOCKS && mem; i++)
        if (blocks[i].mem == mem) {
            live -= blocks[i].size;
            blocks[i].mem = NULL;
        }
    __real_dtn_arena_free(arena, mem);
}

/* -------------------------------------------------------------- network --- */

/* (x v) w of whole numbers, so that sums of any order are the same. */
struct network {
    struct dtensor *x, *v, *w;
    struct dtensor *grad;         /* of the result                            */
    struct dtensor_tape *tape;
};

struct step {
    size_t held;                  /* bytes that the forward has added         */
    uint64_t gathers;             /* all-gathers of the backward              */
    double v[MIDDLE * COLUMNS], w[COLUMNS * MIDDLE]; /* gradients             */
};

static struct dtensor *tensor(struct job *job, const char *placements,
                              int64_t rows, int64_t columns)
{
    const size_t n = (size_t)(rows * columns);
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    double *full = calloc(n, sizeof *full);

    need(full, "no memory");
    for (size_t i = 0; i < n; i++)
        full[i] = (double)((i * 7 + i / 5) % 11) - 5;
    good(dtensor_spec_init(&spec, job->ctx, "world", placements, DTENSOR_F64, 2,
                           (const int64_t[]){ rows, columns }, &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    free(full);
    return t;
}

static void network_open(struct job *job, struct network *net)
{
    *net = (struct network){ .x = tensor(job, "S(0)", ROWS, MIDDLE),
                             .v = tensor(job, "S(0)", MIDDLE, COLUMNS),
                             .w = tensor(job, "S(1)", COLUMNS, MIDDLE),
                             .grad = tensor(job, "S(0)", ROWS, MIDDLE) };
    good(dtensor_tape_create(job->ctx, &net->tape, &job->err));
    good(dtensor_tape_watch(net->tape, net->x, &job->err));
    good(dtensor_tape_watch(net->tape, net->v, &job->err));
    good(dtensor_tape_watch(net->tape, net->w, &job->err));
}

static void network_close(struct network *net)
{
    dtensor_tape_destroy(net->tape);
    dtensor_destroy(net->x);
    dtensor_destroy(net->v);
    dtensor_destroy(net->w);
    dtensor_destroy(net->grad);
}

static struct dtensor *product(struct job *job, struct network *net,
                               const struct dtensor *a, const struct dtensor *b,
                               enum dtensor_keep keep)
{
    struct dtensor *y = NULL;

    good(dtensor_tape_keep(net->tape, keep, &job->err));
    good(dtensor_op("matmul", 2, (const struct dtensor *const[]){ a, b }, NULL,
                    1, &y, &job->err));
    return y;
}

static struct dtensor *forward(struct job *job, struct network *net,
                               const enum dtensor_keep keep[2])
{
    struct dtensor *y, *z;

    good(dtensor_tape_begin(net->tape, &job->err));
    y = product(job, net, net->x, net->v, keep[0]);
    z = product(job, net, y, net->w, keep[1]);
    good(dtensor_tape_end(net->tape, &job->err));
    dtensor_destroy(y);
    return z;
}

static void gradients(struct job *job, const struct network *net,
                      struct step *step)
{
    good(dtensor_full_tensor(dtensor_tape_grad(net->tape, net->v), step->v,
                             sizeof step->v, &job->err));
    good(dtensor_full_tensor(dtensor_tape_grad(net->tape, net->w), step->w,
                             sizeof step->w, &job->err));
}

static void step_take(struct job *job, struct network *net,
                      const enum dtensor_keep keep[2], struct step *step)
{
    struct dtensor_debug_count count;
    struct dtensor *z;
    size_t before;

    dtensor_tape_clear(net->tape);
    before = live;
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    z = forward(job, net, keep);
    step->held = live - before;
    good(dtensor_tape_backward(net->tape, z, net->grad, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    good(dtensor_debug_counts(job->ctx, NULL, DTENSOR_BACKWARD,
                              DTENSOR_ALLGATHER, &count, &job->err));
    step->gathers = count.calls;
    gradients(job, net, step);
    dtensor_destroy(z);
}

/* ---------------------------------------------------------------- tests --- */

/* What each choice adds to the memory, takes from the backward, and leaves. */
static void choices(struct job *job, struct network *net)
{
    const size_t factor = MIDDLE * COLUMNS * sizeof(double);
    struct step first, step;

    for (int k = -1; k < 4; k++) {
        const enum dtensor_keep keep[2] = { k > 0 && k & 1, k > 0 && k & 2 };
        const size_t kept = (size_t)(keep[0] + keep[1]);

        step_take(job, net, keep, k < 1 ? &first : &step);
        if (k < 1)
            continue;                            /* k = -1 fills the caches   */
        need(step.held == first.held + kept * factor, "choice %d: the tape "
             "holds %zu bytes, %zu without copies", k, step.held, first.held);
        need(step.gathers + kept == first.gathers, "choice %d: %llu gathers, "
             "%llu without copies", k, (unsigned long long)step.gathers,
             (unsigned long long)first.gathers);
        need(memcmp(step.v, first.v, sizeof step.v) == 0 &&
             memcmp(step.w, first.w, sizeof step.w) == 0,
             "choice %d: other gradients", k);
    }
    need(first.gathers == 2, "%llu gathers", (unsigned long long)first.gathers);
}

static const enum dtensor_keep used[] = { DTENSOR_KEEP_USED,
                                          DTENSOR_KEEP_USED };

static char *print(struct job *job, const struct network *net)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    good(dtensor_tape_print(net->tape, stream, &job->err));
    fclose(stream);
    return text;
}

static void printed(struct job *job, struct network *net)
{
    struct dtensor *z;
    char *text;

    dtensor_tape_clear(net->tape);
    z = forward(job, net, used);
    text = print(job, net);
    need(strstr(text, "(kept as R)"), "printed: %s", text);
    free(text);
    dtensor_destroy(z);
}

/* A replica that is cut where it lies is no copy. */
static void cut(struct job *job, struct network *net)
{
    struct dtensor *whole = tensor(job, "R", 2, MIDDLE), *y;
    char *text;

    dtensor_tape_clear(net->tape);
    good(dtensor_tape_begin(net->tape, &job->err));
    y = product(job, net, whole, net->v, DTENSOR_KEEP_USED);
    good(dtensor_tape_end(net->tape, &job->err));
    text = print(job, net);
    need(strstr(text, "(R) (kept)") && strstr(text, "(P(sum))"), "printed: %s",
         text);
    free(text);
    dtensor_destroy(y);
    dtensor_destroy(whole);
}

/* The copy is the tape's: the factor may change before the backward. */
static void changed(struct job *job, struct network *net)
{
    const struct dtensor_op_args args = { .value = 2 };
    struct step before, after;
    struct dtensor *z;

    step_take(job, net, used, &before);
    dtensor_tape_clear(net->tape);
    z = forward(job, net, used);
    good(dtensor_op_into("scale_", 1, (const struct dtensor *const[]){ net->w },
                         &args, 1, &net->w, &job->err));
    good(dtensor_tape_backward(net->tape, z, net->grad, &job->err));
    gradients(job, net, &after);
    need(memcmp(before.v, after.v, sizeof after.v) == 0,
         "the gradient is that of the changed factor");
    dtensor_destroy(z);
}

static void arguments(struct job *job, struct network *net)
{
    need(dtensor_tape_keep(NULL, DTENSOR_KEEP_USED, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "tape is NULL"), "no tape");
    need(dtensor_tape_keep(net->tape, (enum dtensor_keep)2, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "2 is no choice"), "2: %s",
         job->err.text);
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    struct network net;

    job_open(job, rank, n, NULL);
    network_open(job, &net);
    choices(job, &net);
    printed(job, &net);
    cut(job, &net);
    changed(job, &net);
    arguments(job, &net);
    network_close(&net);
    dtensor_fini(job->ctx);
}

/* Rank 1 has no memory for its copy: no rank waits for another. */
static void rank_without(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    struct dtensor *y = NULL;
    struct network net;
    size_t before;
    int rc;

    job_open(job, rank, n, NULL);
    network_open(job, &net);
    y = product(job, &net, net.x, net.v, DTENSOR_KEEP_USED);
    dtensor_destroy(y);                          /* all else has memory now   */
    y = NULL;
    before = live;
    good(dtensor_tape_begin(net.tape, &job->err));
    refused = rank == 1 ? MIDDLE * COLUMNS * sizeof(double) : 0;
    rc = dtensor_op("matmul", 2,
                    (const struct dtensor *const[]){ net.x, net.v }, NULL, 1,
                    &y, &job->err);
    refused = 0;
    if (rc == 0)
        rc = dtensor_barrier(dtensor_spec_of(net.x)->mesh, &job->err);
    need(rc == (rank == 1 ? DTENSOR_ENOMEM : DTENSOR_EABORT) || n == 1,
         "rank %d: %d, %s", rank, rc, job->err.text);
    dtensor_destroy(y);
    dtensor_tape_clear(net.tape);
    need(live == before, "%zu bytes are in use, %zu before", live, before);
    network_close(&net);
    dtensor_fini(job->ctx);
}

int main(void)
{
    for (int n = 2; n <= 4; n += 2)
        ok(ranks_run(n, 120, rank_main, NULL, NULL) == 0, "%d ranks: inputs "
           "are kept as they were passed or used, with the same gradients", n);
    ok(ranks_run(2, 120, rank_without, NULL, NULL) == 0,
       "a rank without memory for a copy tells the others");
    return done();
}
