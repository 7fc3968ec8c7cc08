/* test_random.c - random tensors, made by real processes
 *
 * Tensors are filled on meshes with all kinds of placements; replicas must
 * agree, shards must differ, and every value must be the one that seed and
 * offset define.
 *
 * Without this test, replicas could hold different values after a random fill.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "random/generator.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST = 4096 };

static struct dtensor_random_rule rule_of(enum dtensor_tracker tracker,
                                          enum dtensor_fill fill)
{
    return (struct dtensor_random_rule){ .tracker = tracker, .fill = fill,
        .sms = 1, .threads_per_sm = 256, .parallel_dims = "tp" };
}

static struct dtensor_generator *make_gen(struct job *job, uint64_t seed,
                                          struct dtensor_random_rule rule)
{
    struct dtensor_generator *gen = NULL;

    good(dtensor_generator_create(seed, &gen, &job->err));
    good(dtensor_generator_set_rule(gen, &rule, &job->err));
    return gen;
}

/* --------------------------------------------------------------- global --- */

/* One of each kind of call, all from one generator in turn. */
static struct dtensor *draw(struct job *job, const struct dtensor_spec *spec,
                            int which, struct dtensor_generator *gen)
{
    struct dtensor *t = NULL, *dropped = NULL;

    if (which == 1) {
        good(dtensor_randn(spec, gen, &t, &job->err));
        return t;
    }
    good(dtensor_rand(spec, gen, &t, &job->err));
    switch (which) {
    case 2: good(dtensor_fill_log_normal(t, 1, 2, gen, &job->err)); break;
    case 3: good(dtensor_fill_exponential(t, 2, gen, &job->err)); break;
    case 4:
        good(dtensor_fill_trunc_normal(t, 0, 1, -1, 2, gen, &job->err));
        break;
    case 5: good(dtensor_fill_bernoulli(t, 0.3, gen, &job->err)); break;
    case 6: good(dtensor_fill_integers(t, -100, 100, gen, &job->err)); break;
    case 7:
        good(dtensor_dropout(t, 0.4, gen, &dropped, NULL, &job->err));
        dtensor_destroy(t);
        return dropped;
    }
    return t;
}

/* Gathered, it is what one rank alone makes: of that the whole is known, too,
 * since every rank can make it by itself.
 */
static void same_as_alone(struct job *job, const struct dtensor_spec *spec,
                          enum dtensor_fill fill)
{
    const struct dtensor_random_rule rule = rule_of(DTENSOR_TRACKER_GLOBAL,
                                                    fill);
    const size_t bytes = (size_t)numel(spec) * dtensor_dtype_size(spec->dtype);
    struct dtensor_generator *gen = make_gen(job, 5, rule);
    struct dtensor_generator *alone = make_gen(job, 5, rule);
    const struct dtensor_mesh *own;
    struct dtensor_spec single = *spec;
    char got[MOST], want[MOST];

    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 1 }, NULL,
                             (int[]){ job->rank }, &own, &job->err));
    single.mesh = own;
    memset(single.placement, 0, sizeof single.placement);
    for (int which = 0; which < 8; which++) {
        struct dtensor *a = draw(job, spec, which, gen);
        struct dtensor *b = draw(job, &single, which, alone);

        good(dtensor_full_tensor(a, got, bytes, &job->err));
        good(dtensor_full_tensor(b, want, bytes, &job->err));
        need(memcmp(got, want, bytes) == 0, "call %d is not what one rank "
             "makes", which);
        need(dtensor_generator_offset(gen) == dtensor_generator_offset(alone),
             "offsets differ after call %d", which);
        dtensor_destroy(a);
        dtensor_destroy(b);
    }
    dtensor_generator_destroy(gen);
    dtensor_generator_destroy(alone);
}

static void global(int rank, int n, void *arg)
{
    static const char *const placements[] = { "S(0),R", "S(1),S(0)",
        "S(0),S(0)", "R,R", "SS(0,2),S(0)", "C(1,2),R", "S(1:9,2),C(0,1)" };
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_F64,
        DTENSOR_F16, DTENSOR_BF16 };
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, 2, (int[]){ 2, n / 2 }, NULL, NULL,
                             &mesh, &job->err));
    for (size_t i = 0; i < DTN_COUNT(placements); i++)
        for (size_t d = 0; d < DTN_COUNT(dtypes); d++) {
            struct dtensor_spec spec = spec_of(job, mesh, dtypes[d],
                                               (const int64_t[]){ 35, 11 },
                                               placements[i]);

            if (!rounds_pick())
                continue;
            same_as_alone(job, &spec, DTENSOR_FILL_SEQUENTIAL);
            same_as_alone(job, &spec, DTENSOR_FILL_CUDA);
        }
    dtensor_fini(job->ctx);
}

