/* test_window.c - the window of private memory is proven right
 *
 * Every collective that has one, 2 to 17 ranks, blocks of less than one piece
 * and of several, whose last piece is shorter or empty on some ranks; apart and
 * in place, in repeated rounds, and with sums in rank order.
 *
 * Without this test, a slot could be staged again before the slowest peer has
 * loaded it, which a test with real ranks meets once in a thousand runs.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stddef.h>

static struct coll_case now;

static bool case_good(bool in_place)
{
    struct dtensor_error err;
    int rc = case_emit(&now, &err);

    if (rc == 0)
        rc = case_check(&now, 2, in_place, &err);
    if (rc != 0)
        note("%s: n %d, count %zu%s: %s", dtn_coll_name(now.call.coll),
             now.call.n, now.call.count, in_place ? " in place" : "",
             err.text);
    case_fini(&now);
    return rc == 0;
}

static bool places_good(size_t count)
{
    now.call.count = count;
    return case_good(false)
        && (!case_in_place_ok(now.call.coll) || case_good(true));
}

/* A piece is 4 KiB for 17 ranks, 64 KiB for 2: blocks of n * 4 KiB and more are
 * several pieces each.
 */
static bool ranks_good(int n)
{
    const size_t elem = dtensor_dtype_size(now.call.dtype);
    const bool blocks = now.call.coll != DTN_COLL_ALLREDUCE;
    const size_t block = n > 4 ? (9000 + 64) / elem : 200000 / elem + 3;

    now.call.n = n;
    return places_good(1) && places_good((size_t)n + 1)
        && places_good(296 / elem)
        && (n > 9 || places_good(blocks ? block : block * (size_t)n - 5));
}

static void test_coll(enum dtn_coll coll)
{
    static const struct { enum dtensor_dtype dtype; enum dtensor_redop op; }
    types[] = { { DTENSOR_F64, DTENSOR_SUM }, { DTENSOR_C128, DTENSOR_AVG },
                { DTENSOR_BF16, DTENSOR_SUM } };
    const struct dtn_emitter emitter = {
        .coll = coll, .algorithm = DTN_ALG_DIRECT, .needs = DTN_REACH_MAP,
        .max_bytes = SIZE_MAX, .emit = dtn_window_emitters[coll]
    };
    bool good = true;

    now.emitter = &emitter;
    for (int n = 2; good && n <= CASE_RANKS_MAX; n++) {
        const int t = dtn_coll_infos[coll].reduces && n > 4 ? n % 3 : 0;

        now.call = (struct dtn_call){ .coll = coll, .dtype = types[t].dtype,
                                      .redop = types[t].op };
        good = ranks_good(n);
    }
    ok(good, "%s: right for 2 to %d ranks", dtn_coll_name(coll),
       CASE_RANKS_MAX);
}

/* What may be asked later must not depend on what the caller frees. */
static void test_suits(void)
{
    const size_t counts[] = { 100000, 200000 };
    struct dtn_call call = { .coll = DTN_COLL_ALLGATHER, .n = 2,
                             .dtype = DTENSOR_F64, .count = 150000 };

    ok(dtn_window_suits(&call), "1.2 MB of two ranks suit the window");
    call.counts = counts;
    ok(!dtn_window_suits(&call), "blocks of the caller's list do not");
    call.counts = NULL;
    call.on_device = true;
    ok(!dtn_window_suits(&call), "memory of a device does not");
    call.on_device = false;
    call.count = 8000;
    ok(!dtn_window_suits(&call), "125 KiB do not: nothing overlaps");
    call = (struct dtn_call){ .coll = DTN_COLL_BROADCAST, .n = 2,
                              .dtype = DTENSOR_F64, .count = 1 << 20 };
    ok(!dtn_window_suits(&call), "a broadcast has none");
}

int main(void)
{
    for (int coll = 0; coll < DTN_NCOLLS; coll++)
        if (dtn_window_emitters[coll])
            test_coll((enum dtn_coll)coll);
    test_suits();
    return done();
}
