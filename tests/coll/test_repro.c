/* test_repro.c - repro gives the same bits on every layout
 *
 * Four ranks reduce numbers of which no two orders of addition agree, on one
 * host or several, over shared memory or TCP, by every [tuning], in one call
 * or in three.  Under repro every combination must give the bits of the naive
 * fold from the left.  Without repro some must not, or the numbers would prove
 * nothing.
 *
 * Without this test, repro could depend on the number of hosts, and runs could
 * not be compared.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/hosts.h"
#include "tests/support/naive.h"
#include "tests/support/rand.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NRANKS = 4, COUNT = 3001 };

/* Ways to reduce: the built-in ones, then a factor and a function. */
enum { WAY_PREMUL = DTENSOR_NREDOPS, WAY_USER, NWAYS };

struct combination {
    const char *name;
    struct hosts hosts;
    const char *wire;             /* inside hosts                             */
    const char *algorithm;        /* [tuning], NULL: none                     */
    int parts;                    /* calls                                    */
};

static const struct combination combinations[] = {
    { "one host, shm", { 1, { 4 } }, "shm", NULL, 1 },
    { "in 3 calls", { 1, { 4 } }, "shm", NULL, 3 },
    { "by ring", { 1, { 4 } }, "shm", "ring", 1 },
    { "by tree", { 1, { 4 } }, "shm", "tree", 1 },
    { "by doubling", { 1, { 4 } }, "shm", "doubling", 1 },
    { "by halving, 3 calls", { 1, { 4 } }, "shm", "halving", 3 },
    { "one host, tcp", { 1, { 4 } }, "tcp", NULL, 1 },
    { "tcp, by ring", { 1, { 4 } }, "tcp", "ring", 1 },
    { "tcp, by two trees", { 1, { 4 } }, "tcp", "twotree", 3 },
    { "2 hosts of 2", { 2, { 2, 2 } }, "shm", NULL, 1 },
    { "2 hosts of 2, by hierarchy", { 2, { 2, 2 } }, "shm", "hierarchical",
      1 },
    { "hosts of 1 and 3", { 2, { 1, 3 } }, "shm", "hierarchical", 1 },
    { "hosts of 2, 1 and 1", { 3, { 2, 1, 1 } }, "shm", "ring", 3 },
    { "4 hosts of 1", { 4, { 1, 1, 1, 1 } }, "shm", "tree", 1 },
};

/* What a rank found, for the parent. */
struct found {
    uint64_t hash[DTENSOR_NDTYPES][NWAYS];
    double cost_ns;
};
static struct found *found;       /* [NRANKS], shared                         */
static const struct combination *now;
static bool repro;

/* ------------------------------------------------------------------ numbers */

static void fill(enum dtensor_dtype dtype, int rank, void *array)
{
    uint64_t seed = 977u * (unsigned)rank + 31u * (unsigned)dtype + 1;

    rand_bytes(&seed, array, COUNT * dtensor_dtype_size(dtype));
    for (size_t i = 0; i < COUNT; i++) {
        if (dtype == DTENSOR_BOOL)
            ((uint8_t *)array)[i] &= 1;
        else if (dtn_dtype_kind(dtype) == DTN_DTYPE_FLOAT)
            dtn_store(dtype, array, i, (rand_below(&seed, 20001) - 10000)
                      / (double)(1 << rand_below(&seed, 20)));
    }
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX)
        for (size_t i = 0; i < 2 * COUNT; i++)
            dtn_store(dtype == DTENSOR_C64 ? DTENSOR_F32 : DTENSOR_F64, array,
                      i, (rand_below(&seed, 20001) - 10000) / 4096.0);
}

/* Associative, the caller says: the sum of absolute values. */
static void add_sizes(void *dst, const void *left, const void *right,
                      size_t count, enum dtensor_dtype dtype, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        double x = dtn_load(dtype, left, i), y = dtn_load(dtype, right, i);

        dtn_store(dtype, dst, i, (x < 0 ? -x : x) + (y < 0 ? -y : y));
    }
}

static bool way_fits(enum dtensor_dtype dtype, int way)
{
    if (way == WAY_PREMUL)
        return dtn_dtype_is_float(dtype);
    if (way == WAY_USER)
        return dtn_dtype_kind(dtype) != DTN_DTYPE_COMPLEX;
    return dtn_redop_ok((enum dtensor_redop)way, dtype);
}

