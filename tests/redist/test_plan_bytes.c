/* test_plan_bytes.c - the bytes that a plan promises, must move and moves
 *
 * The bytes that a plan promises to move are compared with a bound that is
 * counted here element by element, and with what the schedules of all ranks
 * move.  No ranks are needed: the context only plans.
 *
 * Without this test, a plan could move more than it must, or tell other bytes
 * than it moves.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/plan.h"
#include "redist/route.h"
#include "sched/exchange.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------- promise and bound */

static bool inside(const int64_t at[], const int64_t shape[],
                   const int64_t offset[], int ndim)
{
    for (int d = 0; d < ndim; d++)
        if (at[d] < offset[d] || at[d] >= offset[d] + shape[d])
            return false;
    return true;
}

/* Elements that `rank` is to hold and does not, one by one.  Two dimensions. */
static uint64_t missing(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, int rank)
{
    int64_t have[2], have_at[2], want[2], want_at[2], at[2];
    uint64_t n = 0;

    dtensor_spec_local(src, rank, have, have_at);
    dtensor_spec_local(dst, rank, want, want_at);
    for (at[0] = 0; at[0] < src->shape[0]; at[0]++)
        for (at[1] = 0; at[1] < src->shape[1]; at[1]++)
            n += inside(at, want, want_at, 2) && !inside(at, have, have_at, 2);
    return n;
}

static const char *const words[] = { "R", "S(0)", "S(1)", "P" };

static void pair_text(int index, int ndim, char *text)
{
    text[0] = '\0';
    for (int m = 0; m < ndim; m++, index /= 4) {
        strcat(text, m ? "," : "");
        strcat(text, words[index % 4]);
    }
}

/* One pair by every route: the promise is not below the bound; without terms
 * the bound is what is missing, and the direct exchange moves just that.
 */
static bool pair_holds(const struct dtensor_mesh *mesh, const int64_t shape[2],
                       const char *from, const char *to, char *why)
{
    struct dtensor_spec src = spec_at(mesh, 2, shape, from);
    struct dtensor_spec dst = spec_at(mesh, 2, shape, to);
    const bool terms = strchr(from, 'P') || strchr(to, 'P');
    const int n = dtensor_mesh_size(mesh);
    uint64_t bound = 0, need = 0;
    bool good = true;

    for (int route = DTENSOR_ROUTE_AUTO; route < DTENSOR_NROUTES; route++) {
        struct dtensor_plan *plan = plan_of(&src, &dst,
                                            (enum dtensor_route)route);
        uint64_t bytes = dtensor_plan_bytes(plan, -1, -1, -1), sum = 0, got = 0;

        bound = dtensor_plan_bound(plan, -1);
        good = good && plan && bytes >= bound;
        for (int r = 0; r < n && good; r++) {
            sum += dtensor_plan_bytes(plan, -1, r, -1);
            got += dtensor_plan_bytes(plan, -1, -1, r);
            good = dtensor_plan_bytes(plan, -1, -1, r) >=
                   dtensor_plan_bound(plan, r);
        }
        if (!good || sum != bytes || got != bytes) {
            sprintf(why, "%s [%s] -> [%s]: %llu of at least %llu, sent %llu, "
                    "got %llu", dtn_route_name((enum dtensor_route)route), from,
                    to, (unsigned long long)bytes, (unsigned long long)bound,
                    (unsigned long long)sum, (unsigned long long)got);
            good = false;
        }
        if (route == DTENSOR_ROUTE_DIRECT && !terms) {
            need = 0;
            for (int r = 0; r < n; r++)
                need += 4 * missing(&src, &dst, r);
            if (need != bytes || need != bound) {
                sprintf(why, "direct [%s] -> [%s] moves %llu, bound %llu, "
                        "missing %llu", from, to, (unsigned long long)bytes,
                        (unsigned long long)bound, (unsigned long long)need);
                good = false;
            }
        }
        dtensor_plan_destroy(plan);
        if (!good)
            return false;
    }
    return true;
}

static void test_promises(struct dtensor_ctx *ctx)
{
    static const struct { int ndim, size[3]; } meshes[] = {
        { 1, { 4 } }, { 2, { 2, 2 } }, { 2, { 2, 3 } }, { 3, { 2, 1, 2 } }
    };
    static const int64_t shapes[][2] = { { 5, 3 }, { 8, 8 }, { 1, 7 },
                                         { 0, 4 } };
    char from[40], to[40], why[300] = "";
    int cases = 0;

    for (size_t m = 0; m < DTN_COUNT(meshes); m++) {
        const struct dtensor_mesh *mesh = mesh_of(ctx, meshes[m].ndim,
                                                  meshes[m].size);
        const int all = 1 << 2 * meshes[m].ndim;

        for (int pair = 0; pair < all * all && !why[0]; pair++) {
            const int64_t *shape = shapes[pair % 4];

            pair_text(pair / all, meshes[m].ndim, from);
            pair_text(pair % all, meshes[m].ndim, to);
            if (m == 3 && pair % 7 != 0)
                continue;
            pair_holds(mesh, shape, from, to, why);
            cases++;
        }
    }
    ok(!why[0], "of %d pairs by 5 routes no promise is below the bound, and "
       "direct meets it where there are no terms %s", cases, why);
}

