/* emit.c - how a call's buffers are cut into blocks
 *
 * Two cuts.  What the caller gave in blocks (the shares of an all-gather)
 * stays in those blocks: counts {3, 0, 2} of f32 lie at bytes 0, 12 and 12.
 * What is one buffer (an allreduce) is cut on cache lines, so that no two
 * ranks write the same line: 37 f32 are 148 bytes, 3 lines, for two ranks
 * bytes 0..127 and 128..147.
 */
#include "coll/emit.h"

struct dtn_range dtn_cut(size_t bytes, int n, int i)
{
    size_t lines = (bytes + DTN_CACHE_LINE - 1) / DTN_CACHE_LINE;
    size_t each = lines / (size_t)n, over = lines % (size_t)n, at = (size_t)i;
    size_t begin = (at * each + (at < over ? at : over)) * DTN_CACHE_LINE;
    size_t end = begin + (each + (at < over)) * DTN_CACHE_LINE;

    if (begin > bytes)
        begin = bytes;
    if (end > bytes)
        end = bytes;
    return (struct dtn_range){ begin, end - begin };
}

struct dtn_range dtn_blocks(const struct dtn_call *call, int first, int count)
{
    size_t elem_bytes = dtensor_dtype_size(call->dtype);
    struct dtn_range range = { 0, 0 };

    for (int r = 0; r < first + count; r++) {
        size_t bytes = elem_bytes * (call->counts ? call->counts[r]
                                                  : call->count);

        *(r < first ? &range.offset : &range.bytes) += bytes;
    }
    return range;
}

struct dtn_range dtn_block(const struct dtn_call *call, int r)
{
    if (call->coll == DTN_COLL_ALLGATHER
        || call->coll == DTN_COLL_REDUCE_SCATTER)
        return dtn_blocks(call, r, 1);
    return dtn_cut(call->count * dtensor_dtype_size(call->dtype), call->n, r);
}

/* Bytes from rank i to rank j. */
static size_t pair_bytes(const struct dtn_call *call, int i, int j)
{
    return dtensor_dtype_size(call->dtype)
         * (call->counts ? call->counts[i * call->n + j] : call->count);
}

struct dtn_range dtn_sent(const struct dtn_call *call, int i, int j)
{
    struct dtn_range range = { 0, pair_bytes(call, i, j) };

    for (int q = 0; q < j; q++)
        range.offset += pair_bytes(call, i, q);
    return range;
}

struct dtn_range dtn_received(const struct dtn_call *call, int i, int j)
{
    struct dtn_range range = { 0, pair_bytes(call, i, j) };

    for (int q = 0; q < i; q++)
        range.offset += pair_bytes(call, q, j);
    return range;
}

size_t dtn_call_edge_bytes(const struct dtn_call *call)
{
    bool pairs = call->coll == DTN_COLL_ALL_TO_ALL;
    int n = pairs ? call->n * call->n : call->n;
    size_t most = call->counts ? 0 : call->count;

    for (int i = 0; call->counts && i < n; i++)
        if (call->counts[i] > most)
            most = call->counts[i];
    return most * dtensor_dtype_size(call->dtype);
}

size_t dtn_call_bytes(const struct dtn_call *call)
{
    bool blocks = call->coll == DTN_COLL_ALLGATHER
               || call->coll == DTN_COLL_REDUCE_SCATTER
               || call->coll == DTN_COLL_ALL_TO_ALL;

    return dtn_call_edge_bytes(call) * (blocks ? (size_t)call->n : 1);
}

void dtn_emit_begin(struct dtn_sched *sched, const char *name,
                    const struct dtn_call *call)
{
    size_t whole = call->count * dtensor_dtype_size(call->dtype);
    size_t blocks = 0, mine = 0, in = whole, out = whole;
    int n = call->n, me = call->me;

    if (call->coll == DTN_COLL_ALLGATHER
        || call->coll == DTN_COLL_REDUCE_SCATTER) {
        blocks = dtn_blocks(call, 0, n).bytes;
        mine = dtn_block(call, me).bytes;
        in = call->coll == DTN_COLL_ALLGATHER ? mine : blocks;
        out = call->coll == DTN_COLL_ALLGATHER ? blocks : mine;
    } else if (call->coll == DTN_COLL_ALL_TO_ALL) {
        in = dtn_sent(call, me, n - 1).offset + dtn_sent(call, me, n - 1).bytes;
        out = dtn_received(call, n - 1, me).offset
            + dtn_received(call, n - 1, me).bytes;
    } else if (call->coll == DTN_COLL_REDUCE) {
        out = me == call->root ? whole : 0;
    } else if (call->coll == DTN_COLL_BROADCAST) {
        in = me == call->root ? whole : 0;
    } else if (call->coll == DTN_COLL_BARRIER) {
        in = out = 0;
    }
    dtn_sched_init(sched, name, n, me, call->dtype, call->redop);
    sched->bytes[DTN_IN] = in;
    sched->bytes[DTN_OUT] = out;
}

int dtn_emit_end(struct dtn_sched *sched, struct dtensor_error *err)
{
    int rc = dtn_sched_finish(sched, err);

    if (rc != 0)
        dtn_sched_fini(sched);
    return rc;
}

void dtn_emit_signal_all(struct dtn_sched *sched, const struct dtn_call *call,
                         enum dtn_tag tag)
{
    for (int i = 1; i < call->n; i++)
        dtn_sched_signal(sched, dtn_around(call, i), tag);
}

void dtn_emit_wait_all(struct dtn_sched *sched, const struct dtn_call *call,
                       enum dtn_tag tag)
{
    for (int i = 1; i < call->n; i++)
        dtn_sched_wait(sched, dtn_around(call, -i), tag);
}

void dtn_emit_average(struct dtn_sched *sched, const struct dtn_call *call,
                      struct dtn_range range)
{
    if (call->redop == DTENSOR_AVG && call->n > 1)
        dtn_sched_scale(sched, dtn_at(call->me, DTN_OUT, range.offset),
                        range.bytes);
}
