/* test_stack.c - operators run on threads with small stacks
 *
 * Every operator, on two ranks with placements drawn at random, and softmax,
 * reductions and others along columns of tiles, on a thread whose stack was
 * painted before: how much of it was written says how much was needed.  The
 * run includes the decision and the plans of redistributes.
 *
 * Without this test, an operator could take hundreds of KiB of stack, and crash
 * on a thread that has 128 KiB, as those of musl have.
 */
#include "dtensor.h"
#include "tests/op/draw.h"
#include "tests/op/row.h"
#include "tests/support/job.h"
#include "tests/support/rand.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { WORLD = 2, INPUTS = 6, OUTPUTS = 8, SEED = 20261130,
       STACK = 1 << 20, LIMIT = 96 << 10, PAINT = 0xa5 };

static const struct row rows[] = {
    { "softmax", "dim=0", "40x80:f32:w", 0 },
    { "log_softmax", "dim=0", "40x80:bf16:w", 0 },
    { "log_softmax", "dim=1", "10x7x80:f32:w", 0 },
    { "softmax", "dim=0", "40x5:f32:w", 0 },
    { "softmax_backward", "dim=0", "40x80:f32:w 40x80:f32:w", 0 },
    { "logsumexp", "dim=0", "40x80:f64:w", 0 },
    { "sum", "dim=0", "40x80:i32:w", 0 },
    { "sum", "dim=0", "40x80:bf16:w", 0 },
    { "all", "dim=0", "40x80:f32:w", 0 },
    { "var", "dim=0", "40x80:f32:w", 0 },
    { "max_dim", "dim=0", "40x80:f64:w", 0 },
    { "cumsum", "dim=0", "40x80:f32:w", 0 },
    { "layer_norm", "", "40x80:bf16:w 80:bf16:w 80:bf16:w", 0 },
    { "matmul", "", "40x80:bf16:w 80x40:bf16:w", 0 },
    { "cast", "dtype=bf16", "40x80:f64:w", 0 },
#include "tests/op/computed_rows.h"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* One call, and how much stack it took. */
struct taken {
    const struct row *row;
    struct dtensor_op_call call;       /* of spec                         */
    struct dtensor_spec spec[INPUTS];
    struct dtensor *in[INPUTS];        /* inputs                          */
    int64_t length[INPUTS][WORLD];     /* chosen lengths                  */
    size_t bytes;                      /* stack                           */
};

static void *taken_main(void *arg)
{
    struct taken *taken = arg;
    const bool inplace = taken->row->op[strlen(taken->row->op) - 1] == '_';
    const struct dtensor *const *in = (const struct dtensor *const *)taken->in;
    struct dtensor_op_call *call = &taken->call;
    struct dtensor *out = inplace ? taken->in[0] : NULL;

    if (inplace) {
        dtensor_op_into(call->op, call->nin, in, &call->args, 1, &out, NULL);
        return NULL;
    }
    dtensor_op(call->op, call->nin, in, &call->args, 1, &out, NULL);
    dtensor_destroy(out);
    return NULL;
}

/* Stacks grow downwards: what is painted yet was not used. */
static void taken_run(struct taken *taken)
{
    unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;
    size_t left = 0;

    need(stack != MAP_FAILED, "a stack");
    memset(stack, PAINT, STACK);
    need(pthread_attr_init(&attr) == 0 &&
         pthread_attr_setstack(&attr, stack, STACK) == 0 &&
         pthread_create(&thread, &attr, taken_main, taken) == 0 &&
         pthread_join(thread, NULL) == 0, "a thread");
    pthread_attr_destroy(&attr);
    while (left < STACK && stack[left] == PAINT)
        left++;
    taken->bytes = STACK - left;
    munmap(stack, STACK);
}

/* Returns the bytes of stack. */
static size_t row_run(struct job *job, const struct dtensor_mesh *mesh,
                      uint64_t *state, const struct row *row)
{
    static struct whole whole;
    struct taken taken = { .row = row,
                           .call = { .op = row->op, .in = taken.spec } };
    const char *text = row->in;

    good(dtensor_op_args_parse(row->args, &taken.call.args, &job->err));
    while (*text) {
        const int i = taken.call.nin++;

        text = draw_input(state, text, &whole);
        draw_spec(&whole, mesh, &taken.spec[i]);
        draw_placements(state, true, &taken.spec[i], taken.length[i]);
        if (dtensor_spec_check(&taken.spec[i], NULL) != 0)
            draw_spec(&whole, mesh, &taken.spec[i]);
        good(draw_tensor(&whole, &taken.spec[i], &taken.in[i], &job->err));
    }
    taken_run(&taken);
    if (taken.bytes > LIMIT || getenv("TEST_OP"))
        note("%s takes %zu bytes of stack", draw_words(&taken.call, taken.spec),
             taken.bytes);
    for (int i = 0; i < taken.call.nin; i++)
        dtensor_destroy(taken.in[i]);
    return taken.bytes;
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh = NULL;
    uint64_t state = rand_seed(SEED);
    size_t most = 0;

    (void)arg;
    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    for (int i = 0; i < ROWS; i++) {
        const size_t bytes = row_run(job, mesh, &state, &rows[i]);

        most = bytes > most ? bytes : most;
    }
    note("at most %zu bytes of stack", most);
    need(most <= LIMIT, "%zu bytes of stack", most);
    dtensor_fini(job->ctx);
}

int main(void)
{
    if (sanitized())
        skip("operators take little stack", "sanitizers need more of it");
    else
        ok(ranks_run(WORLD, 120, rank_main, NULL, NULL) == 0,
           "operators take at most %d KiB of stack", LIMIT >> 10);
    return done();
}
