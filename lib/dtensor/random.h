/* dtensor/random.h - random numbers
 *
 * A random tensor depends on a seed, not on the ranks that compute it: by
 * default element i gets number i of the generator's stream.  So a tensor is
 * the same on one rank and on a thousand, sharded or not, and nothing is sent.
 * Other rules make the numbers that PyTorch makes.
 */
#ifndef DTENSOR_RANDOM_H
#define DTENSOR_RANDOM_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------ random numbers --- */

/* A generator: a seed, and an offset that counts the numbers used.  A call
 * uses `gen`, or with NULL the generator of the context, and advances its
 * offset by the same amount on every rank.  Ranks whose generators have the
 * same state make tensors that agree; only dtensor_generator_sync()
 * communicates.  dtensor-random(7) has the details.
 */
struct dtensor_generator;

/* Which numbers the parts of a tensor get. */
enum dtensor_tracker {
    DTENSOR_TRACKER_GLOBAL,    /* by the element's place in the whole: the    */
                               /* same tensor on any mesh                     */
    DTENSOR_TRACKER_OFFSET,    /* each shard has its own, replicas the same   */
    DTENSOR_TRACKER_MEGATRON,  /* from seed + 2718 + coordinate               */
    DTENSOR_TRACKER_LOCAL      /* the next ones of the rank's generator       */
};

/* Which number of the stream an element gets. */
enum dtensor_fill {
    DTENSOR_FILL_SEQUENTIAL,   /* element after element                       */
    DTENSOR_FILL_CUDA          /* as the threads of a CUDA grid get them      */
};

/* Which number of the stream each element gets; dtensor-random(7). */
struct dtensor_random_rule {
    enum dtensor_tracker tracker;      /* default GLOBAL                      */
    enum dtensor_fill fill;            /* default SEQUENTIAL                  */
    int pytorch;                       /* OFFSET: 1 uses PyTorch's offsets,   */
                                       /* even if shards share numbers        */
    int sms;                           /* CUDA: multiprocessors; default 132  */
    int threads_per_sm;                /* CUDA: threads of a multiprocessor;  */
                                       /* default 2048                        */
    char parallel_dims[100];           /* MEGATRON: names of mesh dimensions; */
                                       /* default "tp"                        */
    int distinct_replicas;             /* 1: replicas may differ if [seed]    */
                                       /* gives their ranks different seeds   */
};

/* Make a generator with that seed at offset 0 and the default rule, given
 * above.
 *
 * Collective: no.   Blocks: no.   Semantics: torch.Generator().manual_seed.
 * Owns:   *genp is the caller's, for dtensor_generator_destroy().
 * Errors: ENOMEM
 */
int dtensor_generator_create(uint64_t seed, struct dtensor_generator **genp,
                             struct dtensor_error *err);
void dtensor_generator_destroy(struct dtensor_generator *gen);  /* NULL: none */

/* The generator of the context: it begins with the seed of [seed] in the
 * cluster file for this rank, else with 0.  Until the program seeds it or sets
 * its state, a tensor that is replicated along a mesh dimension with distinct
 * seeds is refused, since its replicas would differ, unless the rule has
 * distinct_replicas.
 * Semantics: torch.default_generator.
 *
 * Owns:   the context, until dtensor_fini(); destroying it is a no-op.
 */
struct dtensor_generator *dtensor_generator_default(struct dtensor_ctx *ctx);

/* The seed, and how many numbers were used. */
uint64_t dtensor_generator_seed(const struct dtensor_generator *gen);
int64_t dtensor_generator_offset(const struct dtensor_generator *gen);

/* The state: seed and offset, 8 bytes each, lowest first.
 * Semantics: torch.cuda.get_rng_state(), and set_rng_state().
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  size is not 16, or the offset negative or no multiple of 4
 */
#define DTENSOR_STATE_BYTES 16
void dtensor_generator_get_state(const struct dtensor_generator *gen,
                                 unsigned char state[DTENSOR_STATE_BYTES]);
int dtensor_generator_set_state(struct dtensor_generator *gen,
                                const unsigned char *state, size_t size,
                                struct dtensor_error *err);

/* The rule that says which number each element gets, from now on.
 *
 * Collective: no, but ranks that share tensors must set it alike.
 * Blocks: no.   Semantics: its own.
 * Errors: EINVAL  a number out of range: says which
 */
void dtensor_generator_get_rule(const struct dtensor_generator *gen,
                                struct dtensor_random_rule *rule);
int dtensor_generator_set_rule(struct dtensor_generator *gen,
                               const struct dtensor_random_rule *rule,
                               struct dtensor_error *err);

