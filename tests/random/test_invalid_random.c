/* test_invalid_random.c - invalid arguments of all random calls
 *
 * A call that is refused leaves every byte of tensor and generator as it was,
 * with or without a place for the error text, and makes nothing.
 *
 * Without this test, a refused call could advance the generator on some ranks
 * only, and all later numbers would differ.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "mesh/mesh.h"
#include "random/generator.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/random/random_calls.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static bool has_type(enum call call, enum dtensor_dtype dtype)
{
    const enum dtn_dtype_kind kind = dtn_dtype_kind(dtype);

    switch (call) {
    case BITS:
        return kind != DTN_DTYPE_FLOAT && kind != DTN_DTYPE_COMPLEX;
    case BERNOULLI:
        return kind != DTN_DTYPE_COMPLEX;
    case INTEGERS: case RANDINT: case RANDPERM:
        return kind != DTN_DTYPE_COMPLEX && kind != DTN_DTYPE_BOOL;
    default:
        return kind == DTN_DTYPE_FLOAT;
    }
}

/* Twice, once without a place for the words: EINVAL with them, nothing made,
 * tensor and generator as they were.
 */
static void refused(struct job *job, enum call call, const struct numbers *x,
                    struct dtensor *t, struct dtensor_generator *gen,
                    const char *words)
{
    unsigned char state[2][DTENSOR_STATE_BYTES], before[12 * 16];
    const size_t bytes = dtensor_local_bytes(t);
    struct dtensor *none = NULL;

    dtensor_generator_get_state(gen, state[0]);
    memcpy(before, dtensor_to_local(t), bytes);
    for (int i = 0; i < 2; i++) {
        need(call_it(call, x, t, gen, &none, i ? NULL : &job->err) ==
             DTENSOR_EINVAL, "%s(%g, %g): not EINVAL (%s)", names[call],
             x->p[0], x->p[1], words);
        need(none == NULL, "%s made something", names[call]);
    }
    need(strstr(job->err.text, words), "%s: %s", names[call], job->err.text);
    dtensor_generator_get_state(gen, state[1]);
    need(memcmp(state[0], state[1], sizeof state[0]) == 0,
         "%s: the generator is not as it was", names[call]);
    need(memcmp(before, dtensor_to_local(t), bytes) == 0,
         "%s: the tensor is not as it was", names[call]);
}