/* --------------------------------------------------------------- offset --- */

/* Equal parts where the parts are the same, others otherwise. */
static void compare_parts(struct job *job, const char *placements,
                          const int part[4])
{
    const struct dtensor_random_rule rule = rule_of(DTENSOR_TRACKER_OFFSET,
                                                    DTENSOR_FILL_CUDA);
    struct dtensor_generator *gen = make_gen(job, 9, rule);
    const struct dtensor_mesh *world, *mesh;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    float all[4 * 256];
    size_t bytes, count;

    good(dtensor_mesh_create(job->ctx, 2, (int[]){ 2, 2 }, NULL, NULL, &mesh,
                             &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 16, 16 },
                   placements);
    good(dtensor_rand(&spec, gen, &t, &job->err));
    bytes = dtensor_local_bytes(t);
    count = bytes / sizeof(float);
    good(dtensor_allgather(world, dtensor_to_local(t), all, count,
                           DTENSOR_F32, &job->err));
    for (size_t a = 0; a < 4; a++)
        for (size_t b = 0; b < a; b++)
            need((memcmp(all + a * count, all + b * count, bytes) == 0) ==
                 (part[a] == part[b]), "%s: parts %zu and %zu", placements, a,
                 b);
    need(dtensor_generator_offset(gen) == 256, "the offset is %d",
         (int)dtensor_generator_offset(gen));
    dtensor_destroy(t);
    dtensor_generator_destroy(gen);
}

static void offset(int rank, int n, void *arg)
{
    struct job job;

    job_open(&job, rank, n, NULL);
    compare_parts(&job, "S(0),S(1)", (int[]){ 0, 1, 2, 3 });
    compare_parts(&job, "S(1),S(0)", (int[]){ 0, 2, 1, 3 });
    compare_parts(&job, "S(0),R", (int[]){ 0, 0, 1, 1 });
    compare_parts(&job, "R,S(0)", (int[]){ 0, 1, 0, 1 });
    compare_parts(&job, "S(1),R", (int[]){ 0, 0, 1, 1 });
    compare_parts(&job, "R,S(1)", (int[]){ 0, 1, 0, 1 });
    compare_parts(&job, "R,R", (int[]){ 0, 0, 0, 0 });
    compare_parts(&job, "S(0),S(0)", (int[]){ 0, 1, 2, 3 });
    dtensor_fini(job.ctx);
}

/* -------------------------------------------------------------- seeding --- */

static void seeding(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *world, *half;
    struct dtensor_generator *gen;
    unsigned char state[DTENSOR_STATE_BYTES], back[DTENSOR_STATE_BYTES];
    const uint64_t seed = (UINT64_C(1) << 63) + 42;
    uint64_t calls;
    int rc;

    job_open(job, rank, n, NULL);
    gen = dtensor_generator_default(job->ctx);
    need(dtensor_generator_seed(gen) == 0, "without a file the seed is 0");
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 2 }, NULL,
                             (int[]){ 1, 2 }, &half, &job->err));
    calls = job->ctx->calls;
    rc = dtensor_manual_seed(half, seed + (uint64_t)rank, NULL, &job->err);
    if (rank == 1 || rank == 2) {
        need(rc == 0 && dtensor_generator_seed(gen) == seed + (uint64_t)rank,
             "manual_seed of a member");
    } else {
        need(rc == DTENSOR_EINVAL && dtensor_generator_seed(gen) == 0 &&
             strstr(job->err.text, "is not in the mesh"), "outside: %s",
             job->err.text);
    }
    need(job->ctx->calls == calls, "manual_seed communicates");
    good(dtensor_manual_seed(world, seed + (uint64_t)rank, NULL, &job->err));
    dtensor_generator_get_state(gen, state);
    need(memcmp(state, "\x2a\0\0\0\0\0\0\x80", 8) == 0 || rank > 0,
         "the seed is the first 8 bytes, lowest first");
    good(dtensor_generator_set_state(gen, state, sizeof state, &job->err));
    dtensor_generator_get_state(gen, back);
    need(memcmp(state, back, sizeof state) == 0, "the state comes back");
    good(dtensor_generator_sync(world, NULL, &job->err));
    need(dtensor_generator_seed(gen) == seed, "sync: rank 0's state");
    dtensor_fini(job->ctx);
}

