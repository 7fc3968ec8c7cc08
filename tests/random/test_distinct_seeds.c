/* test_distinct_seeds.c - replicas along a dimension with distinct seeds
 *
 * On dp=2, tp=2 with `distinct = dp` a tensor that is R along dp would differ
 * between ranks 0 and 1 and ranks 2 and 3.  Every call refuses that on all
 * ranks, until the seeds are the same or the rule allows it.
 *
 * Without this test, replicas could be filled differently in silence.
 */
#include "mesh/mesh.h"
#include "random/generator.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/random/random_calls.h"

#include <string.h>
#include <unistd.h>

enum { BEFORE = 0x5a };

/* Refused in words, with nothing made and nothing touched. */
static void refused(struct job *job, enum call call, const char *placements,
                    const char *dim)
{
    struct dtensor_generator *gen = dtensor_generator_default(job->ctx);
    struct dtensor *t = make_tensor(job, placements, dtype_of(call)), *out = t;
    int64_t offset = dtensor_generator_offset(gen);
    unsigned char *part = dtensor_to_local(t);
    char words[80];

    memset(part, BEFORE, dtensor_local_bytes(t));
    snprintf(words, sizeof words, "replicas along mesh dimension %s would "
             "differ", dim);
    need(call_it(call, &fine[call], t, NULL, &out, &job->err) ==
         DTENSOR_EINVAL && out == t, "%s as %s: not refused", names[call],
         placements);
    need(strstr(job->err.text, words) &&
         strstr(job->err.text, "since [seed] distinct = dp gives") &&
         strstr(job->err.text, "call dtensor_manual_seed(), or set "
                "distinct_replicas in the generator's rule)"), "%s as %s: %s",
         names[call], placements, job->err.text);
    need(dtensor_generator_offset(gen) == offset, "%s: the generator moved",
         names[call]);
    for (size_t i = 0; i < dtensor_local_bytes(t); i++)
        need(part[i] == BEFORE, "%s: byte %zu is changed", names[call], i);
    dtensor_destroy(t);
}

/* Allowed; are the replicas equal? */
static int made(struct job *job, enum call call, const char *placements,
                struct dtensor_generator *gen)
{
    struct dtensor *t = make_tensor(job, placements, dtype_of(call));
    struct dtensor *out = NULL;
    int equal = 9;

    good(call_it(call, &fine[call], t, gen, &out, &job->err));
    good(dtensor_replicas_equal(out ? out : t, &equal, &job->err));
    dtensor_destroy(out);
    dtensor_destroy(t);
    return equal;
}

static void each_call(struct job *job, enum call call)
{
    refused(job, call, "R,R", "0 dp");
    refused(job, call, "R,S(0)", "0 dp");
    need(made(job, call, "S(0),R", NULL) == 1, "%s along tp: replicas differ",
         names[call]);
    made(job, call, "S(0),S(0)", NULL);
}

/* The rule allows it, and then they do differ. */
static void allowed(struct job *job, enum call call)
{
    struct dtensor_generator *gen = dtensor_generator_default(job->ctx);
    struct dtensor_random_rule rule, usual;

    dtensor_generator_get_rule(gen, &usual);
    rule = usual;
    rule.distinct_replicas = 1;
    for (int tracker = 0; tracker < 4; tracker++) {
        rule.tracker = (enum dtensor_tracker)tracker;
        good(dtensor_generator_set_rule(gen, &rule, &job->err));
        need(made(job, call, "R,R", NULL) == 0, "%s, tracker %d: 12 elements "
             "of other seeds are the same", names[call], tracker);
    }
    good(dtensor_generator_set_rule(gen, &usual, &job->err));
}

static void distinct(int rank, int n, void *arg)
{
    const struct dtensor_mesh *world;
    struct dtensor_generator *own = NULL;
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    good(dtensor_generator_create(7, &own, &job->err));
    for (int call = 0; call < NCALLS; call++) {
        each_call(job, (enum call)call);
        allowed(job, (enum call)call);
        refused(job, (enum call)call, "R,R", "0 dp");
        need(made(job, (enum call)call, "R,R", own) == 1, "%s by a generator "
             "of one's own: replicas differ", names[call]);
    }
    good(dtensor_generator_sync(world, NULL, &job->err));
    for (int call = 0; call < NCALLS; call++)
        need(made(job, (enum call)call, "R,R", NULL) == 1, "%s, synchronized: "
             "replicas differ", names[call]);
    dtensor_generator_destroy(own);
    dtensor_fini(job->ctx);
}

/* A tensor of R on this mesh: 0 when it was made with replicas that agree. */
static int on(struct job *job, const struct dtensor_mesh *mesh)
{
    const int64_t shape[] = { 12 };
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    int equal = 9, rc;

    good(dtensor_spec_on(&spec, mesh, "R", DTENSOR_F32, 1, shape, &job->err));
    rc = dtensor_randn(&spec, NULL, &t, &job->err);
    if (rc == 0)
        good(dtensor_replicas_equal(t, &equal, &job->err));
    need(rc != 0 || equal == 1, "replicas differ");
    dtensor_destroy(t);
    return rc;
}

/* It is the ranks of a mesh that count, however it was made; a rank outside has
 * no replica to refuse.
 */
static void meshes(int rank, int n, void *arg)
{
    const struct dtensor_mesh *world, *made;
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    good(dtensor_mesh_slice(world, "tp", &made, &job->err));
    need(on(job, made) == 0, "a tp group: %s", job->err.text);
    good(dtensor_mesh_slice(world, "dp", &made, &job->err));
    need(on(job, made) == DTENSOR_EINVAL && strstr(job->err.text, "0 dp would"),
         "a dp group: %s", job->err.text);
    good(dtensor_mesh_flatten(world, NULL, &made, &job->err));
    need(on(job, made) == DTENSOR_EINVAL &&
         strstr(job->err.text, "0 dp_tp would"), "all: %s", job->err.text);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, NULL,
                             (const int[]){ 3, 1 }, &made, &job->err));
    need(on(job, made) == (rank % 2 ? DTENSOR_EINVAL : 0), "ranks 3 and 1: %s",
         job->err.text);
    need(rank % 2 == 0 || strstr(job->err.text, "dimension 0 would"), "%s",
         job->err.text);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, NULL,
                             (const int[]){ 3, 2 }, &made, &job->err));
    need(on(job, made) == 0, "ranks 3 and 2: %s", job->err.text);
    good(dtensor_manual_seed(world, 5, NULL, &job->err));
    good(dtensor_mesh_flatten(world, NULL, &made, &job->err));
    need(on(job, made) == 0, "seeded alike: %s", job->err.text);
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *path = ranks_file("shm", 4, "[mesh \"world\"]\ndims = dp=2, "
                                  "tp=2\n[seed]\nbase = 7\nmesh = world\n"
                                  "distinct = dp\n");

    ok(ranks_run(4, 60, distinct, (void *)(uintptr_t)path, NULL) == 0,
       "all %d calls refuse replicas along a dimension of distinct seeds; "
       "where they are allowed, replicas_equal sees that they differ", NCALLS);
    ok(ranks_run(4, 60, meshes, (void *)(uintptr_t)path, NULL) == 0, "also on "
       "slices, flattened and created meshes");
    unlink(path);
    return done();
}
