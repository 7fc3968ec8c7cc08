/* test_scratch_limit.c - packed pieces go in rounds and keep to max_scratch
 *
 * First by the checker: the schedules of all ranks of exchanges between shards
 * of every kind, with windows of one element to all of them, run on symbolic
 * elements, and each element that arrives is the oracle's.  Then over TCP,
 * where everything but long runs is packed: every route, and the arena is
 * asked how much it has given out.
 *
 * Without this test, a redistribute of a large tensor could take more memory
 * than its user allows.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/plan.h"
#include "sched/check.h"
#include "sched/exchange.h"
#include "sched/sched.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/redist/oracle.h"
#include "tests/support/tensor_job.h"

#include <stdbool.h>
#include <string.h>

/* ----------------------------------------------------------- by the checker */

static struct dtensor_ctx *ctx;                /* one that plans              */

struct wanted {
    const struct dtn_phase *phase;
    int n[ORACLE_RANKS];
    int src[ORACLE_RANKS][ORACLE_ELEMS];      /* global index of each element */
    int dst[ORACLE_RANKS][ORACLE_ELEMS];
};

/* What of which ranks must be in an element: one holder of it, or one of each
 * term.
 */
static bool is_wanted(int rank, size_t elem, const struct dtn_cell *cell,
                      const void *arg)
{
    const struct wanted *w = arg;
    const struct dtn_phase *phase = w->phase;
    int count = 0, terms = 1;

    for (int m = 0; m < phase->src.mesh->ndim; m++)
        if (phase->src.placement[m].kind == DTENSOR_PARTIAL &&
            phase->dst.placement[m].kind != DTENSOR_PARTIAL)
            terms *= phase->src.mesh->size[m];
    for (int r = 0; r < phase->src.mesh->group.n; r++)
        if (cell->ranks[0] >> r & 1) {
            if (w->src[r][cell->index] != w->dst[rank][elem])
                return false;
            count++;
        }
    return cell->defined && count == terms;
}

static void wanted_init(struct wanted *w, const struct dtn_phase *phase)
{
    static struct oracle_held held;

    w->phase = phase;
    for (int r = 0; r < phase->src.mesh->group.n; r++) {
        oracle_hold(&phase->src, r, &held);
        w->n[r] = (int)oracle_count(&phase->src, &held);
        oracle_list(&phase->src, &held, w->src[r]);
        oracle_hold(&phase->dst, r, &held);
        oracle_list(&phase->dst, &held, w->dst[r]);
    }
}

/* Which ranks map: none, or those on one of two hosts. */
static bool row_maps(const void *row, int position)
{
    return ((const bool *)row)[position];
}

static int emit(const struct dtn_phase *phase, int me, bool hosts,
                size_t window, struct dtn_sched *sched)
{
    struct dtn_pieces received = { 0 }, sent = { 0 };
    bool maps[ORACLE_RANKS];
    struct dtn_exchange x = {
        .name = "rounds", .n = phase->src.mesh->group.n, .me = me,
        .dtype = phase->dst.dtype, .redop = phase->redop, .scale = 1,
        .in_count = (size_t)dtn_local_numel(&phase->src, me),
        .out_count = (size_t)dtn_local_numel(&phase->dst, me),
        .folds = dtn_phase_folds(phase), .maps = row_maps, .whose = maps,
        .row_bytes = 24, .window_bytes = window
    };
    int rc, n = 0;

    for (int p = 0; p < x.n; p++)
        maps[p] = p == me || (hosts && p % 2 == me % 2);
    dtn_pieces_received(&phase->src, &phase->dst, me, &received, NULL);
    dtn_pieces_sent(&phase->src, &phase->dst, me, &sent, NULL);
    for (int i = 0; i < sent.n; i++)
        if (sent.list[i].receiver != me)
            sent.list[n++] = sent.list[i];
    x.nreceived = received.n;
    x.received = received.list;
    x.nsent = n;
    x.sent = sent.list;
    rc = dtn_emit_exchange(&x, sched, NULL);
    dtn_pieces_fini(&received);
    dtn_pieces_fini(&sent);
    return rc;
}