static const struct {
    enum call call;
    enum dtensor_dtype dtype;
    struct numbers x;
    const char *words;
} wrong[] = {
#define REALS(call, dtype, words, ...)                                        \
    { call, dtype, { .p = { __VA_ARGS__ } }, words }
#define WHOLE(call, dtype, from, to, words)                                   \
    { call, dtype, { { 0 }, from, to }, words }
    REALS(UNIFORM, DTENSOR_F32, "uniform: from 1 to 1 is empty (from must be "
          "less than to)", 1, 1),
    REALS(UNIFORM, DTENSOR_F64, "is empty", 2, 1),
    REALS(UNIFORM, DTENSOR_F32, "is empty", NAN, 1),
    REALS(UNIFORM, DTENSOR_F32, "is empty", 0, NAN),
    REALS(UNIFORM, DTENSOR_F32, "represented", 1, 1 + 1e-12),
    REALS(UNIFORM, DTENSOR_F32, "represented", -3e38, 3e38),
    REALS(UNIFORM, DTENSOR_F64, "represented", -1.7e308, 1.7e308),
    REALS(UNIFORM, DTENSOR_F16, "represented", 0, 65520),
    REALS(UNIFORM, DTENSOR_BF16, "represented", 1, 1.001),
    REALS(UNIFORM, DTENSOR_F32, "represented", 0, INFINITY),
    REALS(UNIFORM, DTENSOR_F64, "represented", -INFINITY, 0),
    REALS(UNIFORM, DTENSOR_F64, "represented", -INFINITY, INFINITY),
    REALS(UNIFORM, DTENSOR_F32, "is empty", INFINITY, INFINITY),
    REALS(NORMAL, DTENSOR_F32, "normal: mean 0 and std -1; both must be finite "
          "and std not negative", 0, -1),
    REALS(NORMAL, DTENSOR_F64, "both must be finite", NAN, 1),
    REALS(NORMAL, DTENSOR_F32, "both must be finite", 0, NAN),
    REALS(NORMAL, DTENSOR_F32, "both must be finite", 0, INFINITY),
    REALS(NORMAL, DTENSOR_BF16, "both must be finite", -INFINITY, 1),
    REALS(LOG_NORMAL, DTENSOR_F32, "log_normal: mean inf", INFINITY, 1),
    REALS(LOG_NORMAL, DTENSOR_F32, "log_normal: mean 0 and std -2", 0, -2),
    REALS(LOG_NORMAL, DTENSOR_F64, "log_normal", 0, NAN),
    REALS(EXPONENTIAL, DTENSOR_F32, "exponential: rate 0; expected more than 0",
          0),
    REALS(EXPONENTIAL, DTENSOR_F32, "rate -1; expected more than 0", -1),
    REALS(EXPONENTIAL, DTENSOR_F64, "expected more than 0", NAN),
    REALS(EXPONENTIAL, DTENSOR_F64, "expected more than 0", -INFINITY),
    REALS(EXPONENTIAL, DTENSOR_F64, "expected more than 0", 1e-320),
    REALS(TRUNC_NORMAL, DTENSOR_F32, "std positive", 0, 0, -1, 1),
    REALS(TRUNC_NORMAL, DTENSOR_F32, "std positive", 0, -1, -1, 1),
    REALS(TRUNC_NORMAL, DTENSOR_F32, "std positive", 0, NAN, -1, 1),
    REALS(TRUNC_NORMAL, DTENSOR_F64, "both must be finite", INFINITY, 1, -1, 1),
    REALS(TRUNC_NORMAL, DTENSOR_F32, "is empty", 0, 1, 1, -1),
    REALS(TRUNC_NORMAL, DTENSOR_F32, "is empty", 0, 1, NAN, 1),
    REALS(TRUNC_NORMAL, DTENSOR_F32, "is empty", 0, 1, -1, NAN),
    REALS(TRUNC_NORMAL, DTENSOR_F32, "too far", 0, 1, 50, 51),
    REALS(TRUNC_NORMAL, DTENSOR_F64, "too far", 0, 1, 1e300, INFINITY),
    REALS(BERNOULLI, DTENSOR_F32, "bernoulli: probability 1.5; expected 0 to 1",
          1.5),
    REALS(BERNOULLI, DTENSOR_I32, "expected 0 to 1", -0.1),
    REALS(BERNOULLI, DTENSOR_BOOL, "expected 0 to 1", NAN),
    REALS(BERNOULLI, DTENSOR_F64, "expected 0 to 1", INFINITY),
    REALS(DROPOUT, DTENSOR_F32, "dropout: probability 2; expected 0 to 1", 2),
    REALS(DROPOUT, DTENSOR_F32, "expected 0 to 1", -1e-9),
    REALS(DROPOUT, DTENSOR_F64, "expected 0 to 1", NAN),
    WHOLE(INTEGERS, DTENSOR_I32, 5, 5, "integers: from 5 to 5 is empty"),
    WHOLE(INTEGERS, DTENSOR_I64, 1, -1, "integers: from 1 to -1 is empty"),
    WHOLE(INTEGERS, DTENSOR_I64, INT64_MAX, INT64_MIN, "is empty"),
    WHOLE(INTEGERS, DTENSOR_I32, 0, INT64_C(1) << 40, "i32 holds -2147483648 "
          "to 2147483647"),
    WHOLE(INTEGERS, DTENSOR_U8, -1, 5, "u8 holds 0 to 255"),
    WHOLE(INTEGERS, DTENSOR_I8, 0, 129, "i8 holds -128 to 127"),
    WHOLE(INTEGERS, DTENSOR_U64, -1, 1, "u64 holds 0 to"),
    WHOLE(INTEGERS, DTENSOR_BOOL, 0, 3, "bool holds 0 to 1"),
    WHOLE(INTEGERS, DTENSOR_F32, 0, (1 << 24) + 2, "f32 holds"),
    WHOLE(INTEGERS, DTENSOR_F16, 0, 2050, "f16 holds -2048 to 2048"),
    WHOLE(RANDINT, DTENSOR_I64, 7, 7, "is empty"),
    WHOLE(RANDINT, DTENSOR_I16, 0, 40000, "i16 holds"),
    WHOLE(RANDPERM, DTENSOR_BOOL, 0, 0, "bool holds 0 to 1"),
    WHOLE(RANDPERM, DTENSOR_F8E5M2, 0, 0, "f8e5m2 holds -8 to 8"),
};