static uint64_t hash_of(const void *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

/* What every rank must have: the naive fold in the order of the ranks. */
static uint64_t expected(enum dtensor_dtype dtype, int way)
{
    static _Alignas(16) char in[NRANKS][COUNT * 16], out[COUNT * 16];
    struct dtn_reduction how = dtn_reduction(dtype, way < DTENSOR_NREDOPS
        ? (enum dtensor_redop)way : DTENSOR_SUM, NRANKS);
    const void *terms[NRANKS];

    if (way == WAY_PREMUL)
        how.factor = 0.3;
    if (way == WAY_USER)
        how.fn = add_sizes;
    for (int r = 0; r < NRANKS; r++) {
        fill(dtype, r, in[r]);
        terms[r] = in[r];
    }
    naive_fold(&how, 0, out, terms, NRANKS, COUNT);
    return hash_of(out, COUNT * dtensor_dtype_size(dtype));
}

/* -------------------------------------------------------------------- ranks */

static void cluster_write(const char *path)
{
    static const char *const tuned[] = { "allreduce", "reduce",
                                         "reduce_scatter" };
    char more[256];
    int at = snprintf(more, sizeof more, "intra_node = %s\n%s",
                      now->wire, now->algorithm ? "[tuning]\n" : "");

    for (int i = 0; now->algorithm && i < 3; i++)
        if (i < 1 || strcmp(now->algorithm, "doubling") != 0)
            at += snprintf(more + at, sizeof more - (size_t)at,
                           "%s = 0-inf:%s\n", tuned[i], now->algorithm);
    hosts_write(&now->hosts, path, repro ? "repro = yes\n" : "", more);
}

/* One reduction, in as many calls as there are parts; by reduce-scatter and
 * reduce the same elements must have the same bits.
 */
static void reduce_all(const struct dtensor_mesh *mesh, int rank,
                       enum dtensor_dtype dtype, enum dtensor_redop op,
                       struct found *mine, int way)
{
    static _Alignas(16) char in[COUNT * 16], out[COUNT * 16], part[COUNT * 16];
    const size_t size = dtensor_dtype_size(dtype), each = COUNT / NRANKS;
    struct dtensor_error err = { .text = "" };
    size_t at = 0, n;
    int rc;

    fill(dtype, rank, in);
    for (int p = now->parts; p > 0; p--, at += n) {
        n = (COUNT - at) / (size_t)p;
        rc = dtensor_allreduce(mesh, in + at * size, out + at * size, n, dtype,
                               op, &err);
        need(rc == 0, "allreduce: %s", err.text);
    }
    mine->hash[dtype][way] = hash_of(out, COUNT * size);
    rc = dtensor_reduce_scatter(mesh, in, part, each, dtype, op, &err);
    need(rc == 0, "reduce_scatter: %s", err.text);
    need(!repro || memcmp(part, out + (size_t)rank * each * size, each * size)
         == 0, "reduce_scatter of %s %s: other bits than allreduce",
         dtensor_dtype_name(dtype), dtensor_redop_name(op));
    rc = dtensor_reduce(mesh, 2, in, part, COUNT, dtype, op, &err);
    need(rc == 0, "reduce: %s", err.text);
    need(!repro || rank != 2 || memcmp(part, out, COUNT * size) == 0,
         "reduce of %s %s: other bits than allreduce",
         dtensor_dtype_name(dtype), dtensor_redop_name(op));
}

static void reduce_rank(int rank, int n, void *arg)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx;
    enum dtensor_redop made[2];
    struct dtensor_error err;

    (void)n, (void)arg;
    hosts_be(&now->hosts, rank);
    need(dtensor_init(NULL, &ctx, &err) == 0, "init: %s", err.text);
    need(dtensor_mesh_find(ctx, "world", &mesh, &err) == 0, "%s", err.text);
    need(dtensor_redop_premul(ctx, 0.3, &made[0], &err) == 0
         && dtensor_redop_create(ctx, add_sizes, NULL, DTENSOR_ASSOCIATIVE
                                 | DTENSOR_COMMUTATIVE, &made[1], &err) == 0,
         "%s", err.text);
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int way = 0; way < NWAYS; way++)
            if (way_fits((enum dtensor_dtype)t, way))
                reduce_all(mesh, rank, (enum dtensor_dtype)t,
                           way < WAY_PREMUL ? (enum dtensor_redop)way
                                            : made[way - WAY_PREMUL],
                           &found[rank], way);
    dtensor_fini(ctx);
}

/* How many types and ways differ from the fold from the left; -1: it failed. */
static int combination_differs(const uint64_t want[][NWAYS])
{
    char path[64];
    int differs = 0;

    snprintf(path, sizeof path, "repro-%d.ini", (int)getpid());
    cluster_write(path);
    setenv("DTN_CLUSTER", path, 1);
    memset(found, 0, NRANKS * sizeof *found);
    if (ranks_run(NRANKS, 60, reduce_rank, NULL, NULL) != 0)
        differs = -1;
    for (int r = 0; differs >= 0 && r < NRANKS; r++)
        for (int t = 0; t < DTENSOR_NDTYPES; t++)
            for (int way = 0; way < NWAYS; way++)
                differs += way_fits((enum dtensor_dtype)t, way)
                        && found[r].hash[t][way] != want[t][way];
    unlink(path);
    return differs;
}

int main(void)
{
    static uint64_t want[DTENSOR_NDTYPES][NWAYS];
    int others = 0, differs;

    found = mmap(NULL, NRANKS * sizeof *found, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int way = 0; way < NWAYS; way++)
            if (way_fits((enum dtensor_dtype)t, way))
                want[t][way] = expected((enum dtensor_dtype)t, way);
    repro = true;
    for (size_t i = 0; i < DTN_COUNT(combinations); i++) {
        now = &combinations[i];
        differs = combination_differs(want);
        if (!ok(differs == 0, "%s: every type and reduction has the bits of "
                "the fold in the order of the ranks", now->name))
            note("%d differ", differs);
    }
    repro = false;
    for (size_t i = 2; i < DTN_COUNT(combinations); i += 9) {
        now = &combinations[i];
        others += combination_differs(want) > 0;
    }
    ok(others > 0, "without repro not all do: these numbers tell");
    return done();
}
