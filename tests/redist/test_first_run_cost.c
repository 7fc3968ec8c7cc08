/* test_first_run_cost.c - the cost of a plan's first run, counted in steps of
 * work
 *
 * Before it runs, a rank finds the pieces that it receives and sends and emits
 * its schedule.  The test counts calls of the functions that do this, which
 * are the same on every machine.  On 16 x 8 x 8 ranks from S(0),S(1),R to
 * R,S(0),S(1) a rank receives 2 pieces and sends 16, and must not look at
 * 1,024 ranks.
 *
 * Without this test, the first call of a large job could take time in
 * proportion to all its ranks.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/runs.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "sched/emit/exchange.h"
#include "sched/emit/parcels.h"
#include "sched/exchange.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/redist/counted.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>

enum { WORK_OF_PIECE = 25 };      /* calls; when this was written 17.3 */

COUNTED(void, dtn_shard_of, (const struct dtensor_placement *p, int64_t N,
        int n, int r, struct dtn_shard *shard), (p, N, n, r, shard))
COUNTED(void, dtn_runs_shard, (const struct dtn_runs *runs,
        const struct dtn_shard *shard, struct dtn_runs *out),
        (runs, shard, out))
COUNTED(void, dtn_part_init, (struct dtn_part *part,
        const struct dtensor_spec *spec, int index), (part, spec, index))
COUNTED(void, dtn_box_coalesce, (struct dtn_box *box), (box))
COUNTED(struct dtn_partner *, dtn_exchange_partner,
        (const struct dtn_exchanger *ex,
        int rank), (ex, rank))
COUNTED(struct dtn_piece, dtn_parcel_piece, (const struct dtn_parcel *parcel),
        (parcel))

static bool maps_all(const void *whose, int position)
{
    return *(const bool *)whose;
}

/* Make `me` ready from src to dst, and say what it has. */
struct made {
    long work;
    int pieces;                   /* received and sent                        */
    int steps, boxes;
};

static struct made make_ready(const struct dtensor_spec *src,
                              const struct dtensor_spec *dst, int me, bool maps)
{
    const struct dtn_phase phase = dtn_phase_exchange(src, dst);
    struct dtn_pieces received = { 0 }, sent = { 0 };
    struct dtn_exchange x = {
        .name = "test", .n = src->mesh->group.n, .me = me, .dtype = src->dtype,
        .redop = phase.redop, .neutral = phase.neutral, .scale = 1,
        .folds = dtn_phase_folds(&phase), .maps = maps_all, .whose = &maps,
        .in_count = (size_t)dtn_local_numel(src, me),
        .out_count = (size_t)dtn_local_numel(dst, me)
    };
    struct dtn_sched sched;
    struct made made = { 0 };

    work = 0;
    if (dtn_pieces_received(&phase.src, &phase.dst, me, &received, NULL) != 0 ||
        dtn_pieces_sent(&phase.src, &phase.dst, me, &sent, NULL) != 0)
        exit(1);
    x.nreceived = received.n;
    x.received = received.list;
    x.nsent = sent.n;
    x.sent = sent.list;
    if (dtn_emit_exchange(&x, &sched, NULL) != 0)
        exit(1);
    made = (struct made){ work, received.n + sent.n, sched.nsteps,
                          sched.nboxes };
    dtn_sched_fini(&sched);
    dtn_pieces_fini(&received);
    dtn_pieces_fini(&sent);
    return made;
}

/* Some are without peers, some meet a row of the mesh, some all ranks. */
static const char *const pairs[][2] = {
    { "S(0),R,R", "S(0),S(1),R" }, { "S(0),S(1),R", "R,S(0),S(1)" },
    { "S(0),S(1),R", "S(1),S(0),R" }, { "S(0),S(0),R", "R,R,R" },
    { "R,R,R", "S(0),S(1),S(0)" }, { "P,S(0),S(1)", "S(0),R,S(1)" },
    { "S(0),S(1),S(0)", "S(1),S(0),S(1)" }, { "S(0),R,R", "R,R,S(0)" },
    { "S(0),S(0),S(0)", "S(1),S(1),S(1)" }, { "P,P,P", "S(0),S(0),S(0)" }
};

/* Work goes by a rank's own pieces: the most for one of them, over all pairs
 * and some ranks.
 */
static double work_of_piece(const struct dtensor_mesh *mesh, bool maps)
{
    const int64_t shape[] = { 16384, 16384 };
    const int n = dtensor_mesh_size(mesh), ranks[] = { 0, n / 2 - 1, n - 1 };
    double most = 0;

    for (size_t i = 0; i < DTN_COUNT(pairs); i++)
        for (size_t r = 0; r < DTN_COUNT(ranks); r++) {
            const struct dtensor_spec src = spec_at(mesh, 2, shape,
                                                    pairs[i][0]);
            const struct dtensor_spec dst = spec_at(mesh, 2, shape,
                                                    pairs[i][1]);
            const struct made made = make_ready(&src, &dst, ranks[r], maps);
            const double each = (double)made.work / (made.pieces + 1);

            if (each > most)
                most = each;
        }
    return most;
}

static void test_work(void)
{
    static const int sizes[][3] = {
        { 2, 2, 2 }, { 4, 4, 4 }, { 16, 8, 8 }, { 64, 4, 4 }, { 4, 64, 4 },
        { 4, 4, 64 }
    };

    for (size_t i = 0; i < DTN_COUNT(sizes); i++) {
        struct dtensor_ctx *ctx = planner_of(1024, 8);
        const struct dtensor_mesh *mesh = mesh_of(ctx, 3, sizes[i]);
        const double loads = work_of_piece(mesh, true);
        const double puts = work_of_piece(mesh, false);

        ok(loads <= WORK_OF_PIECE && puts <= WORK_OF_PIECE, "%d x %d x %d "
           "ranks: %.1f calls for a piece that is loaded, %.1f that is put",
           sizes[i][0], sizes[i][1], sizes[i][2], loads, puts);
        dtensor_fini(ctx);
    }
}

/* Shards that are alike have one box. */
static void test_boxes(void)
{
    static const int sizes[] = { 64 };
    const int64_t even[] = { 128, 128 };
    struct dtensor_ctx *ctx = planner_of(64, 8);
    const struct dtensor_mesh *mesh = mesh_of(ctx, 1, sizes);
    const struct dtensor_spec src = spec_at(mesh, 2, even, "S(0)");
    const struct dtensor_spec dst = spec_at(mesh, 2, even, "S(1)");
    const struct made loads = make_ready(&src, &dst, 5, true);

    ok(loads.boxes == 1 && loads.steps > 64, "64 pieces alike: %d steps share "
       "%d box", loads.steps, loads.boxes);
    dtensor_fini(ctx);
}

int main(void)
{
    test_work();
    test_boxes();
    return done();
}