/* One exchange: right, and in no more scratch than five windows for a peer. */
static bool proves(const struct dtn_phase *phase, bool hosts, size_t window,
                   int *rounds, struct dtensor_error *err)
{
    static struct wanted wanted;
    struct dtn_sched sched[ORACLE_RANKS];
    const int n = phase->src.mesh->group.n, reach = dtn_phase_peers(phase);
    size_t elem = dtensor_dtype_size(phase->dst.dtype), most;
    bool good = true;

    wanted_init(&wanted, phase);
    most = window ? DTN_EXCHANGE_WINDOWS * (size_t)(reach - 1) *
                    (window < elem ? elem : window) : SIZE_MAX;
    for (int r = 0; r < n; r++) {
        if (emit(phase, r, hosts, window, &sched[r]) != 0)
            abort();
        if (sched[r].bytes[DTN_TMP] > most)
            good = false;
        *rounds = sched[r].rounds > *rounds ? sched[r].rounds : *rounds;
    }
    if (!good)
        snprintf(err->text, sizeof err->text, "more scratch than %zu", most);
    good = good && dtn_sched_check(sched, n, 2, NULL, is_wanted, &wanted,
                                   err) == 0;
    for (int r = 0; r < n; r++)
        dtn_sched_fini(&sched[r]);
    return good;
}

static void test_checked(int ndim, const int sizes[], const char *const kinds[],
                         int nkinds)
{
    static const size_t windows[] = { 0, 1, 8, 24, 72, 200 };
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor_spec src = { .dtype = DTENSOR_F64, .ndim = 2,
                                .shape = { 11, 6 } }, dst;
    struct dtn_phase phase[DTN_MAX_PHASES];
    struct dtensor_error err = { .text = "" };
    int cases = 0, rounds = 0;
    bool good = true;

    if (dtensor_mesh_create(ctx, ndim, sizes, NULL, NULL, &mesh, NULL) != 0)
        abort();
    src.mesh = mesh;
    dst = src;
    for (int c = 0; good && c < nkinds * nkinds * 12; c++) {
        if (c / 12 % 3 != 0 && !rounds_pick())
            continue;
        if (dtensor_placements_parse(mesh, kinds[c / 12 % nkinds], 2,
                                     src.placement, NULL) != 0 ||
            dtensor_placements_parse(mesh, kinds[c / 12 / nkinds], 2,
                                     dst.placement, NULL) != 0)
            abort();
        if (dtn_spec_partial(&dst) >= 0 || dtn_phases(&src, &dst, phase) != 1 ||
            phase[0].kind != DTN_PHASE_EXCHANGE)
            continue;
        good = proves(&phase[0], c % 2, windows[c / 2 % 6], &rounds, &err);
        if (!good)
            note("%s -> %s, window %zu: %s", kinds[c / 12 % nkinds],
                 kinds[c / 12 / nkinds], windows[c / 2 % 6], err.text);
        cases++;
    }
    ok(good && cases > 50 && rounds > 10, "%d exchanges on %d ranks by windows "
       "of 1 element to all: right, and within 5 windows for a peer (%d rounds "
       "at most)", cases, mesh->group.n, rounds);
}

/* ------------------------------------------------------------- over TCP --- */

static double value_at(int64_t g)
{
    return (double)(g % 8191 + 1);
}

/* Write or compare the own part: element g is `scale` times its value. */
static bool part_walk(const struct dtensor_spec *spec, struct dtensor *t,
                      double scale, bool writes)
{
    double *local = dtensor_to_local(t);
    struct dtn_part part;

    dtn_part_init(&part, spec, spec->mesh->group.me);
    for (int64_t i = 0; i < part.shape[0]; i++) {
        const int64_t row = dtn_part_at(&part, 0, i, NULL) * spec->shape[1];

        for (int64_t j = 0; j < part.shape[1]; j++, local++) {
            double want = scale * value_at(row + dtn_part_at(&part, 1, j,
                                                             NULL));

            if (writes)
                *local = want;
            else if (*local != want)
                return false;
        }
    }
    return true;
}

static int terms_of(const struct dtensor_spec *spec)
{
    int terms = 1;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            terms *= spec->mesh->size[m];
    return terms;
}