/* [seed] of a file: base 7, stride 100, distinct along the first dimension. */
static void from_file(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    struct dtensor_generator *gen;
    struct dtensor_random_rule rule;

    job_open(job, rank, n, arg);
    gen = dtensor_generator_default(job->ctx);
    need(dtensor_generator_seed(gen) == 7 + 100 * (uint64_t)(rank / 2),
         "the seed of rank %d", rank);
    dtensor_generator_get_rule(gen, &rule);
    need(rule.tracker == DTENSOR_TRACKER_OFFSET && rule.pytorch == 1 &&
         rule.fill == DTENSOR_FILL_CUDA && rule.sms == 108 &&
         rule.threads_per_sm == 2048, "the rule");
    dtensor_fini(job->ctx);
}

/* A user's generator: seeded alike twice it gives the same, and is what moves.
 */
static void own_generator(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *world;
    struct dtensor_generator *gen = NULL;
    struct dtensor_spec spec;
    struct dtensor *a = NULL, *b = NULL;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    spec = spec_of(job, world, DTENSOR_F32, (const int64_t[]){ 9, 4 }, "S(0)");
    good(dtensor_generator_create(55, &gen, &job->err));
    good(dtensor_rand(&spec, gen, &a, &job->err));
    need(dtensor_generator_offset(gen) == 36, "it has advanced by 36");
    good(dtensor_manual_seed(world, 55, gen, &job->err));
    good(dtensor_rand(dtensor_spec_of(a), gen, &b, &job->err));
    need(dtensor_local_bytes(a) == 0 ||
         memcmp(dtensor_to_local(a), dtensor_to_local(b),
                dtensor_local_bytes(a)) == 0, "seeded alike, but different");
    need(dtensor_generator_offset(dtensor_generator_default(job->ctx)) == 0,
         "the default one has not moved");
    dtensor_destroy(b);
    good(dtensor_randint(&spec, 3, 5, gen, &b, &job->err));
    for (size_t i = 0; i < dtensor_local_bytes(b) / sizeof(float); i++)
        need(get(DTENSOR_F32, dtensor_to_local(b), (int64_t)i) == 3 ||
             get(DTENSOR_F32, dtensor_to_local(b), (int64_t)i) == 4,
             "randint(3, 5)");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_generator_destroy(gen);
    dtensor_fini(job->ctx);
}

/* PyTorch's distribute region switched off: with one seed on all ranks shards
 * are the same numbers, those that a tensor of the shard's shape has anywhere.
 */
static void local_numbers(int rank, int n, void *arg)
{
    const struct dtensor_random_rule rule = rule_of(DTENSOR_TRACKER_LOCAL,
                                                    DTENSOR_FILL_SEQUENTIAL);
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *world;
    struct dtensor_generator *gen[2];
    struct dtensor_spec shard, copy;
    struct dtensor *a = NULL, *b = NULL;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    for (int i = 0; i < 2; i++)
        gen[i] = make_gen(job, 77, rule);
    shard = spec_of(job, world, DTENSOR_F32,
                    (const int64_t[]){ 3 * n, 5 }, "S(0)");
    copy = spec_of(job, world, DTENSOR_F32, (const int64_t[]){ 3, 5 }, "R");
    good(dtensor_rand(&shard, gen[0], &a, &job->err));
    good(dtensor_rand(&copy, gen[1], &b, &job->err));
    need(dtensor_local_bytes(a) == 60 && dtensor_local_bytes(b) == 60 &&
         memcmp(dtensor_to_local(a), dtensor_to_local(b), 60) == 0,
         "a shard is not what its generator's next numbers are");
    need(dtensor_generator_offset(gen[0]) == 16 &&
         dtensor_generator_offset(gen[1]) == 16,
         "15 numbers are not 16 steps, but %d",
         (int)dtensor_generator_offset(gen[0]));
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_generator_destroy(gen[0]);
    dtensor_generator_destroy(gen[1]);
    dtensor_fini(job->ctx);
}

/* Ranks outside the mesh make the call and their generator keeps step. */
static void outside(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 2 }, NULL,
                             (int[]){ 1, 2 }, &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 6, 4 }, "S(0)");
    for (int i = 0; i < 3; i++) {
        struct dtensor_random_rule rule = rule_of((enum dtensor_tracker)i,
                                                  DTENSOR_FILL_SEQUENTIAL);
        struct dtensor_generator *gen = make_gen(job, 1, rule);

        good(dtensor_randn(&spec, gen, &t, &job->err));
        need(dtensor_generator_offset(gen) == (i == 2 ? 12 : 24),
             "tracker %d: offset %d", i, (int)dtensor_generator_offset(gen));
        dtensor_destroy(t);
        dtensor_generator_destroy(gen);
    }
    dtensor_fini(job->ctx);
}

/* --------------------------------------------------------- permutations --- */

