/* coll_cases.c - collectives to check: a call, its schedules on all ranks, and
 * what every element of every OUT must then be, said without the library's
 * own arithmetic of blocks.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/reduce.h"
#include "sched/emitters.h"
#include "tests/sched/coll_cases.h"

#include <string.h>

/* The reduction tree of each element, as the first rank to finish has it. */
static uint64_t case_trees[CASE_TREES];

/* Must it be the fold from the left, rank 0 first? */
static bool case_ordered;

/* Block r, in elements; of ALL_TO_ALL, for all ranks, from i to j at i*n+j. */
static size_t case_count(const struct dtn_call *call, int r)
{
    return call->counts ? call->counts[r] : call->count;
}

static size_t case_start(const struct dtn_call *call, int r)
{
    size_t start = 0;

    for (int q = 0; q < r; q++)
        start += case_count(call, q);
    return start;
}

/* Of PAIRS some send nothing, not even 0 bytes. */
static bool case_sends(const struct dtn_call *call, int i, int j)
{
    return call->coll != DTN_COLL_PAIRS || (i * 5 + j * 3 + i / 4) % 4 != 0;
}

/* What rank i sends rank j. */
static size_t case_pair(const struct dtn_call *call, int i, int j)
{
    return case_sends(call, i, j) ? case_count(call, i * call->n + j) : 0;
}

_Static_assert(CASE_RANKS_MAX < 32, "the first word names all ranks");

/* Are these the ranks in it, by their bits? */
static bool cell_has(const struct dtn_cell *cell, uint32_t ranks)
{
    uint32_t others = 0;

    for (size_t w = 1; w < DTN_COUNT(cell->ranks); w++)
        others |= cell->ranks[w];
    return cell->ranks[0] == ranks && others == 0;
}

/* The element is `index` of IN of one rank. */
static bool cell_is_from(const struct dtn_cell *cell, int rank, size_t index)
{
    return cell->defined && !cell->finalised && cell->index == (int64_t)index
        && cell_has(cell, UINT32_C(1) << rank);
}

/* The element is the reduction of `index` of all n INs. */
static bool cell_is_sum(const struct dtn_cell *cell,
                        const struct dtn_call *call, size_t index)
{
    const struct dtn_reduction how = dtn_reduction(call->dtype, call->redop,
                                                   call->n);

    return cell->defined && cell->index == (int64_t)index
        && cell->finalised == dtn_reduction_finalises(&how)
        && (!case_ordered || cell->tree == dtn_check_tree(call->n, cell->index))
        && cell_has(cell, (UINT32_C(1) << call->n) - 1);
}

/* And put together in the same order on every rank. */
static bool cell_is_same(const struct dtn_cell *cell, size_t elem)
{
    uint64_t *tree = &case_trees[elem % CASE_TREES];

    if (elem >= CASE_TREES)
        return true;
    if (*tree == 0)
        *tree = cell->tree;
    return *tree == cell->tree;
}

static bool case_expect(int rank, size_t elem, const struct dtn_cell *cell,
                        const void *arg)
{
    const struct dtn_call *call = arg;
    size_t at = elem, start = 0;
    int r = 0;

    switch (call->coll) {
    case DTN_COLL_ALLREDUCE:
        return cell_is_sum(cell, call, elem) && cell_is_same(cell, elem);
    case DTN_COLL_REDUCE:
        return rank == call->root && cell_is_sum(cell, call, elem);
    case DTN_COLL_BROADCAST:
        return cell_is_from(cell, call->root, elem);
    case DTN_COLL_REDUCE_SCATTER:
        return cell_is_sum(cell, call, case_start(call, rank) + elem);
    case DTN_COLL_SCATTER:
        return cell_is_from(cell, call->root, case_start(call, rank) + elem);
    case DTN_COLL_GATHER:
    case DTN_COLL_ALLGATHER:
        for (; at >= case_count(call, r); r++)
            at -= case_count(call, r);
        return cell_is_from(cell, r, at);
    case DTN_COLL_PAIRS:
    case DTN_COLL_ALL_TO_ALL:
        for (; at >= case_pair(call, r, rank); r++)
            at -= case_pair(call, r, rank);
        for (int q = 0; q < rank; q++)
            start += case_pair(call, r, q);
        return cell_is_from(cell, r, start + at);
    default:
        return false;
    }
}

/* How many elements OUT of a rank must have. */
static size_t case_out_count(const struct dtn_call *call, int rank)
{
    size_t total = 0;

    switch (call->coll) {
    case DTN_COLL_REDUCE:
        return rank == call->root ? call->count : 0;
    case DTN_COLL_GATHER:
        return rank == call->root ? case_start(call, call->n) : 0;
    case DTN_COLL_ALLGATHER:
        return case_start(call, call->n);
    case DTN_COLL_SCATTER:
    case DTN_COLL_REDUCE_SCATTER:
        return case_count(call, rank);
    case DTN_COLL_PAIRS:
    case DTN_COLL_ALL_TO_ALL:
        for (int r = 0; r < call->n; r++)
            total += case_pair(call, r, rank);
        return total;
    case DTN_COLL_BARRIER:
        return 0;
    default:
        return call->count;
    }
}