/* One pair by one route: returns the rounds, 0 when the route is refused. */
static int run_one(struct job *job, const struct dtensor_spec *src,
                   const struct dtensor_spec *dst,
                   const struct dtensor_plan_options *options)
{
    struct dtensor_plan *plan = NULL;
    struct dtensor_plan_step step;
    struct dtensor_plan_info info;
    struct dtensor *a = NULL, *b = NULL;
    uint64_t said;
    size_t used, pages;
    int rounds = 1;

    if (dtensor_plan_create(src, dst, options, &plan, &job->err) != 0) {
        need(strstr(job->err.text, "max_scratch"), "%s", job->err.text);
        return 0;
    }
    good(dtensor_empty(src, &a, &job->err));
    good(dtensor_empty(dst, &b, &job->err));
    part_walk(src, a, 1, true);
    used = job->ctx->arena.extents.used_bytes;
    for (int k = 0; k < 2; k++) {
        memset(dtensor_to_local(b), 0, dtensor_local_bytes(b));
        good(dtensor_plan_run(plan, a, b, &job->err));
        need(part_walk(dst, b, terms_of(src), false), "wrong elements by %s",
             dtensor_last_plan(job->ctx));
    }
    used = job->ctx->arena.extents.used_bytes - used;
    dtensor_plan_info(plan, &info);
    said = info.scratch_bytes;
    for (int s = 0; s < info.nsteps; s++) {
        good(dtensor_plan_step(plan, s, &step, &job->err));
        said += step.scratch_bytes;
        rounds = step.rounds > rounds ? step.rounds : rounds;
    }
    pages = 4096 * (size_t)(info.nsteps + DTN_NTARGETS);   /* rounded up     */
    if (strstr(info.text, "allreduce"))      /* has scratch of its own       */
        used = 0;
    need(used <= options->max_scratch + pages && used <= said + pages &&
         said <= options->max_scratch,
         "%zu bytes of scratch were taken and %llu announced, but %llu allowed: "
         "%s", used, (unsigned long long)said,
         (unsigned long long)options->max_scratch, info.text);
    need(rounds == 1 || strstr(info.text, "rounds"), "it says \"%s\"",
         info.text);
    dtensor_plan_destroy(plan);
    dtensor_destroy(a);
    dtensor_destroy(b);
    return rounds;
}

static void scratch_main(int rank, int n, void *arg)
{
    static const int sizes[] = { 2, 2 };
    static const char *const pairs[][2] = {
        { "R,S(1)", "R,S(0)" }, { "S(1),S(1)", "S(0),S(0)" },
        { "C(1,1),R", "R,C(0,3)" }, { "SS(1,3),S(1)", "S(1),S(0)" },
        { "P,S(1)", "S(1),S(0)" }, { "P,P", "S(1),S(1)" },
        { "S(1:5,91),P", "C(1,2),S(0)" }, { "P,S(0)", "S(1),R" },
        { "C(1,1),P", "R,C(1,1)" }
    };
    static const uint64_t bounds[] = { 20000, 150000, 1 << 30 };
    const int64_t shape[] = { 509, 96 };
    const struct dtensor_mesh *mesh = NULL;
    struct job job_here, *job = &job_here;
    double bytes[4] = { 0 }, back[4];
    int most = 0, refused = 0;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    good(dtensor_all_to_all(mesh, bytes, back, 1, DTENSOR_F64, &job->err));
    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh, &job->err));
    for (size_t b = 0; b < DTN_COUNT(bounds); b++)
        for (size_t i = 0; i < DTN_COUNT(pairs); i++)
            for (int route = 0; route < DTENSOR_NROUTES; route++) {
                const struct dtensor_plan_options options = {
                    .route = (enum dtensor_route)route,
                    .max_scratch = bounds[b]
                };
                struct dtensor_spec src = spec_of(job, mesh, DTENSOR_F64,
                                                  shape, pairs[i][0]);
                struct dtensor_spec dst = spec_of(job, mesh, DTENSOR_F64,
                                                  shape, pairs[i][1]);
                int rounds = run_one(job, &src, &dst, &options);

                refused += rounds == 0;
                most = rounds > most ? rounds : most;
            }
    need(most > 20, "%d rounds at most", most);
    if (rank == 0)
        note("%d rounds at most, %d routes refused", most, refused);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const one[] = {
        "S(0)", "S(1)", "SS(0,2)", "C(0,2)", "C(1,1)", "SS(1,3)", "R", "P"
    };
    static const char *const two[] = {
        "S(0),S(0)", "S(1),S(0)", "P,S(1)", "S(1),P", "C(0,1),SS(1,2)", "P,P",
        "R,C(1,1)", "S(1),S(1)", "S(0),R", "SS(0,3),S(0)"
    };
    static const int line[] = { 4 }, square[] = { 2, 3 };
    const char *path;

    if (dtensor_init_offline(NULL, 8, 0, &ctx, NULL) != 0)
        return skip_all("no context");
    test_checked(1, line, one, (int)DTN_COUNT(one));
    test_checked(2, square, two, (int)DTN_COUNT(two));
    dtensor_fini(ctx);
    path = ranks_file("tcp", 4, NULL);
    ok(ranks_run(4, 60, scratch_main, (void *)path, NULL) == 0,
       "over tcp, by every route: no more than max_scratch is taken, and as "
       "much as was announced");
    remove(path);
    return done();
}
