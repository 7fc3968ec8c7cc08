/* test_redops.c - custom reductions, and sums that are rounded once
 *
 * Over every algorithm, by [tuning], over shared memory and TCP: sums,
 * averages and products of narrow floats are those of f32 rounded once;
 * factors and functions do what the plain loop does.  Invalid ones are
 * refused.  `test_redops rc` runs over one wire only, with 3 ranks.
 *
 * Without this test, an algorithm could round a bf16 sum at every step, or
 * call a user's function with its arguments in the wrong order.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/lru.h"
#include "base/narrow.h"
#include "coll/redops.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/world.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { COUNT = 4999, RANKS_MAX = 5 };

/* --------------------------------------------------------- rounded once --- */

/* Quarters, few enough that sums of them are exact in f32, whatever the order;
 * large beside small, so that rounding on the way would show.
 */
static double input(enum dtensor_dtype dtype, int rank, size_t i)
{
    uint64_t seed = (uint64_t)rank * 7919 + i * 104729 + 1;
    uint16_t stored;
    double x = rand_below(&seed, 64) / 4.0;

    if ((i + (size_t)rank) % 3 == 0)
        x *= dtensor_dtype_size(dtype) == 1 ? 4 : 64;
    dtn_store(dtype, &stored, 0, x);
    return dtn_load(dtype, &stored, 0);
}

