/* test_random_print.c - dtensor-bench rng --print: the values, all their
 * digits
 *
 * The printed values, read back, are bit for bit what the library makes of
 * that seed, offset, distribution, type, tracker and fill for that rank.  They
 * are computed here on meshes made by hand, without the tool and its ranks.
 *
 * Without this test, the tool that users compare with PyTorch could print
 * other values than the library uses.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/fill.h"
#include "random/generator.h"
#include "random/rows.h"
#include "random/tracker.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64 };

static char tools[500];           /* the folder of dtensor-bench              */

static const char *const dists[] = {
    "uniform", "uniform:-1.5,0.3", "normal:2,0.1", "log_normal",
    "exponential:1.5", "bernoulli:0.25", "trunc_normal:0,1,-1,3",
    "integers:0,9", "integers:-9223372036854775808,9223372036854775807", "bits"
};
static const char *const trackers[] = { "global", "offset", "megatron",
                                        "local" };
static const char *const fills[] = { "sequential", "cuda" };

/* One call of the tool, and what it is to print. */
struct printing {
    int dist;
    enum dtensor_dtype dtype;
    struct dtensor_generator gen;
    struct dtensor_mesh mesh;
    struct dtensor_spec spec;
    const char *more;                      /* options for mesh and placements */
    int rank;
};

static bool dist_make(const struct printing *p, struct dtn_dist *dist)
{
    const double cut[] = { 0, 1, -1, 3 };
    const enum dtensor_dtype t = p->dtype;
    int rc;

    switch (p->dist) {
    case 0:  rc = dtn_dist_uniform(dist, t, 0, 1, NULL); break;
    case 1:  rc = dtn_dist_uniform(dist, t, -1.5, 0.3, NULL); break;
    case 2:  rc = dtn_dist_normal(dist, DTN_NORMAL, t, 2, 0.1, NULL); break;
    case 3:  rc = dtn_dist_normal(dist, DTN_LOG_NORMAL, t, 0, 1, NULL); break;
    case 4:  rc = dtn_dist_exponential(dist, t, 1.5, NULL); break;
    case 5:  rc = dtn_dist_bernoulli(dist, t, 0.25, NULL); break;
    case 6:  rc = dtn_dist_trunc_normal(dist, t, cut, NULL); break;
    case 7:  rc = dtn_dist_integers(dist, t, 0, 9, NULL); break;
    case 8:  rc = dtn_dist_integers(dist, t, INT64_MIN, INT64_MAX, NULL);
             break;
    default: rc = dtn_dist_bits(dist, t, NULL);
    }
    if (rc == 0)
        dtn_fill_adapt(&p->gen.rule, dist);
    return rc == 0;
}

/* The rank's part, and the generator's offset afterwards. */
static int64_t expected(const struct printing *p, const struct dtn_dist *dist,
                        unsigned char *part, int64_t *afterp)
{
    const size_t bytes = dtensor_dtype_size(p->dtype);
    struct dtn_random_stream stream;
    struct dtn_stream_part draw;
    struct dtn_rows rows;
    struct dtn_row row;

    dtn_stream_part_of(&p->gen, dist, &p->spec, p->rank, &draw, NULL);
    stream =
        dtn_random_stream_of(&p->gen.rule, draw.seed, draw.offset, draw.numel);
    *afterp = draw.after;
    if (!draw.global) {
        dtn_fill(&stream, dist, 0, draw.numel, part);
        return draw.numel;
    }
    dtn_rows_init(&rows, &p->spec, p->rank);
    while (dtn_rows_next(&rows, &row))
        dtn_fill(&stream, dist, row.global, row.count,
                 part + (size_t)row.local * bytes);
    return dtn_local_numel(&p->spec, p->rank);
}

