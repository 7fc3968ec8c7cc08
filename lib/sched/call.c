/* call.c - what the buffers of a collective hold
 *
 * One table has a row for each collective.  A buffer holds nothing, one block,
 * or one block for each rank, and may exist at the root only.  An allgather
 * over 4 ranks with count 10 reads one block of 10 elements and writes four
 * blocks; a gather writes them at the root only.  With counts {3, 0, 2, 5} rank
 * 2 reads 2 elements, and 10 elements are written.
 */
#include "sched/call.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/reduce.h"
#include "base/units.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

const struct dtn_coll_info dtn_coll_infos[DTN_NCOLLS] = {
    [DTN_COLL_ALLREDUCE] = { .name = "allreduce", .in = DTN_HOLDS_ONE,
        .out = DTN_HOLDS_ONE, .reduces = true, .in_place = true },
    [DTN_COLL_REDUCE] = { .name = "reduce", .in = DTN_HOLDS_ONE,
        .out = DTN_HOLDS_ONE, .out_at_root = true, .reduces = true,
        .in_place = true },
    [DTN_COLL_BROADCAST] = { .name = "broadcast", .in = DTN_HOLDS_ONE,
        .in_at_root = true, .out = DTN_HOLDS_ONE, .in_place = true },
    [DTN_COLL_ALLGATHER] = { .name = "allgather", .in = DTN_HOLDS_ONE,
        .out = DTN_HOLDS_EACH, .in_place = true },
    [DTN_COLL_REDUCE_SCATTER] = { .name = "reduce_scatter",
        .in = DTN_HOLDS_EACH, .out = DTN_HOLDS_ONE, .reduces = true,
        .in_place = true },
    [DTN_COLL_ALL_TO_ALL] = { .name = "all_to_all", .in = DTN_HOLDS_EACH,
        .out = DTN_HOLDS_EACH },
    [DTN_COLL_GATHER] = { .name = "gather", .in = DTN_HOLDS_ONE,
        .out = DTN_HOLDS_EACH, .out_at_root = true, .in_place = true },
    [DTN_COLL_SCATTER] = { .name = "scatter", .in = DTN_HOLDS_EACH,
        .in_at_root = true, .out = DTN_HOLDS_ONE, .in_place = true },
    [DTN_COLL_BARRIER] = { .name = "barrier" },
    [DTN_COLL_PAIRS] = { .name = "send/recv" },
    [DTN_COLL_EXCHANGE] = { .name = "redistribute" },
};

const char *dtn_coll_name(enum dtn_coll coll)
{
    return (unsigned)coll < DTN_NCOLLS ? dtn_coll_infos[coll].name : "?";
}

bool dtn_call_blocked(const struct dtn_call *call)
{
    return dtn_coll_infos[call->coll].in == DTN_HOLDS_EACH
        || dtn_coll_infos[call->coll].out == DTN_HOLDS_EACH;
}

/* The sum of n counts in bytes; false if it overflows memory. */
static bool sum_bytes(const struct dtn_call *call, const size_t counts[],
                      int n, size_t *bytes)
{
    size_t elems = 0;

    if (!counts && !dtn_mul_size(call->count, (size_t)n, &elems))
        return false;
    for (int r = 0; counts && r < n; r++)
        if (!dtn_add_size(elems, counts[r], &elems))
            return false;
    return dtn_mul_size(elems, dtensor_dtype_size(call->dtype), bytes)
        && *bytes <= PTRDIFF_MAX;
}

/* Bytes up to the end of the last edge. */
static size_t edges_end(const struct dtn_call *call, enum dtn_space space)
{
    size_t end = 0;

    for (int i = 0; i < call->nedges; i++) {
        const struct dtn_range *range = space == DTN_IN
            ? &call->edges[i].sent : &call->edges[i].received;

        if (range->offset + range->bytes > end)
            end = range->offset + range->bytes;
    }
    return end;
}

bool dtn_call_bytes_of(const struct dtn_call *call, enum dtn_space space,
                       size_t *bytes)
{
    const struct dtn_coll_info *shape = &dtn_coll_infos[call->coll];
    bool in = space == DTN_IN;
    const size_t *counts = in || call->coll != DTN_COLL_ALL_TO_ALL
                         ? call->counts : call->recv_counts;

    *bytes = edges_end(call, space);
    if ((in ? shape->in_at_root : shape->out_at_root)
        && call->me != call->root)
        return true;
    switch (in ? shape->in : shape->out) {
    case DTN_HOLDS_NONE:
        return true;
    case DTN_HOLDS_ONE:
        return sum_bytes(call, counts ? counts + call->me : NULL, 1, bytes);
    case DTN_HOLDS_EACH:
        return sum_bytes(call, counts, call->n, bytes);
    }
    return false;
}

/* Messages with private counts count as large. */
size_t dtn_call_edge_bytes(const struct dtn_call *call)
{
    size_t most = call->counts ? 0 : call->count;

    if (dtn_call_private(call))
        return SIZE_MAX;
    for (int r = 0; call->counts && r < call->n; r++)
        if (call->counts[r] > most)
            most = call->counts[r];
    return most * dtensor_dtype_size(call->dtype);
}

size_t dtn_call_bytes(const struct dtn_call *call)
{
    size_t bytes = SIZE_MAX;

    sum_bytes(call, dtn_call_private(call) ? NULL : call->counts,
              dtn_call_blocked(call) ? call->n : 1, &bytes);
    return bytes;
}