/* Seed the generator and set its offset to 0.
 * Semantics: torch.distributed.tensor.manual_seed: nothing is compared.
 *
 * Collective: no, but the ranks of a mesh that share tensors must seed alike.
 * Blocks: no.
 * Errors: EINVAL  this rank is outside the mesh
 */
int dtensor_manual_seed(const struct dtensor_mesh *mesh, uint64_t seed,
                        struct dtensor_generator *gen,
                        struct dtensor_error *err);

/* Give every rank of the mesh the state of its first one.
 * Semantics: what DTensor did when its tracker was made, before 2025.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until done.
 * Errors: those of dtensor_broadcast(); then the state is unchanged
 */
int dtensor_generator_sync(const struct dtensor_mesh *mesh,
                           struct dtensor_generator *gen,
                           struct dtensor_error *err);

/* Fill a tensor: uniform in [from, to); normal; exp of normal; exponential with
 * rate lambda; normal between two bounds; 1 with probability p, else 0; whole
 * numbers in [from, to); integers with random bits.  For real floating types;
 * bernoulli and integers also for integer types and bool; bits only for those.
 * Semantics: Tensor.uniform_, normal_, log_normal_, exponential_,
 * nn.init.trunc_normal_, bernoulli_, random_.
 *
 * Collective: no, but all ranks of the mesh must make the same call; outside
 *         the mesh it advances the generator only.   Blocks: no.
 * Errors: EINVAL  a parameter, the dtype, a Partial placement, or replicas that
 *         would differ (see dtensor_generator_default()): says which; or the
 *         offset would pass 2^63.  Tensor and generator are untouched
 */
int dtensor_fill_uniform(struct dtensor *t, double from, double to,
                         struct dtensor_generator *gen,
                         struct dtensor_error *err);
int dtensor_fill_normal(struct dtensor *t, double mean, double std,
                        struct dtensor_generator *gen,
                        struct dtensor_error *err);
int dtensor_fill_log_normal(struct dtensor *t, double mean, double std,
                            struct dtensor_generator *gen,
                            struct dtensor_error *err);
int dtensor_fill_exponential(struct dtensor *t, double lambda,
                             struct dtensor_generator *gen,
                             struct dtensor_error *err);
int dtensor_fill_trunc_normal(struct dtensor *t, double mean, double std,
                              double from, double to,
                              struct dtensor_generator *gen,
                              struct dtensor_error *err);
int dtensor_fill_bernoulli(struct dtensor *t, double p,
                           struct dtensor_generator *gen,
                           struct dtensor_error *err);
int dtensor_fill_integers(struct dtensor *t, int64_t from, int64_t to,
                          struct dtensor_generator *gen,
                          struct dtensor_error *err);
int dtensor_fill_bits(struct dtensor *t, struct dtensor_generator *gen,
                      struct dtensor_error *err);

/* Make a tensor: uniform in [0, 1); normal with mean 0 and deviation 1; whole
 * numbers in [from, to); or, for one dimension, the numbers 0 .. shape[0] - 1
 * in random order, which is the same for any tracker and fill.
 * Semantics: torch.rand, randn, randint, randperm; rand_like & co. with the
 * spec of a tensor.
 *
 * Collective, blocks, errors: as dtensor_fill_uniform();  ENOMEM
 * Owns:   *tp is the caller's, for dtensor_destroy().
 */
int dtensor_rand(const struct dtensor_spec *spec,
                 struct dtensor_generator *gen, struct dtensor **tp,
                 struct dtensor_error *err);
int dtensor_randn(const struct dtensor_spec *spec,
                  struct dtensor_generator *gen, struct dtensor **tp,
                  struct dtensor_error *err);
int dtensor_randint(const struct dtensor_spec *spec, int64_t from, int64_t to,
                    struct dtensor_generator *gen, struct dtensor **tp,
                    struct dtensor_error *err);
int dtensor_randperm(const struct dtensor_spec *spec,
                     struct dtensor_generator *gen, struct dtensor **tp,
                     struct dtensor_error *err);

/* Make a tensor whose elements are 0 with probability p, and otherwise those of
 * `t` divided by 1 - p; and, unless maskp is NULL, a bool tensor that says
 * which were kept.
 * Semantics: torch.native_dropout in training.
 *
 * Collective, blocks, errors: as dtensor_fill_uniform();  ENOMEM
 * Owns:   *tp and *maskp are the caller's, for dtensor_destroy().
 */
int dtensor_dropout(const struct dtensor *t, double p,
                    struct dtensor_generator *gen, struct dtensor **tp,
                    struct dtensor **maskp, struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif
