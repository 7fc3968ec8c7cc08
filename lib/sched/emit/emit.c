/* emit.c - how a call's buffers are cut into blocks
 *
 * There are two cuts.  A buffer that the caller gave in blocks (the shares of
 * an all-gather) keeps those blocks: counts {3, 0, 2} of f32 begin at bytes 0,
 * 12 and 12.  A single buffer (of an allreduce) is cut on cache lines, so that
 * no two ranks write the same line: 37 f32 are 148 bytes or 3 lines, for two
 * ranks bytes 0..127 and 128..147.
 */
#include "sched/emit/emit.h"
#include "base/compiler.h"
#include "base/reduce.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "dtensor.h"

struct dtn_range dtn_range_split(size_t bytes, int n, int i)
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

/* Blocks first .. first+count-1, by `counts` or of `count` elements each.
 * `starts` has their offsets; if it is NULL they are summed here.
 */
static struct dtn_range blocks_of(const struct dtn_call *call,
                                  const size_t counts[],
                                  const size_t starts[], int first, int count)
{
    size_t elem_bytes = dtensor_dtype_size(call->dtype);
    struct dtn_range range = { (size_t)first * call->count,
                               (size_t)count * call->count };

    if (counts && starts)
        range = (struct dtn_range){ starts[first],
                                    starts[first + count] - starts[first] };
    else if (counts)
        range = (struct dtn_range){ 0, 0 };
    for (int r = 0; counts && !starts && r < first + count; r++)
        *(r < first ? &range.offset : &range.bytes) += counts[r];
    range.offset *= elem_bytes;
    range.bytes *= elem_bytes;
    return range;
}

struct dtn_range dtn_call_blocks(const struct dtn_call *call, int first,
                                 int count)
{
    return blocks_of(call, call->counts, call->starts, first, count);
}

struct dtn_range dtn_call_block(const struct dtn_call *call, int r)
{
    if (dtn_call_blocked(call))
        return dtn_call_blocks(call, r, 1);
    return dtn_range_split(call->count * dtensor_dtype_size(call->dtype),
                           call->n, r);
}

/* Neighbouring blocks are contiguous, so the first and the last give the size.
 */
size_t dtn_call_blocks_bytes(const struct dtn_call *call, int first, int count)
{
    const int n = call->n, begin = (first + n) % n, last = begin + count - 1;
    const struct dtn_range end = dtn_call_block(call,
                                                count > 0 ? last % n : begin);
    size_t bytes = end.offset + end.bytes - dtn_call_block(call, begin).offset;

    if (count == 0)
        return 0;
    if (last >= n) {
        const struct dtn_range whole = dtn_call_block(call, n - 1);

        bytes += whole.offset + whole.bytes;
    }
    return bytes;
}

struct dtn_range dtn_call_sent(const struct dtn_call *call, int to)
{
    return blocks_of(call, call->counts, call->starts, to, 1);
}

struct dtn_range dtn_call_received(const struct dtn_call *call, int from)
{
    return blocks_of(call, call->recv_counts, call->recv_starts, from, 1);
}

struct dtn_range dtn_call_other_blocks(const struct dtn_call *call)
{
    struct dtn_range others = { 0, 0 };

    for (int r = 0; r < call->n; r++)
        if (r != call->me)
            others = dtn_range_hull(others, dtn_call_block(call, r));
    return others;
}

void dtn_emit_begin(struct dtn_sched *sched, const char *name,
                    const struct dtn_call *call)
{
    dtn_sched_init(sched, name, call->n, call->me, call->dtype, DTENSOR_SUM);
    if (dtn_coll_infos[call->coll].reduces)
        sched->reduction = dtn_call_reduction(call);
    sched->eager_bytes = dtn_eager_bytes(call->eager_bytes);
    dtn_call_bytes_of(call, DTN_IN, &sched->bytes[DTN_IN]);
    dtn_call_bytes_of(call, DTN_OUT, &sched->bytes[DTN_OUT]);
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
        dtn_sched_signal(sched, dtn_neighbour(call, i), tag);
}

void dtn_emit_wait_all(struct dtn_sched *sched, const struct dtn_call *call,
                       enum dtn_tag tag)
{
    for (int i = 1; i < call->n; i++)
        dtn_sched_wait(sched, dtn_neighbour(call, -i), tag);
}

void dtn_emit_flush_all(struct dtn_sched *sched, const struct dtn_call *call)
{
    for (int i = 1; i < call->n; i++)
        dtn_sched_flush(sched, dtn_neighbour(call, i));
}

void dtn_emit_put_all(struct dtn_sched *sched, const struct dtn_call *call)
{
    const struct dtn_range mine = dtn_call_block(call, call->me);

    for (int i = 1; i < call->n; i++) {
        int peer = dtn_neighbour(call, i);

        dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, mine.offset),
                      dtn_span_at(call->me, DTN_OUT, mine.offset), mine.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_emit_wait_all(sched, call, DTN_TAG_DATA);
    dtn_emit_flush_all(sched, call);
}

struct dtn_span dtn_emit_term(struct dtn_sched *sched, struct dtn_span own,
                              struct dtn_span room, size_t bytes)
{
    if (!dtn_reduction_converts(&sched->reduction))
        return own;
    dtn_sched_copy(sched, room, own, bytes);
    return room;
}

size_t dtn_emit_term_bytes(const struct dtn_sched *sched, size_t bytes)
{
    return dtn_reduction_converts(&sched->reduction) ? bytes : 0;
}

size_t dtn_emit_partial_bytes(const struct dtn_sched *sched, size_t bytes)
{
    return bytes * dtn_reduction_ratio(&sched->reduction);
}

void dtn_emit_alone(struct dtn_sched *sched)
{
    dtn_sched_fold(sched, dtn_span_at(sched->me, DTN_OUT, 0),
                   dtn_span_at(-1, DTN_IN, 0), sched->bytes[DTN_OUT]);
}

uint64_t dtn_emit_match_bits(const struct dtn_call *call, int peer)
{
    const size_t size = dtensor_dtype_size(call->dtype);
    uint64_t sent, received;

    if (!dtn_call_private(call))
        return 0;
    sent = call->counts[peer] * size;
    received = call->recv_counts[peer] * size;
    return call->me < peer ? dtn_fingerprint_blocks(sent, received)
                           : dtn_fingerprint_blocks(received, sent);
}