/* One printed value, as an element; false when something follows it. */
static bool element_read(enum dtensor_dtype dtype, const char *text,
                         unsigned char element[16])
{
    char *rest;

    memset(element, 0, 16);
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_FLOAT)
        dtn_store(dtype, element, 0, dtype == DTENSOR_F32
                  ? (double)strtof(text, &rest) : strtod(text, &rest));
    else if (dtype == DTENSOR_U64)
        *(uint64_t *)(void *)element = strtoull(text, &rest, 10);
    else
        dtn_store_int(dtype, element, 0, strtoll(text, &rest, 10));
    return rest != text && *rest == '\n';
}

static FILE *bench_open(const struct printing *p)
{
    char command[900];

    snprintf(command, sizeof command, "exec %s/dtensor-bench rng --print %d "
             "--seed %" PRIu64 " --offset %" PRId64 " --dist %s --dtype %s "
             "--tracker %s --fill %s --sms %d --threads %d %s %s --rank %d "
             "2>&1",
             tools, MOST, p->gen.seed, p->gen.offset, dists[p->dist],
             dtensor_dtype_name(p->dtype), trackers[p->gen.rule.tracker],
             fills[p->gen.rule.fill], p->gen.rule.sms,
             p->gen.rule.threads_per_sm, p->gen.rule.pytorch ? "--pytorch" : "",
             p->more, p->rank);
    return popen(command, "r");
}

/* Does the tool print these elements, one a line after a heading? */
static bool prints(FILE *bench, enum dtensor_dtype dtype,
                   const unsigned char *part, int64_t n, int64_t after)
{
    const size_t bytes = dtensor_dtype_size(dtype);
    char line[400], end[60];
    unsigned char element[16];

    snprintf(end, sizeof end, ", then %" PRId64 "\n", after);
    if (!fgets(line, sizeof line, bench) || line[0] != '#' ||
        strlen(line) < strlen(end) ||
        strcmp(line + strlen(line) - strlen(end), end) != 0)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!fgets(line, sizeof line, bench) ||
            !element_read(dtype, line, element) ||
            memcmp(element, part + (size_t)i * bytes, bytes) != 0)
            return false;
    return !fgets(line, sizeof line, bench);
}

struct tally {
    int printed, refused, bad;
};

/* Where there is no such distribution it says so in one line, and exits with 2.
 */
static void try_printing(const struct printing *p, struct tally *tally)
{
    unsigned char part[8 * MOST] = { 0 };
    FILE *bench = bench_open(p);
    int64_t n, after = 0;
    struct dtn_dist dist;
    char line[400] = "";
    bool good, have = dist_make(p, &dist);
    int status;

    if (have) {
        n = expected(p, &dist, part, &after);
        good = prints(bench, p->dtype, part, n, after);
        tally->printed++;
    } else {
        good = fgets(line, sizeof line, bench) &&
               strncmp(line, "dtensor-bench rng: ", 19) == 0 &&
               !fgets(line, sizeof line, bench);
        tally->refused++;
    }
    while (fgets(line, sizeof line, bench))
        continue;                          /* so that it can end             */
    status = pclose(bench);
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == (have ? 0 : 2);
    if (!good && tally->bad++ == 0)
        note("%s of %s, %s%s, %s, rank %d, status %d", dists[p->dist],
             dtensor_dtype_name(p->dtype), trackers[p->gen.rule.tracker],
             p->gen.rule.pytorch ? " as PyTorch" : "",
             fills[p->gen.rule.fill], p->rank, status);
}

enum { NRULES = 10 };

/* Every tracker, offset with PyTorch's own too, and every fill. */
static struct dtensor_random_rule rule_of(int i)
{
    const int tracker = i / 2;

    return (struct dtensor_random_rule){
        .tracker = tracker < 4 ? (enum dtensor_tracker)tracker
                               : DTENSOR_TRACKER_OFFSET,
        .fill = (enum dtensor_fill)(i % 2), .pytorch = tracker == 4,
        .sms = 1, .threads_per_sm = 256, .parallel_dims = "tp"
    };
}

