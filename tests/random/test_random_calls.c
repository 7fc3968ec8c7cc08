/* test_random_calls.c - all random calls: which generator they use, and how
 * far it advances
 *
 * A generator of the user gives what the context's gives from the same state,
 * and advances as far, whichever the call.  The same holds for what is made
 * like a tensor.  Generators start by the first rank's state, or each stage by
 * its own seed.
 *
 * Without this test, one call could ignore the generator that it is given, and
 * a run could not be repeated.
 */
#include "base/compiler.h"
#include "mesh/mesh.h"
#include "random/generator.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/random/random_calls.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* All ranks have the same. */
static void same_everywhere(struct job *job, int64_t value, const char *what)
{
    const struct dtensor_mesh *world;
    int64_t all[16];

    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    good(dtensor_allgather(world, &value, all, 1, DTENSOR_I64, &job->err));
    for (int r = 0; r < job->n; r++)
        need(all[r] == value, "%s: rank %d is at %" PRId64 ", this one at %"
             PRId64, what, r, all[r], value);
}

/* From the same state a generator of one's own and the context's, NULL, make
 * the same and end alike; neither moves the other.
 */
static void call_alike(struct job *job, enum call call,
                       struct dtensor_generator *own)
{
    struct dtensor_generator *usual = dtensor_generator_default(job->ctx);
    struct dtensor *t[2], *out[2] = { NULL, NULL };
    unsigned char state[3][DTENSOR_STATE_BYTES];
    size_t bytes;

    dtensor_generator_get_state(own, state[0]);
    good(dtensor_generator_set_state(usual, state[0], sizeof state[0],
                                     &job->err));
    for (int i = 0; i < 2; i++) {
        t[i] = make_tensor(job, "S(0)", dtype_of(call));
        good(call_it(call, &fine[call], t[i], i == 0 ? own : NULL, &out[i],
                     &job->err));
        dtensor_generator_get_state(usual, state[1]);
        need(i == 1 || memcmp(state[0], state[1], sizeof state[0]) == 0,
             "%s: the context's generator has moved", names[call]);
    }
    dtensor_generator_get_state(own, state[2]);
    need(memcmp(state[1], state[2], sizeof state[1]) == 0 &&
         memcmp(state[0], state[2], 8) == 0 &&
         memcmp(state[0], state[2], sizeof state[0]) != 0, "%s: the generators "
         "have not advanced alike", names[call]);
    same_everywhere(job, dtensor_generator_offset(own), names[call]);
    for (int i = 0; i < 2; i++)
        if (out[i]) {
            dtensor_destroy(t[i]);
            t[i] = out[i];
        }
    bytes = dtensor_local_bytes(t[0]);
    need(bytes == dtensor_local_bytes(t[1]) &&
         memcmp(dtensor_to_local(t[0]), dtensor_to_local(t[1]), bytes) == 0,
         "%s: the generators have not made the same", names[call]);
    dtensor_destroy(t[0]);
    dtensor_destroy(t[1]);
}

static void generators(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    struct dtensor_generator *own = NULL, *usual;

    job_open(job, rank, n, NULL);
    usual = dtensor_generator_default(job->ctx);
    good(dtensor_generator_create((UINT64_C(1) << 63) + 42, &own, &job->err));
    for (int tracker = 0; tracker <= DTENSOR_TRACKER_LOCAL; tracker++)
        for (int fill = 0; fill <= DTENSOR_FILL_CUDA; fill++) {
            const struct dtensor_random_rule rule = rule_of(tracker, fill);

            good(dtensor_generator_set_rule(own, &rule, &job->err));
            good(dtensor_generator_set_rule(usual, &rule, &job->err));
            for (int call = 0; call < NCALLS; call++)
                call_alike(job, (enum call)call, own);
        }
    dtensor_generator_destroy(own);
    dtensor_fini(job->ctx);
}

/* Everybody gets seed and offset of the mesh's first rank; of a generator of
 * one's own, too, and the context's is then as it was.
 */
static void eager_start(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    struct dtensor_generator *own = NULL, *usual;
    const struct dtensor_mesh *middle, *world;
    unsigned char state[DTENSOR_STATE_BYTES] = { 0 };
    const bool inside = rank == 1 || rank == 2;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 2 }, NULL, (int[]){ 2, 1 },
                             &middle, &job->err));
    usual = dtensor_generator_default(job->ctx);
    good(dtensor_generator_create(0, &own, &job->err));
    state[0] = (unsigned char)(rank + 10);
    state[7] = 0x80;
    state[8] = (unsigned char)(4 * rank + 4);
    good(dtensor_generator_set_state(own, state, sizeof state, &job->err));
    good(dtensor_generator_set_state(usual, state, sizeof state, &job->err));
    if (inside)
        good(dtensor_generator_sync(middle, own, &job->err));
    else
        need(dtensor_generator_sync(middle, own, &job->err) == DTENSOR_EINVAL,
             "a rank outside the mesh is not refused");
    need(dtensor_generator_seed(own) ==
         (UINT64_C(1) << 63) + (uint64_t)(inside ? 12 : rank + 10) &&
         dtensor_generator_offset(own) == (inside ? 12 : 4 * rank + 4),
         "not the state of the mesh's first rank, 2: seed %" PRIu64
         ", offset %" PRId64, dtensor_generator_seed(own),
         dtensor_generator_offset(own));
    need(dtensor_generator_offset(usual) == 4 * rank + 4, "another one moved");
    good(dtensor_generator_sync(world, NULL, &job->err));
    need(dtensor_generator_seed(usual) == (UINT64_C(1) << 63) + 10 &&
         dtensor_generator_offset(usual) == 4, "not rank 0's state");
    dtensor_generator_destroy(own);
    dtensor_fini(job->ctx);
}

/* [seed] gives each stage of a pipeline its own; a stage is a mesh by itself.
 * Shards of two stages differ as those of one stage do, replicas differ between
 * stages only.
 */
static void stages(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *world, *stage;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    float all[4 * 16];

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 2 }, NULL,
                             rank < 2 ? (int[]){ 0, 1 } : (int[]){ 2, 3 },
                             &stage, &job->err));
    for (int sharded = 0; sharded < 2; sharded++) {
        const int64_t shape[] = { sharded ? 8 : 4, 4 };

        spec = spec_of(job, stage, DTENSOR_F32, shape, sharded ? "S(0)" : "R");
        good(dtensor_rand(&spec, NULL, &t, &job->err));
        good(dtensor_allgather(world, dtensor_to_local(t), all, 16, DTENSOR_F32,
                               &job->err));
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < a; b++)
                need((memcmp(all + 16 * a, all + 16 * b, 64) == 0) ==
                     (!sharded && a / 2 == b / 2), "%s of ranks %d and %d",
                     sharded ? "shards" : "replicas", a, b);
        dtensor_destroy(t);
    }
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *path;

    ok(ranks_run(3, 60, generators, NULL, NULL) == 0, "each of %d calls, by "
       "every tracker and fill, takes a generator of one's own, and advances "
       "it as the context's", NCALLS);
    ok(ranks_run(4, 60, eager_start, NULL, NULL) == 0, "eager start: the state "
       "of the mesh's first rank");
    path = ranks_file("shm", 4, "[mesh \"grid\"]\ndims = pp=2, tp=2\n[seed]\n"
                      "base = 123\nmesh = grid\ndistinct = pp\n"
                      "tracker = offset\n");
    ok(ranks_run(4, 60, stages, (void *)(uintptr_t)path, NULL) == 0, "stages "
       "of a pipeline: shards all differ, replicas between stages only");
    unlink(path);
    return done();
}