/* What comes out when everything is rounded once, or after every term. */
static double once(enum dtensor_dtype dtype, enum dtensor_redop op, int n,
                   size_t i, bool each)
{
    float sum = (float)input(dtype, 0, i);
    uint16_t stored;

    for (int r = 1; r < n; r++) {
        sum += (float)input(dtype, r, i);
        if (each) {
            dtn_store(dtype, &stored, 0, (double)sum);
            sum = (float)dtn_load(dtype, &stored, 0);
        }
    }
    if (op == DTENSOR_AVG)
        sum /= (float)n;
    dtn_store(dtype, &stored, 0, (double)sum);
    return dtn_load(dtype, &stored, 0);
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static void narrow(struct world *world, enum dtensor_dtype dtype,
                   enum dtensor_redop op, size_t count)
{
    static uint16_t in[RANKS_MAX * COUNT], out[RANKS_MAX * COUNT];
    const size_t n = (size_t)world->n, mine = (size_t)world->rank * (count / n);
    int rc, lost = 0;

    for (size_t i = 0; i < count; i++)
        dtn_store(dtype, in, i, input(dtype, world->rank, i));
    rc = dtensor_allreduce(world->mesh, in, out, count, dtype, op, &world->err);
    need(rc == 0, "allreduce: %s", world->err.text);
    for (size_t i = 0; i < count; i++) {
        const double want = once(dtype, op, world->n, i, false);

        need(same(dtn_load(dtype, out, i), want), "%s: %s %s: element %zu is "
             "%g, not %g", dtensor_last_plan(world->ctx),
             dtensor_dtype_name(dtype), dtensor_redop_name(op), i,
             dtn_load(dtype, out, i), want);
        lost += !same(once(dtype, op, world->n, i, true), want);
    }
    need(count < COUNT || world->n == 2 || lost > 0, "no element of %s tells",
         dtensor_dtype_name(dtype));
    rc = dtensor_reduce(world->mesh, 1, in, out, count, dtype, op, &world->err);
    need(rc == 0, "reduce: %s", world->err.text);
    for (size_t i = 0; world->rank == 1 && i < count; i++)
        need(same(dtn_load(dtype, out, i), once(dtype, op, world->n, i, false)),
             "%s: element %zu", dtensor_last_plan(world->ctx), i);
    rc = dtensor_reduce_scatter(world->mesh, in, out, count / n, dtype, op,
                                &world->err);
    need(rc == 0, "reduce_scatter: %s", world->err.text);
    for (size_t i = 0; i < count / n; i++)
        need(same(dtn_load(dtype, out, i),
                  once(dtype, op, world->n, mine + i, false)),
             "%s: element %zu", dtensor_last_plan(world->ctx), i);
}

/* sum + 10 x, which is neither associative nor commutative. */
static dtensor_reduce_f tens;
static void tens(void *dst, const void *left, const void *right, size_t count,
                 enum dtensor_dtype dtype, void *arg)
{
    const double base = *(const double *)arg;

    for (size_t i = 0; i < count; i++)
        dtn_store(dtype, dst, i, base * dtn_load(dtype, left, i)
                                 + dtn_load(dtype, right, i));
}

/* Digits in the order of the ranks: 1 2 3 is 123. */
static void digits(struct world *world)
{
    static int32_t in[COUNT], out[COUNT];
    static double ten = 10;
    enum dtensor_redop op;
    int32_t want = 0;

    for (int r = 0; r < world->n; r++)
        want = 10 * want + r + 1;
    for (int i = 0; i < COUNT; i++)
        in[i] = world->rank + 1;
    need(dtensor_redop_create(world->ctx, tens, &ten, 0, &op, &world->err) == 0,
         "%s", world->err.text);
    need(dtensor_allreduce(world->mesh, in, out, COUNT, DTENSOR_I32, op,
                           &world->err) == 0, "digits: %s", world->err.text);
    for (int i = 0; i < COUNT; i++)
        need(out[i] == want, "%s: digits are %d, not %d",
             dtensor_last_plan(world->ctx), out[i], want);
    dtensor_redop_destroy(world->ctx, op);
}

static void factors(struct world *world)
{
    static float in[COUNT], out[COUNT];
    static uint16_t half_in[COUNT], half_out[COUNT];
    enum dtensor_redop op;
    float sum;

    need(dtensor_redop_premul(world->ctx, 0.5, &op, &world->err) == 0, "%s",
         world->err.text);
    for (int i = 0; i < COUNT; i++) {
        in[i] = (float)(world->rank + i % 50);
        dtn_store(DTENSOR_BF16, half_in, (size_t)i, (double)in[i]);
    }
    need(dtensor_allreduce(world->mesh, in, out, COUNT, DTENSOR_F32, op,
                           &world->err) == 0
         && dtensor_allreduce(world->mesh, half_in, half_out, COUNT,
                              DTENSOR_BF16, op, &world->err) == 0,
         "premul: %s", world->err.text);
    for (int i = 0; i < COUNT; i++) {
        sum = 0;
        for (int r = 0; r < world->n; r++)
            sum += 0.5f * (float)(r + i % 50);
        need(out[i] == sum, "%s: element %d is %g, not %g",
             dtensor_last_plan(world->ctx), i, (double)out[i], (double)sum);
        need(half_out[i] == dtn_bf16_narrow(sum), "bf16: element %d", i);
    }
    dtensor_redop_destroy(world->ctx, op);
}

static void everything(int rank, int n, void *arg)
{
    static const enum dtensor_dtype types[] = {
        DTENSOR_F16, DTENSOR_BF16, DTENSOR_F8E4M3, DTENSOR_F8E5M2
    };
    struct world world;

    (void)rank, (void)n, (void)arg;
    world_open(&world);
    for (size_t t = 0; t < DTN_COUNT(types); t++) {
        narrow(&world, types[t], DTENSOR_SUM, 37);
        narrow(&world, types[t], DTENSOR_SUM, COUNT);
        narrow(&world, types[t], DTENSOR_AVG, COUNT);
    }
    digits(&world);
    factors(&world);
    dtensor_fini(world.ctx);
}

static void run_everything(const char *wire, const char *algorithm, int n)
{
    static const char *const tuned[] = { "allreduce", "reduce",
                                         "reduce_scatter" };
    char more[300] = "connect_timeout = 20s\n";
    size_t at = strlen(more);

    for (int i = 0; algorithm && i < 3; i++)
        at += (size_t)snprintf(more + at, sizeof more - at,
                               "%s%s = 0-inf:%s\n", i ? "" : "[tuning]\n",
                               tuned[i], algorithm);
    setenv("DTN_CLUSTER", ranks_file(wire, n, more), 1);
    ok(ranks_run(n, 60, everything, NULL, NULL) == 0, "%s, %d ranks, %s: "
       "narrow floats are rounded once, factors and functions are right", wire,
       n, algorithm ? algorithm : "as chosen");
    unlink(getenv("DTN_CLUSTER"));
}

/* -------------------------------------------------------------- refused --- */

static void refused(struct world *world, enum dtensor_redop op,
                    enum dtensor_dtype dtype, const char *words)
{
    char in[64] = { 0 }, out[64] = { 0 };
    int rc = dtensor_allreduce(world->mesh, in, out, 4, dtype, op, &world->err);

    need(rc == DTENSOR_EINVAL && strstr(world->err.text, words), "%s: %s",
         dtensor_errname(rc), rc ? world->err.text : "done");
}

/* The numbers of made reductions run out; the last one works. */
static void used_up(struct world *world, enum dtensor_redop first)
{
    enum dtensor_redop late = first;
    float x = 1;

    dtn_redops_skip(world->ctx, DTENSOR_REDOP_LAST - DTN_MADE_FIRST - 8);
    while (dtensor_redop_premul(world->ctx, 3, &late, &world->err) == 0)
        need(late > first && late <= DTENSOR_REDOP_LAST, "number 0x%x",
             (unsigned)late);
    need(strstr(world->err.text, "numbers were used"), "%s", world->err.text);
    need(dtensor_allreduce(world->mesh, &x, &x, 1, DTENSOR_F32, late,
                           &world->err) == 0, "the last one: %s",
         world->err.text);
}

static void bad_inputs(int rank, int n, void *arg)
{
    const int64_t shape[] = { 8 };
    enum dtensor_redop premul, user, late = (enum dtensor_redop)77;
    static double ten = 10;
    struct dtensor_spec spec;
    struct world world;
    float x = 1;

    (void)rank, (void)n, (void)arg;
    world_open(&world);
    refused(&world, DTENSOR_BXOR, DTENSOR_F32, "no reduction bxor for f32");
    refused(&world, DTENSOR_AVG, DTENSOR_BOOL, "no reduction avg for bool");
    refused(&world, DTENSOR_MAX, DTENSOR_C64, "no reduction max for c64");
    refused(&world, DTENSOR_NREDOPS, DTENSOR_F32, "no reduction");
    refused(&world, (enum dtensor_redop)-1, DTENSOR_F32, "no reduction");
    refused(&world, (enum dtensor_redop)DTN_MADE_FIRST, DTENSOR_F32,
            "there is no reduction 0x10000");
    need(dtensor_redop_create(world.ctx, NULL, NULL, 0, &late, &world.err)
         == DTENSOR_EINVAL && (int)late == 77, "a function of NULL was taken");
    need(dtensor_redop_create(world.ctx, tens, &ten, 8, &late, &world.err)
         == DTENSOR_EINVAL && strstr(world.err.text, "0x8"), "flags: %s",
         world.err.text);
    need(dtensor_redop_premul(world.ctx, 2, &premul, &world.err) == 0
         && dtensor_redop_create(world.ctx, tens, &ten, DTENSOR_COMMUTATIVE,
                                 &user, &world.err) == 0, "%s",
         world.err.text);
    need(strcmp(dtensor_redop_name(premul), "premul") == 0
         && strcmp(dtensor_redop_name(user), "user") == 0, "names");
    refused(&world, premul, DTENSOR_I32, "no premultiplied sum for i32");
    need(dtensor_spec_init(&spec, world.ctx, "world", "R", DTENSOR_F32, 1,
                           shape, &world.err) == 0, "%s", world.err.text);
    spec.placement[0] = (struct dtensor_placement){ DTENSOR_PARTIAL,
                                                    .op = premul };
    need(dtensor_spec_check(&spec, &world.err) == DTENSOR_EINVAL,
         "a Partial placement took a premultiplied sum");

    dtensor_set_repro(world.ctx, 1);
    refused(&world, user, DTENSOR_F32, "not declared associative");
    need(dtensor_allreduce(world.mesh, &x, &x, 1, DTENSOR_F32, premul,
                           &world.err) == 0 && x == 2 * (float)world.n,
         "premul under repro: %s", world.err.text);
    dtensor_set_repro(world.ctx, 0);
    dtensor_redop_destroy(world.ctx, user);
    dtensor_redop_destroy(world.ctx, user);
    dtensor_redop_destroy(world.ctx, DTENSOR_SUM);
    refused(&world, user, DTENSOR_F32, "destroyed");
    need(dtensor_allreduce(world.mesh, &x, &x, 1, DTENSOR_F32, DTENSOR_SUM,
                           &world.err) == 0, "sum: %s", world.err.text);
    used_up(&world, premul);
    dtensor_fini(world.ctx);
}

/* Ranks that mean other things by it are told so before any data moves. */
static void mismatched(int rank, int n, void *arg)
{
    const char *how = arg;
    float in[4] = { 1, 2, 3, 4 }, out[4] = { -1 };
    enum dtensor_redop op, other;
    static double ten = 10;
    struct world world;
    bool odd = rank == n - 1;
    int rc;

    world_open(&world);
    need(dtensor_redop_premul(world.ctx, odd && strcmp(how, "factor") == 0
                              ? 0.25 : 0.5, &op, &world.err) == 0, "premul");
    if (strcmp(how, "function") == 0)
        for (int i = 0; i < 2; i++) {
            need(dtensor_redop_create(world.ctx, tens, &ten, 0, &other,
                                      &world.err) == 0, "%s", world.err.text);
            op = odd && i == 1 ? op : other;
        }
    if (strcmp(how, "repro") == 0)
        dtensor_set_repro(world.ctx, odd);
    rc = dtensor_allreduce(world.mesh, in, out, 4, DTENSOR_F32, op, &world.err);
    need(rc == DTENSOR_EMISMATCH || rc == DTENSOR_EABORT, "another %s: %s %s",
         how, dtensor_errname(rc), rc ? world.err.text : "");
    need(out[0] == -1, "data was written");
    dtensor_fini(world.ctx);
}

/* Rank 0 forgets how it did a call, the others do not; then all ask for repro.
 */
static void forgotten(int rank, int n, void *arg)
{
    float x[2 * DTN_LRU_LIMIT] = { 1 };
    const struct dtensor_mesh *self;
    static double ten = 10;
    enum dtensor_redop op;
    struct world world;

    (void)n, (void)arg;
    world_open(&world);
    need(dtensor_mesh_create(world.ctx, 1, (int[]){ 1 }, NULL, &rank, &self,
                             &world.err) == 0
         && dtensor_redop_create(world.ctx, tens, &ten, DTENSOR_ASSOCIATIVE,
                                 &op, &world.err) == 0
         && dtensor_allreduce(world.mesh, x, x, 1, DTENSOR_F32, op, &world.err)
         == 0, "%s", world.err.text);
    for (size_t count = 1; rank == 0 && count <= DTN_COUNT(x); count++)
        need(dtensor_allreduce(self, x, x, count, DTENSOR_F32, DTENSOR_SUM,
                               &world.err) == 0, "%s", world.err.text);
    dtensor_set_repro(world.ctx, 1);
    need(dtensor_allreduce(world.mesh, x, x, 1, DTENSOR_F32, op, &world.err)
         == 0, "%s", world.err.text);
    dtensor_fini(world.ctx);
}

int main(int argc, char **argv)
{
    static const char *const algorithms[] = {
        NULL, "direct", "ring", "tree", "twotree", "doubling", "halving"
    };
    static const char *const how[] = { "factor", "function", "repro" };

    for (size_t a = 0; a < DTN_COUNT(algorithms); a++) {
        run_everything(argc > 1 ? argv[1] : "tcp", algorithms[a], 3);
        if (argc <= 1)
            run_everything("shm", algorithms[a], a % 2 ? 4 : 5);
    }
    if (argc <= 1)
        run_everything("shm", NULL, 2);
    setenv("DTN_CLUSTER", ranks_file("shm", 2, NULL), 1);
    ok(ranks_run(2, 30, bad_inputs, NULL, NULL) == 0, "what does not fit, is "
       "gone, or beyond the last number is refused in words");
    for (size_t i = 0; i < DTN_COUNT(how); i++)
        ok(ranks_run(2, 30, mismatched, (void *)(uintptr_t)how[i], NULL) == 0,
           "another %s on one rank is EMISMATCH before data moves", how[i]);
    ok(ranks_run(2, 30, forgotten, NULL, NULL) == 0, "repro that all ranks ask "
       "for is no mismatch, whoever has the call in its cache");
    unlink(getenv("DTN_CLUSTER"));
    return done();
}