size_t dtn_call_own_bytes(const struct dtn_call *call)
{
    size_t in, out;

    if (!dtn_call_private(call))
        return dtn_call_bytes(call);
    dtn_call_bytes_of(call, DTN_IN, &in);
    dtn_call_bytes_of(call, DTN_OUT, &out);
    return in > out ? in : out;
}

/* ------------------------------------------------------------ arguments --- */

bool dtn_call_fits(const struct dtn_call *call, const void *in, const void *out,
                   const size_t bytes[])
{
    const struct dtn_coll_info *shape = &dtn_coll_infos[call->coll];
    uintptr_t a = (uintptr_t)in, b = (uintptr_t)out;
    size_t own = 0;

    if (call->coll == DTN_COLL_PAIRS      /* message.c checks each message    */
        || bytes[DTN_IN] == 0 || bytes[DTN_OUT] == 0
        || a + bytes[DTN_IN] <= b || b + bytes[DTN_OUT] <= a)
        return true;
    if (dtn_call_blocked(call))
        sum_bytes(call, call->counts, call->me, &own);
    return shape->in_place
        && (shape->out == DTN_HOLDS_EACH ? a == b + own : b == a + own);
}

static int check_counts(const struct dtn_call *call, const char *name,
                        struct dtensor_error *err)
{
    bool pairs = call->coll == DTN_COLL_ALL_TO_ALL;
    size_t bytes;

    if (call->counts && !dtn_call_blocked(call))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: takes a count, but was given "
                        "one for each rank (counts must be NULL)", name);
    if (pairs ? !call->counts != !call->recv_counts : call->recv_counts != NULL)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: counts of what is sent and "
                        "of what is received go together, and with all_to_all "
                        "only", name);
    if (pairs && call->counts
        && call->counts[call->me] != call->recv_counts[call->me])
        return dtn_fail(err, DTENSOR_EINVAL, "%s: position %d sends itself %zu "
                        "elements, but receives %zu", name, call->me,
                        call->counts[call->me], call->recv_counts[call->me]);
    if (!sum_bytes(call, call->counts, dtn_call_blocked(call) ? call->n : 1,
                   &bytes)
        || (call->recv_counts
            && !sum_bytes(call, call->recv_counts, call->n, &bytes)))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %zu%s elements of %s for %d "
                        "ranks overflow memory", name, call->counts
                        ? call->counts[0] : call->count, call->counts
                        ? ", ..." : "", dtensor_dtype_name(call->dtype),
                        call->n);
    return 0;
}

static int check_buffers(const struct dtn_call *call, const char *name,
                         const void *in, const void *out,
                         struct dtensor_error *err)
{
    size_t bytes[DTN_NSPACES];

    dtn_call_bytes_of(call, DTN_IN, &bytes[DTN_IN]);
    dtn_call_bytes_of(call, DTN_OUT, &bytes[DTN_OUT]);
    if ((bytes[DTN_IN] && !in) || (bytes[DTN_OUT] && !out))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: the buffer `%s` is NULL, but "
                        "%zu bytes are to %s", name, bytes[DTN_IN] && !in
                        ? "in" : "out", bytes[bytes[DTN_IN] && !in ? DTN_IN
                                                                   : DTN_OUT],
                        bytes[DTN_IN] && !in ? "be sent" : "come");
    if (!dtn_call_fits(call, in, out, bytes))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: in and out overlap (they "
                        "may only be in place as dtensor_%s(3) says)", name,
                        name);
    return 0;
}

int dtn_call_check_form(const struct dtn_call *call, int rank,
                        struct dtensor_error *err)
{
    const char *name = dtn_coll_name(call->coll);

    if ((unsigned)call->coll > DTN_COLL_PAIRS)
        return dtn_fail(err, DTENSOR_EINVAL, "call: there is no collective %d "
                        "(see enum dtensor_collective)", (int)call->coll);
    if (call->me < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: rank %d is not in this mesh "
                        "of %d ranks (only its members call)", name, rank,
                        call->n);
    if (!dtn_dtype_ok(call->dtype))
        return dtn_fail(err, DTENSOR_EINVAL, "%s: there is no dtype %d", name,
                        (int)call->dtype);
    if (call->root < 0 || call->root >= call->n)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: root %d is not a position "
                        "of the mesh; expected 0 to %d", name, call->root,
                        call->n - 1);
    return check_counts(call, name, err);
}

int dtn_call_check(const struct dtn_call *call, int rank, const void *in,
                   const void *out, struct dtensor_error *err)
{
    int rc = dtn_call_check_form(call, rank, err);

    return rc != 0 ? rc : check_buffers(call, dtn_coll_name(call->coll), in,
                                        out, err);
}

struct dtn_reduction dtn_call_reduction(const struct dtn_call *call)
{
    struct dtn_reduction how;

    if (!call->made) {
        how = dtn_reduction(call->dtype, call->redop, call->n);
        how.divisor = call->divisor ? call->divisor : how.divisor;
        return how;
    }
    how = dtn_reduction(call->dtype, DTENSOR_SUM, call->n);
    if (call->made->fn) {
        how.fn = call->made->fn;
        how.arg = call->made->arg;
    } else {
        how.factor = call->made->factor;
    }
    return how;
}