/* ------------------------------------------------- promised and really sent */

/* Bytes that the schedules of all ranks move between ranks when a phase is run,
 * by puts or by loads.
 */
static uint64_t moved_by(const struct dtn_sched *sched)
{
    uint64_t bytes = 0;

    for (int s = 0; s < sched->nsteps; s++) {
        const struct dtn_step *step = &sched->steps[s];
        const bool put = step->op == DTN_OP_PUT;
        const bool load = (step->op == DTN_OP_COPY ||
                           step->op == DTN_OP_REDUCE) &&
                          step->src.rank != sched->me;

        if (put || load)
            bytes += step->box < 0 ? step->bytes
                   : (uint64_t)dtn_box_count(&sched->boxes[step->box]) *
                     dtensor_dtype_size(sched->dtype);
    }
    return bytes;
}

static bool row_maps(const void *row, int position)
{
    return ((const bool *)row)[position];
}

static uint64_t moved_really(const struct dtn_phase *phase, bool loads)
{
    const int n = phase->src.mesh->group.n;
    bool mapped[64];
    uint64_t bytes = 0;

    for (int p = 0; p < n; p++)
        mapped[p] = loads;
    for (int p = 0; p < n; p++) {
        struct dtn_pieces received = { 0 }, sent = { 0 };
        struct dtn_exchange x = {
            .name = "test", .n = n, .me = p, .dtype = phase->dst.dtype,
            .redop = phase->redop, .neutral = phase->neutral, .scale = 1,
            .in_count = (size_t)dtn_local_numel(&phase->src, p),
            .out_count = (size_t)dtn_local_numel(&phase->dst, p)
        };
        struct dtn_sched sched;

        dtn_pieces_received(&phase->src, &phase->dst, p, &received, NULL);
        dtn_pieces_sent(&phase->src, &phase->dst, p, &sent, NULL);
        for (int i = 0; i < sent.n; i++)         /* its own are not sent     */
            if (sent.list[i].receiver == p)
                sent.list[i--] = sent.list[--sent.n];
        x.nreceived = received.n;
        x.received = received.list;
        x.nsent = sent.n;
        x.sent = sent.list;
        x.folds = dtn_phase_folds(phase);
        x.maps = row_maps;
        x.whose = mapped;
        if (dtn_emit_exchange(&x, &sched, NULL) == 0) {
            bytes += moved_by(&sched);
            dtn_sched_fini(&sched);
        }
        dtn_pieces_fini(&received);
        dtn_pieces_fini(&sent);
    }
    return bytes;
}

/* Shards of every kind; S -> S' meets the bound exactly, whatever the kinds. */
static void test_sent(struct dtensor_ctx *ctx)
{
    static const char *const kinds[] = {
        "S(0)", "S(1)", "SS(0,2)", "C(0,2)", "S(0:1,4,2,4)", "C(1,1)",
        "SS(1,3)", "R", "P"
    };
    static const int sizes[] = { 4 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 1, sizes);
    const int64_t shape[] = { 11, 6 };
    uint64_t promise, bound, loads, puts;
    int cases = 0, exact = 0;
    char why[200] = "";

    for (size_t i = 0; i < DTN_COUNT(kinds); i++)
        for (size_t j = 0; j + 1 < DTN_COUNT(kinds); j++) {
            struct dtensor_spec src = spec_at(mesh, 2, shape, kinds[i]);
            struct dtensor_spec dst = spec_at(mesh, 2, shape, kinds[j]);
            struct dtensor_plan *plan = plan_of(&src, &dst,
                                                DTENSOR_ROUTE_DIRECT);
            const bool call = kinds[i][0] == 'P' && kinds[j][0] == 'R';

            promise = dtensor_plan_bytes(plan, -1, -1, -1);
            bound = dtensor_plan_bound(plan, -1);
            if (plan->nsteps == 1 && !call) {
                loads = moved_really(&plan->step[0].phase, true);
                puts = moved_really(&plan->step[0].phase, false);
                if (loads > promise || puts > promise || promise < bound ||
                    (i < 7 && j < 7 && (puts != bound || loads != bound)))
                    sprintf(why, "%s -> %s: %llu loaded, %llu put, %llu "
                            "promised, %llu at least", kinds[i], kinds[j],
                            (unsigned long long)loads, (unsigned long long)puts,
                            (unsigned long long)promise,
                            (unsigned long long)bound);
                exact += loads == promise && puts == promise;
                cases++;
            }
            dtensor_plan_destroy(plan);
        }
    ok(!why[0] && cases > 60 && exact == cases, "%d pairs of shards of every "
       "kind: no more is sent than promised, S to S' just the bound %s", cases,
       why);
}

int main(void)
{
    struct dtensor_ctx *ctx = planner_of(8, 0);

    test_promises(ctx);
    test_sent(ctx);
    dtensor_fini(ctx);
    return done();
}