/* Loads from ranks of the own host only?  hosts NULL: from itself only. */
static int case_loads_near(const struct dtn_sched *sched, const int hosts[],
                           struct dtensor_error *err)
{
    for (int s = 0; s < sched->nsteps; s++) {
        const struct dtn_step *step = &sched->steps[s];
        bool loads = step->op == DTN_OP_COPY || step->op == DTN_OP_REDUCE
                  || step->op == DTN_OP_FOLD;
        int n = !loads || step->src.rank >= 0 ? 1
              : sched->terms ? sched->nterms : sched->n;

        for (int t = 0; loads && t < n; t++) {
            int rank = step->src.rank >= 0 ? step->src.rank
                     : sched->terms ? sched->terms[t] : t;

            if (hosts ? hosts[rank] != hosts[sched->me] : rank != sched->me)
                return dtn_fail(err, DTENSOR_EINVAL, "rank %d, step %d loads "
                                "from rank %d, which it need not reach",
                                sched->me, s, rank);
        }
    }
    return 0;
}

/* The edges of rank r, packed. */
static void case_edges(const struct coll_case *c, int r,
                       struct dtn_edge edges[])
{
    size_t elem = dtensor_dtype_size(c->call.dtype), sent = 0, received = 0;

    for (int q = 0; q < c->call.n; q++) {
        edges[q] = (struct dtn_edge){ .peer = q,
            .sends = case_sends(&c->call, r, q),
            .receives = case_sends(&c->call, q, r),
            .sent_match = (uint32_t)(r * 100 + q),
            .received_match = (uint32_t)(q * 100 + r),
            .sent = { sent, case_pair(&c->call, r, q) * elem },
            .received = { received, case_pair(&c->call, q, r) * elem } };
        sent += edges[q].sent.bytes;
        received += edges[q].received.bytes;
    }
}

struct dtn_call case_call(const struct coll_case *c, int r)
{
    static size_t column[CASE_RANKS_MAX];
    static struct dtn_edge edges[CASE_RANKS_MAX];
    struct dtn_call call = c->call;

    call.me = r;
    if (call.coll == DTN_COLL_PAIRS) {
        case_edges(c, r, edges);
        call.edges = edges;
        call.nedges = call.n;
        call.counts = NULL;
    }
    if (call.coll == DTN_COLL_ALL_TO_ALL && call.counts) {
        for (int q = 0; q < call.n; q++)
            column[q] = c->call.counts[q * call.n + r];
        call.counts = c->call.counts + r * call.n;
        call.recv_counts = column;
    }
    return call;
}

int case_emit(struct coll_case *c, struct dtensor_error *err)
{
    int rc = 0;

    case_ordered = dtn_emitter_ordered(c->emitter);

    memset(c->scheds, 0, sizeof c->scheds);
    for (int r = 0; rc == 0 && r < c->call.n; r++) {
        struct dtn_call call = case_call(c, r);

        rc = c->emitter->emit(&call, &c->scheds[r], err);
        if (rc == 0 && c->scheds[r].bytes[DTN_OUT]
            != case_out_count(&c->call, r) * dtensor_dtype_size(c->call.dtype))
            rc = dtn_fail(err, DTENSOR_EINVAL, "OUT of rank %d: %zu bytes", r,
                          c->scheds[r].bytes[DTN_OUT]);
        if (rc == 0 && c->emitter->needs == DTN_REACH_PUT)
            rc = case_loads_near(&c->scheds[r], NULL, err);
        if (rc == 0 && c->call.hosts)
            rc = case_loads_near(&c->scheds[r], c->call.hosts, err);
    }
    return rc;
}

void case_fini(struct coll_case *c)
{
    for (int r = 0; r < c->call.n; r++)
        dtn_sched_fini(&c->scheds[r]);
}

bool case_in_place_ok(enum dtn_coll coll)
{
    return dtn_coll_infos[coll].in_place;
}

/* The steps that the ranks take if some OUT is private: to the last WAIT of
 * READY the same, then those for private memory.
 */
static void case_hide(struct dtn_sched *sched)
{
    const struct dtn_step *more = sched->steps + sched->nsteps;
    int n = 0;

    for (int s = 0; s < sched->nsteps; s++)
        if (sched->steps[s].op == DTN_OP_WAIT
            && sched->steps[s].tag == DTN_TAG_READY)
            n = s + 1;
    memmove(sched->steps + n, more,
            (size_t)sched->nprivate * sizeof *sched->steps);
    sched->nsteps = n + sched->nprivate;
    sched->nprivate = 0;
    sched->exposed[DTN_OUT] = false;
}

int case_check(const struct coll_case *c, int rounds, bool in_place,
               struct dtensor_error *err)
{
    int64_t elem_bytes = (int64_t)dtensor_dtype_size(c->call.dtype);
    int64_t alias[CASE_RANKS_MAX] = { 0 };

    for (int r = 0; r < c->call.n; r++) {
        int64_t start = (int64_t)case_start(&c->call, r) * elem_bytes;

        if (dtn_coll_infos[c->call.coll].out == DTN_HOLDS_EACH)
            alias[r] = -start;
        if (dtn_coll_infos[c->call.coll].in == DTN_HOLDS_EACH)
            alias[r] = start;
    }
    memset(case_trees, 0, sizeof case_trees);
    return dtn_sched_check(c->scheds, c->call.n, rounds,
                           in_place ? alias : NULL,
                     case_expect, &c->call, err);
}

int case_check_hidden(struct coll_case *c, int rounds, bool in_place,
                      struct dtensor_error *err)
{
    if (c->scheds[0].nprivate == 0)
        return 0;
    for (int r = 0; r < c->call.n; r++)
        case_hide(&c->scheds[r]);
    return case_check(c, rounds, in_place, err);
}