static struct printing printing_of(int ndim, const int size[],
                                   const int64_t shape[2], const char *more)
{
    struct printing p = {
        .gen = { .seed = (UINT64_C(1) << 63) + 42, .offset = 40 },
        .mesh = { .ndim = ndim, .group = { .n = 1 }, .dim_name = { "dp", "tp" }
        }, .more = more
    };

    for (int m = 0; m < ndim; m++) {
        p.mesh.size[m] = size[m];
        p.mesh.group.n *= size[m];
        p.spec.placement[m] = (struct dtensor_placement){
            .kind = DTENSOR_SHARD, .dim = m };
    }
    p.spec.ndim = 2;
    memcpy(p.spec.shape, shape, 2 * sizeof shape[0]);
    return p;
}

/* Each distribution of each type by two of the rules in turn, bits by all. */
static void test_one_rank(void)
{
    static bool by_dist[DTN_COUNT(dists)][NRULES];
    static bool by_type[DTENSOR_NDTYPES][NRULES];
    struct printing p = printing_of(1, (int[]){ 1 }, (const int64_t[]){ 3, 4 },
                                    "--shape 3x4");
    struct tally tally = { 0 };
    struct dtn_dist dist;
    int missed = 0;

    p.spec.mesh = &p.mesh;
    for (p.dist = 0; p.dist < (int)DTN_COUNT(dists); p.dist++) {
        int next = p.dist;

        for (int d = 0; d < DTENSOR_NDTYPES; d++) {
            p.dtype = p.spec.dtype = (enum dtensor_dtype)d;
            if (!dist_make(&p, &dist)) {
                try_printing(&p, &tally);
                continue;
            }
            for (int i = 0; i < NRULES; i += p.dist < 8 ? 5 : 1) {
                const int rule = (next + i) % NRULES;

                p.gen.rule = rule_of(rule);
                by_dist[p.dist][rule] = by_type[d][rule] = true;
                try_printing(&p, &tally);
            }
            next++;
        }
    }
    for (int rule = 0; rule < NRULES; rule++) {
        for (size_t i = 0; i < DTN_COUNT(dists); i++)
            missed += !by_dist[i][rule];
        for (int d = 0; d < DTENSOR_NDTYPES; d++)
            missed += !by_type[d][rule] &&
                      dtn_dtype_kind((enum dtensor_dtype)d) !=
                      DTN_DTYPE_COMPLEX;
    }
    ok(tally.bad == 0 && tally.printed > 200, "%d printings are bit for bit "
       "what the library makes, and %d of what a type has not are refused",
       tally.printed, tally.refused);
    ok(missed == 0, "every distribution and every type by every tracker and "
       "fill");
}

static void test_ranks(void)
{
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_F64 };
    struct printing p = printing_of(2, (int[]){ 2, 2 },
                                    (const int64_t[]){ 7, 9 },
                                    "--shape 7x9 --mesh dp=2,tp=2 "
                                    "--placements 'S(0),S(1)'");
    struct tally tally = { 0 };

    p.spec.mesh = &p.mesh;
    p.dist = 2;
    for (int i = 0; i < 2 * NRULES; i++) {
        p.rank = (i + i / 4) % 4;
        p.dtype = p.spec.dtype = dtypes[i % 2];
        p.gen.rule = rule_of(i / 2);
        try_printing(&p, &tally);
    }
    ok(tally.bad == 0 && tally.printed == 2 * NRULES, "%d printings of the "
       "ranks of a mesh, uneven shards, are those of the rank asked for",
       tally.printed);
}

/* The tool itself, not libtool's script before it, which takes longer. */
static bool tools_find(const char *name)
{
    const char *dir = getenv("top_builddir"), *folders[] = { "/.libs", "" };
    char path[600];

    for (int i = 0; i < 2; i++) {
        snprintf(tools, sizeof tools, "%s%s", dir ? dir : ".", folders[i]);
        snprintf(path, sizeof path, "%s/%s", tools, name);
        if (access(path, X_OK) == 0)
            return setenv("LD_LIBRARY_PATH", tools, 1) == 0;
    }
    return false;
}

int main(void)
{
    if (!tools_find("dtensor-bench"))
        return skip_all("dtensor-bench is not built");
    unsetenv("DTN_CLUSTER");
    test_one_rank();
    test_ranks();
    return done();
}