static void refuse_numbers(struct job *job, struct dtensor_generator *gen)
{
    for (size_t i = 0; i < DTN_COUNT(wrong); i++) {
        struct dtensor *t = make_tensor(job, "S(0)", wrong[i].dtype);

        refused(job, wrong[i].call, &wrong[i].x, t, gen, wrong[i].words);
        dtensor_destroy(t);
    }
}

/* Each call of each type: it has it, or says that it has not. */
static void refuse_types(struct job *job, struct dtensor_generator *gen)
{
    for (int call = 0; call < NCALLS; call++)
        for (int d = 0; d < DTENSOR_NDTYPES; d++) {
            const enum dtensor_dtype dtype = (enum dtensor_dtype)d;
            struct dtensor *t = make_tensor(job, "S(0)", dtype), *out = NULL;

            if (!has_type((enum call)call, dtype))
                refused(job, (enum call)call, &fine[call], t, gen,
                        dtensor_dtype_name(dtype));
            else if (call != RANDPERM || dtype != DTENSOR_F8E5M2)
                good(call_it((enum call)call, &fine[call], t, gen, &out,
                             &job->err));
            dtensor_destroy(out);
            dtensor_destroy(t);
        }
}

static void refuse_partial(struct job *job, struct dtensor_generator *gen)
{
    for (int call = 0; call < NCALLS; call++) {
        struct dtensor *t = make_tensor(job, call % 2 ? "P" : "P(max)",
                                        dtype_of((enum call)call));

        refused(job, (enum call)call, &fine[call], t, gen, "no placement may "
                "be Partial (make it of R and redistribute)");
        dtensor_destroy(t);
    }
}

static void set_offset(struct job *job, struct dtensor_generator *gen,
                       int64_t offset)
{
    unsigned char state[DTENSOR_STATE_BYTES] = { 1 };

    for (int i = 0; i < 8; i++)
        state[8 + i] = (unsigned char)(offset >> 8 * i);
    good(dtensor_generator_set_state(gen, state, sizeof state, &job->err));
}

/* Up to the last offset there is room, then for no call. */
static void refuse_overflows(struct job *job, struct dtensor_generator *gen)
{
    const int64_t last = INT64_MAX - 3;        /* a multiple of 4             */

    for (int call = 0; call < NCALLS; call++)
        for (int way = 0; way < 8; way++) {
            const struct dtensor_random_rule rule = rule_of(way / 2, way % 2);
            struct dtensor *t = make_tensor(job, "S(0)",
                                            dtype_of((enum call)call));
            struct dtensor *out = NULL;
            int64_t takes;

            good(dtensor_generator_set_rule(gen, &rule, &job->err));
            set_offset(job, gen, 0);
            good(call_it((enum call)call, &fine[call], t, gen, &out,
                         &job->err));
            takes = dtensor_generator_offset(gen);
            dtensor_destroy(out);
            out = NULL;
            set_offset(job, gen, last - takes);
            good(call_it((enum call)call, &fine[call], t, gen, &out,
                         &job->err));
            need(dtensor_generator_offset(gen) == last, "%s, at the end",
                 names[call]);
            dtensor_destroy(out);
            refused(job, (enum call)call, &fine[call], t, gen, "has no room "
                    "for");
            set_offset(job, gen, last - takes + 4);
            refused(job, (enum call)call, &fine[call], t, gen, "below 2^63");
            dtensor_destroy(t);
        }
}