static void permutation(struct job *job, int64_t n, const char *placements)
{
    const struct dtensor_mesh *world;
    struct dtensor_spec spec = { .dtype = DTENSOR_I64, .ndim = 1,
                                 .shape = { n } };
    int64_t *whole = calloc((size_t)n + 1, sizeof *whole), fixed = 0;
    char *seen = calloc((size_t)n + 1, 1);
    struct dtensor *t = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    spec.mesh = world;
    good(dtensor_placements_parse(world, placements, 1, spec.placement,
                                  &job->err));
    good(dtensor_randperm(&spec, NULL, &t, &job->err));
    good(dtensor_full_tensor(t, whole, (size_t)n * 8, &job->err));
    for (int64_t i = 0; i < n; i++) {
        need(whole[i] >= 0 && whole[i] < n && !seen[whole[i]]++,
             "randperm of %d is none", (int)n);
        fixed += whole[i] == i;
    }
    need(n < 100 || fixed < 12, "%d of %d stayed", (int)fixed, (int)n);
    dtensor_destroy(t);
    free(whole);
    free(seen);
}

static void permutations(int rank, int n, void *arg)
{
    static const int64_t sizes[] = { 0, 1, 2, 3, 100, 4096, 4097, 10000,
                                     65536 };
    struct job job;

    job_open(&job, rank, n, NULL);
    for (size_t i = 0; i < DTN_COUNT(sizes); i++) {
        permutation(&job, sizes[i], "S(0)");
        permutation(&job, sizes[i], "C(0,3)");
    }
    need(dtensor_generator_offset(dtensor_generator_default(job.ctx)) ==
         4 * 2 * DTN_COUNT(sizes), "each takes 4");
    dtensor_fini(job.ctx);
}

/* -------------------------------------------------------------- dropout --- */

static void dropout(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *world;
    struct dtensor *t = NULL, *out = NULL, *mask = NULL;
    struct dtensor_spec spec;
    const float *got;
    const char *keep;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    spec = spec_of(job, world, DTENSOR_F32, (const int64_t[]){ 64, 64 },
                   "S(1)");
    good(dtensor_full(&spec, 3, &t, &job->err));
    for (int i = 0; i <= 4; i++) {
        const float scale = 1 / (1 - (float)i / 4);
        int64_t kept = 0;

        good(dtensor_dropout(t, i / 4.0, NULL, &out, &mask, &job->err));
        got = dtensor_to_local(out);
        keep = dtensor_to_local(mask);
        for (size_t k = 0; k < dtensor_local_bytes(mask); k++) {
            need(got[k] == (keep[k] ? 3 * scale : 0), "element %zu", k);
            kept += keep[k];
        }
        need(i != 0 || kept == 64 * 64 / n, "p = 0 keeps all");
        need(i != 4 || kept == 0, "p = 1 keeps none");
        need(fabs((double)kept * n / 4096 - (1 - i / 4.0)) < 0.06, "%d kept",
             (int)kept);
        dtensor_destroy(out);
        dtensor_destroy(mask);
    }
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *path;

    ok(ranks_run(4, 60, global, NULL, NULL) == 0, "global: every call on 2 x 2 "
       "gives what one rank makes, bit for bit");
    ok(ranks_run(6, 60, global, NULL, NULL) == 0, "and on 2 x 3");
    ok(ranks_run(4, 60, offset, NULL, NULL) == 0, "offset: replicas are equal, "
       "shards differ");
    ok(ranks_run(4, 60, seeding, NULL, NULL) == 0, "manual_seed, state, sync");
    path = ranks_file("shm", 4, "[mesh \"grid\"]\ndims = pp=2, tp=2\n[seed]\n"
                      "base = 7\nstride = 100\nmesh = grid\ndistinct = pp\n"
                      "tracker = offset\ncompat = pytorch\nfill = cuda\n"
                      "sms = 108\n");
    ok(ranks_run(4, 60, from_file, (void *)(uintptr_t)path, NULL) == 0,
       "the default generator is seeded by the cluster file");
    unlink(path);
    ok(ranks_run(3, 60, local_numbers, NULL, NULL) == 0, "tracker local: each "
       "rank its generator's next numbers, whatever the placement");
    ok(ranks_run(3, 60, own_generator, NULL, NULL) == 0, "a generator of one's "
       "own is used and advanced");
    ok(ranks_run(4, 60, outside, NULL, NULL) == 0,
       "generators of ranks outside "
       "the mesh keep step");
    ok(ranks_run(3, 60, permutations, NULL, NULL) == 0, "permutations");
    ok(ranks_run(2, 60, dropout, NULL, NULL) == 0, "dropout scales what it "
       "keeps, as the mask says");
    return done();
}
