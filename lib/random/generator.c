/* generator.c - seed, offset and rule
 *
 * A generator has 16 bytes of state: the seed, which is the key of Philox, and
 * the offset, the number of words used from each stream.  A block has four
 * words and an operation begins with a new block, so the offset is a multiple
 * of 4: after f32[10] it is 12.  Ranks with the same seed and the same calls
 * have the same state, without communication.
 */
#include "random/generator.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/defaults.h"
#include "cluster/seed.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct dtensor_random_rule rule_default = {
    .tracker = DTENSOR_TRACKER_GLOBAL, .fill = DTENSOR_FILL_SEQUENTIAL,
    .sms = DTN_DEFAULT_SMS,
    .threads_per_sm = DTN_DEFAULT_THREADS_PER_SM, .parallel_dims = "tp"
};

int dtensor_generator_create(uint64_t seed, struct dtensor_generator **genp,
                             struct dtensor_error *err)
{
    struct dtensor_generator *gen = calloc(1, sizeof *gen);

    if (!gen)
        return dtn_fail_nomem(err, "generator", sizeof *gen);
    gen->seed = seed;
    gen->rule = rule_default;
    *genp = gen;
    return 0;
}

void dtensor_generator_destroy(struct dtensor_generator *gen)
{
    if (gen && !gen->kept)
        free(gen);
}

int dtn_generator_init(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtn_seed_conf *conf = &ctx->world.cluster->seed;
    struct dtensor_generator *gen = NULL;
    uint64_t seed = 0;
    int rc;

    if (conf->given)
        seed = dtn_seed_of(ctx->world.cluster, ctx->world.rank);
    rc = dtensor_generator_create(seed, &gen, err);
    if (rc != 0)
        return rc;
    ctx->slots[DTN_ROOM_RANDOM] = (struct dtn_slot){ .state = gen,
                                                     .destroy = free };
    gen->kept = true;
    if (conf->given) {
        struct dtensor_random_rule *rule = &gen->rule;

        rule->tracker = (enum dtensor_tracker)conf->tracker;
        rule->fill = (enum dtensor_fill)conf->fill;
        rule->pytorch = conf->pytorch;
        rule->sms = conf->sms;
        rule->threads_per_sm = conf->threads_per_sm;
        gen->from_file = true;
    }
    return 0;
}

struct dtensor_generator *dtensor_generator_default(struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_RANDOM].state;
}

uint64_t dtensor_generator_seed(const struct dtensor_generator *gen)
{
    return gen->seed;
}

int64_t dtensor_generator_offset(const struct dtensor_generator *gen)
{
    return gen->offset;
}

/* ---------------------------------------------------------------- state --- */

static void put_u64(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_u64(const unsigned char *from)
{
    uint64_t value = 0;

    for (int i = 7; i >= 0; i--)
        value = value << 8 | from[i];
    return value;
}

void dtensor_generator_get_state(const struct dtensor_generator *gen,
                                 unsigned char state[DTENSOR_STATE_BYTES])
{
    put_u64(state, gen->seed);
    put_u64(state + 8, (uint64_t)gen->offset);
}

int dtensor_generator_set_state(struct dtensor_generator *gen,
                                const unsigned char *state, size_t size,
                                struct dtensor_error *err)
{
    uint64_t offset;

    if (size != DTENSOR_STATE_BYTES)
        return dtn_fail(err, DTENSOR_EINVAL, "generator: a state of %zu bytes; "
                        "expected %d", size, DTENSOR_STATE_BYTES);
    offset = get_u64(state + 8);
    if (offset > INT64_MAX || offset % 4 != 0)
        return dtn_fail(err, DTENSOR_EINVAL, "generator: offset %lld; expected "
                        "a multiple of 4 that is not negative",
                        (long long)offset);
    gen->seed = get_u64(state);
    gen->offset = (int64_t)offset;
    gen->from_file = false;
    return 0;
}

/* -------------------------------------------------------------- seeding --- */

/* NULL: the context's own generator. */
struct dtensor_generator *dtn_generator_of(const struct dtensor_mesh *mesh,
                                           struct dtensor_generator *gen)
{
    return gen ? gen : dtensor_generator_default(mesh->ctx);
}

int dtensor_manual_seed(const struct dtensor_mesh *mesh, uint64_t seed,
                        struct dtensor_generator *gen,
                        struct dtensor_error *err)
{
    char text[200];

    if (mesh->group.me < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "manual_seed: rank %d is not in "
                        "the mesh %s, so its generator would not be that of "
                        "the others (call it on the ranks of the mesh only)",
                        mesh->ctx->world.rank,
                        dtn_mesh_format(mesh, text, sizeof text));
    gen = dtn_generator_of(mesh, gen);
    gen->seed = seed;
    gen->offset = 0;
    gen->from_file = false;
    return 0;
}

int dtensor_generator_sync(const struct dtensor_mesh *mesh,
                           struct dtensor_generator *gen,
                           struct dtensor_error *err)
{
    unsigned char state[DTENSOR_STATE_BYTES];
    int rc;

    gen = dtn_generator_of(mesh, gen);
    dtensor_generator_get_state(gen, state);
    rc = dtensor_broadcast(mesh, 0, state, sizeof state, DTENSOR_U8, err);
    if (rc != 0)
        return rc;
    return dtensor_generator_set_state(gen, state, sizeof state, err);
}

/* ----------------------------------------------------------------- rule --- */

void dtensor_generator_get_rule(const struct dtensor_generator *gen,
                                struct dtensor_random_rule *rule)
{
    *rule = gen->rule;
}

int dtensor_generator_set_rule(struct dtensor_generator *gen,
                               const struct dtensor_random_rule *rule,
                               struct dtensor_error *err)
{
    if ((unsigned)rule->tracker > DTENSOR_TRACKER_LOCAL)
        return dtn_fail(err, DTENSOR_EINVAL, "generator: no tracker has number "
                        "%d", (int)rule->tracker);
    if ((unsigned)rule->fill > DTENSOR_FILL_CUDA)
        return dtn_fail(err, DTENSOR_EINVAL, "generator: no fill has number %d",
                        (int)rule->fill);
    if (rule->sms < 1 || rule->sms > 1 << 20 || rule->threads_per_sm < 256 ||
        rule->threads_per_sm > 1 << 20)
        return dtn_fail(err, DTENSOR_EINVAL, "generator: %d multiprocessors of "
                        "%d threads; expected 1 or more, of 256 or more",
                        rule->sms, rule->threads_per_sm);
    if (!memchr(rule->parallel_dims, '\0', sizeof rule->parallel_dims))
        return dtn_fail(err, DTENSOR_EINVAL, "generator: parallel_dims has no "
                        "end");
    gen->rule = *rule;
    return 0;
}