/* Size, alignment and sign: seed and offset stay. */
static void refuse_states(struct job *job, struct dtensor_generator *gen)
{
    static const int64_t offsets[] = { 1, 2, 3, 5, -1, -4, INT64_MIN,
                                       INT64_MAX };
    static const size_t sizes[] = { 0, 8, 15, 17, 32 };
    unsigned char state[32] = { 9 }, before[16], after[16];

    dtensor_generator_get_state(gen, before);
    for (size_t i = 0; i < DTN_COUNT(sizes); i++) {
        char words[60];

        snprintf(words, sizeof words, "a state of %zu bytes; expected 16",
                 sizes[i]);
        need(dtensor_generator_set_state(gen, state, sizes[i], &job->err) ==
             DTENSOR_EINVAL && strstr(job->err.text, words), "%s", words);
    }
    for (size_t i = 0; i < DTN_COUNT(offsets); i++) {
        for (int k = 0; k < 8; k++)
            state[8 + k] = (unsigned char)((uint64_t)offsets[i] >> 8 * k);
        need(dtensor_generator_set_state(gen, state, 16, &job->err) ==
             DTENSOR_EINVAL && strstr(job->err.text, "; expected a multiple of "
                                      "4 that is not negative"),
             "offset %" PRId64, offsets[i]);
        need(dtensor_generator_set_state(gen, state, 16, NULL) ==
             DTENSOR_EINVAL, "offset %" PRId64, offsets[i]);
    }
    dtensor_generator_get_state(gen, after);
    need(memcmp(before, after, sizeof before) == 0, "the state was touched");
}

static void refuse_rules(struct job *job, struct dtensor_generator *gen)
{
    struct dtensor_random_rule usual, bad, got;
    static const int numbers[][2] = { { 0, 256 }, { -1, 256 }, { 1, 255 },
                                      { (1 << 20) + 1, 256 },
                                      { 1, (1 << 20) + 1 } };

#define refused_rule(words)                                                   \
    need(dtensor_generator_set_rule(gen, &bad, &job->err) ==                  \
         DTENSOR_EINVAL && strstr(job->err.text, words), "%s", words)
    dtensor_generator_get_rule(gen, &usual);
    for (size_t i = 0; i < DTN_COUNT(numbers); i++) {
        bad = usual;
        bad.sms = numbers[i][0];
        bad.threads_per_sm = numbers[i][1];
        refused_rule("; expected 1 or more, of 256 or more");
    }
    bad = usual;
    bad.tracker = (enum dtensor_tracker)9;
    refused_rule("no tracker has number 9");
    bad = usual;
    bad.fill = (enum dtensor_fill)9;
    refused_rule("no fill has number 9");
    bad = usual;
    memset(bad.parallel_dims, 'x', sizeof bad.parallel_dims);
    refused_rule("parallel_dims has no end");
    dtensor_generator_get_rule(gen, &got);
    need(memcmp(&got, &usual, sizeof got) == 0, "the rule was touched");
}

static void refusals(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *other;
    struct dtensor_generator *gen = NULL;
    struct dtensor *t = NULL, *none = NULL;
    struct dtensor_spec spec;

    job_open(job, rank, n, NULL);
    good(dtensor_generator_create(UINT64_MAX, &gen, &job->err));
    refuse_numbers(job, gen);
    refuse_types(job, gen);
    refuse_partial(job, gen);
    refuse_states(job, gen);
    refuse_rules(job, gen);
    refuse_overflows(job, gen);
    t = make_tensor(job, "S(0)", DTENSOR_I64);
    spec = *dtensor_spec_of(t);
    spec.ndim = 2;
    spec.shape[1] = 2;
    need(dtensor_randperm(&spec, gen, &none, &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "randperm: 2 dimensions; expected 1") && !none,
         "randperm: %s", job->err.text);
    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 1 }, NULL,
                             (int[]){ 1 - rank }, &other, &job->err));
    need(dtensor_manual_seed(other, 5, gen, &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "is not in the mesh") &&
         dtensor_generator_seed(gen) == 1, "seed of another mesh: %s",
         job->err.text);
    dtensor_destroy(t);
    dtensor_generator_destroy(gen);
    dtensor_generator_destroy(NULL);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(2, 60, refusals, NULL, NULL) == 0, "%zu wrong numbers, types "
       "and Partial placements of all calls, states, rules, the last offset: "
       "EINVAL with words, tensor and generator untouched", DTN_COUNT(wrong));
    return done();
}
