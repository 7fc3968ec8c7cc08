/* emitters.c - the table of algorithms and their costs
 *
 * A row is an emitter, the reach it needs (which ranks can load from which),
 * and its cost on the busiest rank in units of the call: LEVELS = log2(n)
 * rounded up, OTHERS = n-1, whole = bytes of the largest buffer, block = bytes
 * of one rank's part, chunk = bytes that are moved at once.  Example: the
 * ring's all-gather has 1 + (n-1) hops one after another and moves n-1 blocks;
 * over 4 ranks with 256 KiB each that is 4 hops and 768 KiB. model.c converts
 * the cost to nanoseconds.
 *
 * For unequal blocks mostly the sum counts.  If one block passes a rank several
 * times, as the largest does n-1 times if its owner puts it to all others, the
 * row says how often.
 *
 * A row also has the scratch of the rank that needs most: TMP, ACC.
 *
 * A hierarchy has two costs: over the ranks of one host, and over the hosts for
 * what one of these ranks forwards.
 */
#include "sched/emit/emit.h"
#include "sched/emitters.h"
#include "transport/transport.h"

#include <stdbool.h>

#define ANY_BYTES SIZE_MAX            /* private counts, too                  */
#define KNOWN_BYTES (SIZE_MAX - 1)

#define KIB ((size_t)1 << 10)

/* Terms of a weight: constant, per level of a tree, per peer. */
#define ONE(x) { .constant = x }
#define LEVELS(x) { .log2n = x }
#define OTHERS(x) { .per_peer = x }

#define ROW(coll_, name_, algorithm_, needs_, max_)                           \
    .coll = DTN_COLL_ ## coll_, .name = name_,                                \
    .algorithm = DTN_ALG_ ## algorithm_, .needs = DTN_REACH_ ## needs_,       \
    .max_bytes = max_

const struct dtn_emitter dtn_emitters[] = {
    { ROW(ALLREDUCE, "eager", DIRECT, PUT, DTN_EAGER_MAX),
      .emit = dtn_emit_allreduce_eager, .weight = {
        .overlaps = 1,
        .hops = ONE(1), .messages = OTHERS(1),
        .moved.whole = OTHERS(1),
        .folded.whole = { .constant = 1, .per_peer = 1 },
        .copied.whole = { .constant = 1, .per_peer = 1 },
        .tmp.whole = OTHERS(1) } },
    { ROW(ALLREDUCE, "direct", DIRECT, MAP, ANY_BYTES),
      .emit = dtn_emit_allreduce_direct, .weight = {
        .hops = ONE(2), .messages = OTHERS(3),
        .moved.block = OTHERS(2), .folded.whole = ONE(1) } },
    { ROW(ALLREDUCE, "device", DEVICE, DEVICE, ANY_BYTES),
      .emit = dtn_emit_allreduce_device, .weight = {
        .waits = 2, .hops = ONE(2), .messages = OTHERS(3),
        .moved.block = OTHERS(2), .folded.whole = ONE(1) } },
    { ROW(ALLREDUCE, "stream", STREAM, DEVICE, ANY_BYTES),
      .emit = dtn_emit_allreduce_stream, .weight = {
        .waits = 1, .hops = ONE(2), .messages = OTHERS(3),
        .moved.block = OTHERS(2), .folded.whole = ONE(1) } },
    { ROW(ALLREDUCE, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_allreduce_put, .weight = {
        .incast = true, .overlaps = 1,
        .hops = ONE(3), .messages = OTHERS(4), .puts = OTHERS(1),
        .offers = OTHERS(1),
        .moved.block = OTHERS(2),
        .folded.block = OTHERS(2), .copied.block = ONE(1),
        .tmp.block = OTHERS(1) } },
    { ROW(ALLREDUCE, "ring", RING, PUT, ANY_BYTES),
      .emit = dtn_emit_allreduce_ring, .weight = {
        .senders = DTN_SENDERS_LOCKSTEP,
        .hops = { .constant = 1, .per_peer = 2 },
        .messages = OTHERS(1), .each_chunk = OTHERS(4),
        .chunk = { DTN_UNIT_BLOCK, 128 * KIB, 4 },
        .moved.block = OTHERS(2), .folded.block = OTHERS(2),
        .copied.block = ONE(1),
        .acc.block = ONE(2), .converted.block = ONE(1) } },
    { ROW(ALLREDUCE, "tree", TREE, PUT, ANY_BYTES),
      .emit = dtn_emit_allreduce_tree, .weight = {
        .senders = DTN_SENDERS_ONE,
        .hops = LEVELS(2), .messages = { .constant = 1, .log2n = 1 },
        .message = DTN_UNIT_WHOLE,
        .moved.whole = LEVELS(2), .fanned = LEVELS(1),
        .folded.whole = LEVELS(2), .copied.whole = ONE(1),
        .acc.whole = LEVELS(1) } },
    { ROW(ALLREDUCE, "twotree", TWOTREE, PUT, ANY_BYTES),
      .emit = dtn_emit_allreduce_twotree, .weight = {
        .senders = DTN_SENDERS_TWO, .overlaps = 1, .stalls = 1.15,
        .hops = { .constant = 1, .log2n = 2 },
        .messages = { .constant = -11, .log2n = 6 },
        .each_chunk = ONE(10), .chunk = { DTN_UNIT_HALF, 32 * KIB, 64 },
        .moved = { .whole = ONE(2), .chunk = LEVELS(4) },
        .folded = { .whole = ONE(2), .chunk = LEVELS(2) },
        .acc.chunk = ONE(4), .converted.chunk = ONE(4) } },
    { ROW(ALLREDUCE, "doubling", DOUBLING, PUT, ANY_BYTES),
      .emit = dtn_emit_allreduce_doubling, .weight = {
        .hops = { .log2n = 1, .not_power_of_two = 1 },
        .message = DTN_UNIT_WHOLE,
        .messages = { .log2n = 1, .not_power_of_two = 1 },
        .moved.whole = { .log2n = 1, .not_power_of_two = 1 },
        .folded.whole = LEVELS(2), .copied.whole = ONE(1),
        .acc.whole = ONE(4) } },
    { ROW(ALLREDUCE, "halving", HALVING, PUT, ANY_BYTES),
      .emit = dtn_emit_allreduce_halving, .weight = {
        .senders = DTN_SENDERS_SHIFT,
        .hops = { .constant = 2, .log2n = 2 }, .messages = LEVELS(7),
        .moved.block = OTHERS(2), .thinned = 2,
        .folded.block = OTHERS(2),
        .copied.block = ONE(1),
        .acc.block = OTHERS(1), .converted.whole = ONE(1) } },
    { ROW(ALLREDUCE, "hierarchical", HIERARCHICAL, HOST, ANY_BYTES),
      .emit = dtn_emit_allreduce_hierarchical, .hides = 0.5, .weight = {
        .hops = ONE(4), .messages = OTHERS(4),
        .moved.block = OTHERS(2), .folded.whole = ONE(1) }, .between_hosts = {
        .incast = true, .overlaps = 1, .hops = ONE(3), .messages = OTHERS(4),
        .puts = OTHERS(1), .offers = OTHERS(1),
        .moved.block = OTHERS(2), .folded.block = OTHERS(2),
        .acc.whole = ONE(2) } },
    { ROW(ALLREDUCE, "rail-doubling", RAILS, HOST, ANY_BYTES),
      .hosts = DTN_HOSTS_SEVERAL,
      .emit = dtn_emit_allreduce_rail_doubling, .weight = {
        .hops = ONE(4), .messages = OTHERS(4),
        .moved.block = OTHERS(2), .folded.whole = ONE(1) }, .between_hosts = {
        .senders = DTN_SENDERS_SHIFT,
        .hops = { .log2n = 1, .not_power_of_two = 1 },
        .message = DTN_UNIT_WHOLE,
        .messages = { .log2n = 1, .not_power_of_two = 1 },
        .moved.whole = { .log2n = 1, .not_power_of_two = 1 },
        .folded.whole = LEVELS(2), .copied.whole = ONE(1),
        .acc.whole = ONE(5) } },
    { ROW(ALLREDUCE, "rail-halving", RAILS, HOST, ANY_BYTES),
      .hosts = DTN_HOSTS_SEVERAL,
      .emit = dtn_emit_allreduce_rail_halving, .weight = {
        .hops = ONE(4), .messages = OTHERS(4),
        .moved.block = OTHERS(2), .folded.whole = ONE(1) }, .between_hosts = {
        .senders = DTN_SENDERS_SHIFT,
        .hops = { .constant = 1, .log2n = 2 }, .messages = LEVELS(6),
        .moved.block = OTHERS(2), .thinned = 2,
        .folded.block = OTHERS(2), .copied.block = ONE(1),
        .acc = { .whole = ONE(1), .block = OTHERS(1) },
        .converted.whole = ONE(1) } },

    { ROW(REDUCE, "eager", DIRECT, PUT, DTN_EAGER_MAX),
      .emit = dtn_emit_reduce_eager, .weight = {
        .senders = DTN_SENDERS_ONE, .overlaps = 1,
        .hops = ONE(1), .messages = ONE(1), .moved.whole = OTHERS(1),
        .folded.whole = { .constant = 1, .per_peer = 1 },
        .copied.whole = { .constant = 1, .per_peer = 1 },
        .tmp.whole = OTHERS(1) } },
    { ROW(REDUCE, "direct", DIRECT, MAP, ANY_BYTES),
      .emit = dtn_emit_reduce_direct, .weight = {
        .hops = ONE(2), .messages = OTHERS(2),
        .moved.block = { .constant = 1, .per_peer = 1 }, .folded.whole = ONE(1),
        .tmp.block = ONE(1) } },
    { ROW(REDUCE, "device", DEVICE, DEVICE, ANY_BYTES),
      .emit = dtn_emit_reduce_device, .weight = {
        .waits = 2, .hops = ONE(3), .messages = OTHERS(2),
        .moved.block = { .constant = 1, .per_peer = 1 }, .folded.whole = ONE(1),
        .tmp.block = ONE(1) } },
    { ROW(REDUCE, "stream", STREAM, DEVICE, ANY_BYTES),
      .emit = dtn_emit_reduce_stream, .weight = {
        .waits = 1, .hops = ONE(3), .messages = OTHERS(2),
        .moved.block = { .constant = 1, .per_peer = 1 }, .folded.whole = ONE(1),
        .tmp.block = ONE(1) } },
    { ROW(REDUCE, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_put, .weight = {
        .incast = true, .overlaps = 1,
        .hops = ONE(3), .messages = OTHERS(2), .puts = OTHERS(1),
        .offers = OTHERS(1),
        .moved.block = OTHERS(1), .rooted.block = OTHERS(1),
        .folded.block = OTHERS(2),
        .tmp.block = { .constant = 1, .per_peer = 1 } } },
    { ROW(REDUCE, "ring", RING, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_ring, .weight = {
        .senders = DTN_SENDERS_LOCKSTEP,
        .hops = { .constant = 1, .per_peer = 1 },
        .each_chunk = ONE(3), .chunk = { DTN_UNIT_WHOLE, 64 * KIB, 64 },
        .moved = { .whole = ONE(1),
                   .chunk = { .constant = -1, .per_peer = 1 } },
        .folded = { .whole = ONE(2),
                    .chunk = { .constant = -2, .per_peer = 2 } },
        .acc.chunk = ONE(2) } },
    { ROW(REDUCE, "tree", TREE, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_tree, .weight = {
        .senders = DTN_SENDERS_ONE,
        .hops = LEVELS(1), .messages = LEVELS(1), .message = DTN_UNIT_WHOLE,
        .moved.whole = LEVELS(1), .folded.whole = LEVELS(2),
        .copied.whole = ONE(1),
        .acc.whole = LEVELS(1) } },
    { ROW(REDUCE, "twotree", TWOTREE, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_twotree, .weight = {
        .senders = DTN_SENDERS_TWO, .overlaps = 1, .stalls = 1.45,
        .hops = { .constant = 1, .log2n = 1 },
        .messages = { .constant = -5, .log2n = 2 },
        .each_chunk = ONE(6), .chunk = { DTN_UNIT_HALF, 32 * KIB, 64 },
        .moved = { .whole = ONE(1), .chunk = LEVELS(2) },
        .folded = { .whole = ONE(2), .chunk = LEVELS(2) },
        .acc.chunk = ONE(4), .converted.chunk = ONE(4) } },
    { ROW(REDUCE, "hierarchical", HIERARCHICAL, HOST, ANY_BYTES),
      .emit = dtn_emit_reduce_hierarchical, .hides = 0.5, .weight = {
        .hops = ONE(4), .messages = OTHERS(3),
        .moved.block = OTHERS(2), .folded.whole = ONE(1) }, .between_hosts = {
        .incast = true, .overlaps = 1, .hops = ONE(3), .messages = OTHERS(2),
        .puts = OTHERS(1), .offers = OTHERS(1),
        .moved.block = OTHERS(2), .folded.block = OTHERS(2),
        .acc.whole = ONE(3) } },
    { ROW(REDUCE, "rail-twotree", RAILS, HOST, ANY_BYTES),
      .hosts = DTN_HOSTS_SEVERAL,
      .emit = dtn_emit_reduce_rail_twotree, .hides = 1, .weight = {
        .hops = ONE(2), .messages = OTHERS(2),
        .moved.block = { .constant = 1, .per_peer = 1 },
        .folded.whole = ONE(1) }, .between_hosts = {
        .senders = DTN_SENDERS_TREES, .overlaps = 1,
        .hops = { .constant = 1, .log2n = 1 },
        .messages = { .constant = -5, .log2n = 2 },
        .each_chunk = ONE(4.5), .chunk = { DTN_UNIT_HALF, 4 * KIB, 64 },
        .moved = { .whole = ONE(1), .chunk = LEVELS(2) },
        .folded = { .whole = ONE(2), .chunk = LEVELS(2) },
        .acc.chunk = ONE(10), .tmp.chunk = ONE(2) } },

    { ROW(BROADCAST, "eager", DIRECT, PUT, DTN_EAGER_MAX),
      .emit = dtn_emit_broadcast_eager, .weight = {
        .senders = DTN_SENDERS_ROOT, .overlaps = 1,
        .hops = ONE(1), .messages = OTHERS(1), .moved.whole = OTHERS(1),
        .copied.whole = ONE(1) } },
    { ROW(BROADCAST, "direct", DIRECT, MAP, ANY_BYTES),
      .emit = dtn_emit_broadcast_direct, .weight = {
        .hops = ONE(2), .messages = OTHERS(3), .moved.block = OTHERS(1) } },
    { ROW(BROADCAST, "device", DEVICE, DEVICE, ANY_BYTES),
      .emit = dtn_emit_broadcast_device, .weight = {
        .waits = 2, .hops = ONE(2), .messages = OTHERS(3),
        .moved.block = OTHERS(1) } },
    { ROW(BROADCAST, "stream", STREAM, DEVICE, ANY_BYTES),
      .emit = dtn_emit_broadcast_stream, .weight = {
        .waits = 1, .hops = ONE(2), .messages = OTHERS(3),
        .moved.block = OTHERS(1) } },
    { ROW(BROADCAST, "ring", RING, PUT, ANY_BYTES),
      .emit = dtn_emit_broadcast_ring, .weight = {
        .hops = { .constant = 1, .per_peer = 1 }, .senders = DTN_SENDERS_RING,
        .each_chunk = ONE(2), .chunk = { DTN_UNIT_WHOLE, 64 * KIB, 64 },
        .moved = { .whole = ONE(1),
                   .chunk = { .constant = -1, .per_peer = 1 } } } },
    { ROW(BROADCAST, "tree", TREE, PUT, ANY_BYTES),
      .emit = dtn_emit_broadcast_tree, .weight = {
        .senders = DTN_SENDERS_ONE,
        .hops = LEVELS(1), .messages = LEVELS(1), .message = DTN_UNIT_WHOLE,
        .moved.whole = LEVELS(1), .fanned = LEVELS(1) } },
    { ROW(BROADCAST, "twotree", TWOTREE, PUT, ANY_BYTES),
      .emit = dtn_emit_broadcast_twotree, .weight = {
        .senders = DTN_SENDERS_TWO, .overlaps = 1, .stalls = 1.35,
        .hops = { .constant = 1, .log2n = 1 },
        .messages = { .constant = -4, .log2n = 4 },
        .each_chunk = ONE(4), .chunk = { DTN_UNIT_HALF, 32 * KIB, 64 },
        .moved = { .whole = ONE(1), .chunk = LEVELS(2) } } },
    { ROW(BROADCAST, "hierarchical", HIERARCHICAL, HOST, ANY_BYTES),
      .emit = dtn_emit_broadcast_hierarchical, .weight = {
        .hops = ONE(3), .messages = OTHERS(2), .moved.whole = ONE(1) },
      .between_hosts = {
        .incast = true, .overlaps = 1, .hops = ONE(2.5),
        .offers = OTHERS(1),
        .messages = { .constant = -1, .per_peer = 4 },
        .puts = { .constant = -1, .per_peer = 2 },
        .moved.block = { .constant = -1, .per_peer = 3 } } },
    { ROW(BROADCAST, "rail-twotree", RAILS, HOST, ANY_BYTES),
      .hosts = DTN_HOSTS_SEVERAL,
      .emit = dtn_emit_broadcast_rail_twotree, .hides = 1, .weight = {
        .hops = ONE(2), .messages = OTHERS(2), .moved.whole = ONE(1) },
      .between_hosts = {
        .senders = DTN_SENDERS_TREES, .overlaps = 1,
        .hops = { .constant = 1, .log2n = 1 },
        .messages = { .constant = -4, .log2n = 4 },
        .each_chunk = ONE(4), .chunk = { DTN_UNIT_HALF, 4 * KIB, 64 },
        .moved = { .whole = ONE(1), .chunk = LEVELS(2) } } },

    { ROW(ALLGATHER, "eager", DIRECT, PUT, DTN_EAGER_MAX),
      .emit = dtn_emit_allgather_eager, .weight = {
        .overlaps = 1,
        .hops = ONE(1), .messages = OTHERS(1), .moved.block = OTHERS(1),
        .copied.block = OTHERS(2),
        .tmp.whole = ONE(1) } },
    { ROW(ALLGATHER, "direct", DIRECT, MAP, ANY_BYTES),
      .emit = dtn_emit_allgather_direct, .weight = {
        .hops = ONE(2), .messages = OTHERS(2), .moved.block = OTHERS(1),
        .copied.block = ONE(1) } },
    { ROW(ALLGATHER, "device", DEVICE, DEVICE, ANY_BYTES),
      .emit = dtn_emit_allgather_device, .weight = {
        .waits = 2, .hops = ONE(2), .messages = OTHERS(2),
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },
    { ROW(ALLGATHER, "stream", STREAM, DEVICE, ANY_BYTES),
      .emit = dtn_emit_allgather_stream, .weight = {
        .waits = 1, .hops = ONE(2), .messages = OTHERS(2),
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },
    { ROW(ALLGATHER, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_allgather_put, .weight = {
        .largest = OTHERS(1),
        .incast = true, .overlaps = 1, .hops = ONE(2), .messages = OTHERS(3),
        .offers = OTHERS(1),
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },
    { ROW(ALLGATHER, "ring", RING, PUT, ANY_BYTES),
      .emit = dtn_emit_allgather_ring, .weight = {
        .largest = OTHERS(1),
        .hops = { .constant = 1, .per_peer = 1 }, .senders = DTN_SENDERS_RING,
        .messages = ONE(1), .each_chunk = OTHERS(2),
        .chunk = { DTN_UNIT_BLOCK, 128 * KIB, 4 },
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },
    { ROW(ALLGATHER, "bruck", BRUCK, PUT, ANY_BYTES),
      .emit = dtn_emit_allgather_bruck, .weight = {
        .senders = DTN_SENDERS_SHIFT,
        .largest = LEVELS(1),
        .hops = LEVELS(1), .messages = LEVELS(1), .message = DTN_UNIT_WHOLE,
        .moved.block = OTHERS(1),
        .copied.block = OTHERS(1),
        .eager_received.whole = ONE(1) } },
    { ROW(ALLGATHER, "hierarchical", HIERARCHICAL, HOST, ANY_BYTES),
      .emit = dtn_emit_allgather_hierarchical, .hides_own = true,
      .weight = {
        .hops = ONE(3), .messages = OTHERS(3), .moved.block = OTHERS(1),
        .copied.block = ONE(1) }, .between_hosts = {
        .incast = true, .overlaps = 1, .hops = ONE(2), .messages = OTHERS(3),
        .offers = OTHERS(1),
        .moved.block = OTHERS(1) } },
    { ROW(ALLGATHER, "rail-bruck", RAILS, HOST, ANY_BYTES),
      .hosts = DTN_HOSTS_SEVERAL,
      .emit = dtn_emit_allgather_rail_bruck, .weight = {
        .hops = ONE(3), .messages = OTHERS(3), .moved.whole = ONE(1) },
      .between_hosts = {
        .senders = DTN_SENDERS_SHIFT,
        .largest = LEVELS(1),
        .hops = LEVELS(1), .messages = LEVELS(1), .message = DTN_UNIT_WHOLE,
        .moved.block = OTHERS(1), .copied.block = OTHERS(2),
        .tmp.whole = ONE(1), .eager_received.whole = ONE(1) } },

    { ROW(REDUCE_SCATTER, "eager", DIRECT, PUT, DTN_EAGER_MAX),
      .emit = dtn_emit_reduce_scatter_eager, .weight = {
        .overlaps = 1,
        .hops = ONE(1), .messages = OTHERS(1), .moved.block = OTHERS(1),
        .folded.whole = ONE(1), .copied.whole = ONE(1),
        .tmp.block = OTHERS(1) } },
    { ROW(REDUCE_SCATTER, "direct", DIRECT, MAP, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_direct, .weight = {
        .largest = OTHERS(1),
        .hops = ONE(2), .messages = OTHERS(2), .moved.block = OTHERS(1),
        .folded.whole = ONE(1) } },
    { ROW(REDUCE_SCATTER, "device", DEVICE, DEVICE, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_device, .weight = {
        .largest = OTHERS(1), .waits = 2,
        .hops = ONE(2), .messages = OTHERS(2), .moved.block = OTHERS(1),
        .folded.whole = ONE(1) } },
    { ROW(REDUCE_SCATTER, "stream", STREAM, DEVICE, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_stream, .weight = {
        .largest = OTHERS(1), .waits = 1,
        .hops = ONE(2), .messages = OTHERS(2), .moved.block = OTHERS(1),
        .folded.whole = ONE(1) } },
    { ROW(REDUCE_SCATTER, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_put, .weight = {
        .largest = OTHERS(1),
        .incast = true, .overlaps = 1, .hops = ONE(2), .messages = OTHERS(3),
        .offers = OTHERS(1),
        .moved.block = OTHERS(1),
        .folded.block = OTHERS(2), .copied.block = ONE(1),
        .tmp.block = OTHERS(1) } },
    { ROW(REDUCE_SCATTER, "ring", RING, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_ring, .weight = {
        .largest = OTHERS(1),
        .senders = DTN_SENDERS_LOCKSTEP,
        .hops = { .constant = 1, .per_peer = 1 },
        .messages = OTHERS(1), .each_chunk = OTHERS(2),
        .chunk = { DTN_UNIT_BLOCK, 128 * KIB, 4 },
        .moved.block = OTHERS(1), .folded.block = OTHERS(2),
        .copied.block = ONE(1),
        .acc.block = ONE(2), .converted.block = ONE(1) } },
    { ROW(REDUCE_SCATTER, "tree", TREE, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_tree, .weight = {
        .senders = DTN_SENDERS_ONE,
        .hops = LEVELS(2),
        .messages = { .constant = 1, .log2n = 1 },
        .message = DTN_UNIT_WHOLE,
        .moved = { .whole = LEVELS(1), .block = OTHERS(1) },
        .folded.whole = LEVELS(2), .copied.block = ONE(1),
        .acc.whole = LEVELS(1) } },
    { ROW(REDUCE_SCATTER, "halving", HALVING, PUT, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_halving, .weight = {
        .senders = DTN_SENDERS_SHIFT,
        .largest = LEVELS(1),
        .hops = { .constant = 1, .log2n = 1 }, .messages = LEVELS(4),
        .moved.block = OTHERS(1), .folded.block = OTHERS(2),
        .copied.block = ONE(1),
        .acc.block = OTHERS(1), .converted.whole = ONE(1) } },
    { ROW(REDUCE_SCATTER, "hierarchical", HIERARCHICAL, HOST, ANY_BYTES),
      .emit = dtn_emit_reduce_scatter_hierarchical, .hides = 1,
      .weight = {
        .messages = OTHERS(1), .moved.block = OTHERS(1),
        .folded.whole = ONE(1) }, .between_hosts = {
        .incast = true, .overlaps = 1, .hops = ONE(2), .messages = OTHERS(3),
        .offers = OTHERS(1),
        .moved.block = OTHERS(1), .folded.block = OTHERS(2),
        .acc.whole = ONE(3) } },
    { ROW(REDUCE_SCATTER, "rail-halving", RAILS, HOST, ANY_BYTES),
      .hosts = DTN_HOSTS_SEVERAL,
      .emit = dtn_emit_reduce_scatter_rail_halving, .weight = {
        .hops = ONE(2), .messages = OTHERS(2), .moved.block = OTHERS(1),
        .folded.whole = ONE(1) }, .between_hosts = {
        .senders = DTN_SENDERS_SHIFT,
        .largest = LEVELS(1),
        .hops = { .constant = 1, .log2n = 1 }, .messages = LEVELS(3),
        .moved.block = OTHERS(1), .folded.block = OTHERS(2),
        .copied.block = ONE(1),
        .acc = { .whole = ONE(1), .block = OTHERS(1) },
        .converted.whole = ONE(1) } },

    { ROW(ALL_TO_ALL, "direct", DIRECT, MAP, ANY_BYTES),
      .emit = dtn_emit_all_to_all_direct, .weight = {
        .hops = ONE(1), .messages = OTHERS(1), .message = DTN_UNIT_BLOCK,
        .moved.block = OTHERS(1), .copied.block = ONE(1),
        .eager_received.block = OTHERS(1) } },
    { ROW(ALL_TO_ALL, "device", DEVICE, DEVICE, ANY_BYTES),
      .emit = dtn_emit_all_to_all_device, .weight = {
        .waits = 2, .hops = ONE(2), .messages = OTHERS(3),
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },
    { ROW(ALL_TO_ALL, "stream", STREAM, DEVICE, KNOWN_BYTES),
      .emit = dtn_emit_all_to_all_stream, .weight = {
        .waits = 1, .hops = ONE(2), .messages = OTHERS(3),
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },
    { ROW(ALL_TO_ALL, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_all_to_all_put, .weight = {
        .incast = true, .overlaps = 1, .hops = ONE(1), .messages = OTHERS(1),
        .message = DTN_UNIT_BLOCK,
        .moved.block = OTHERS(1), .copied.block = ONE(1),
        .eager_received.block = OTHERS(1) } },
    { ROW(ALL_TO_ALL, "pairwise", PAIRWISE, PUT, ANY_BYTES),
      .emit = dtn_emit_all_to_all_pairwise, .weight = {
        .senders = DTN_SENDERS_SHIFT,
        .hops = { .constant = 1, .per_peer = 1 }, .messages = OTHERS(3),
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },
    { ROW(ALL_TO_ALL, "bruck", BRUCK, PUT, KNOWN_BYTES),
      .emit = dtn_emit_all_to_all_bruck, .weight = {
        .senders = DTN_SENDERS_SHIFT,
        .hops = LEVELS(1), .messages = LEVELS(1), .message = DTN_UNIT_HALF,
        .moved.whole = LEVELS(0.5),
        .copied.whole = { .constant = 1, .log2n = 0.5 },
        .tmp.whole = { .constant = 0.5, .log2n = 0.5 } } },
    { ROW(ALL_TO_ALL, "rail-put", RAILS, HOST, KNOWN_BYTES),
      .hosts = DTN_HOSTS_SEVERAL,
      .emit = dtn_emit_all_to_all_rail_put, .undivided = true, .weight = {
        .hops = ONE(2), .messages = OTHERS(2), .moved.block = OTHERS(1),
        .copied.block = ONE(1) }, .between_hosts = {
        .incast = true, .overlaps = 1, .hops = ONE(1), .messages = OTHERS(1),
        .message = DTN_UNIT_BLOCK,
        .moved.block = OTHERS(1), .copied.block = ONE(1),
        .tmp.whole = ONE(2), .eager_received.block = OTHERS(1) } },
    { ROW(ALL_TO_ALL, "rail-bruck", RAILS, HOST, KNOWN_BYTES),
      .hosts = DTN_HOSTS_EQUAL,
      .emit = dtn_emit_all_to_all_rail_bruck, .undivided = true, .weight = {
        .hops = ONE(2), .messages = OTHERS(2), .moved.block = OTHERS(1),
        .copied.block = ONE(1) }, .between_hosts = {
        .senders = DTN_SENDERS_SHIFT,
        .hops = LEVELS(1), .messages = LEVELS(1), .message = DTN_UNIT_HALF,
        .moved.whole = LEVELS(0.5),
        .copied.whole = { .constant = 1, .log2n = 0.5 },
        .tmp.whole = { .constant = 2.5, .log2n = 0.5 } } },

    { ROW(GATHER, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_gather_put, .weight = { .waits = 2,
        .senders = DTN_SENDERS_ONE, .overlaps = 1,
        .hops = ONE(1), .messages = ONE(1), .message = DTN_UNIT_BLOCK,
        .moved.block = OTHERS(1), .copied.block = ONE(1),
        .eager_received.block = OTHERS(1) } },

    { ROW(SCATTER, "direct", DIRECT, MAP, ANY_BYTES),
      .emit = dtn_emit_scatter_direct, .weight = {
        .waits = 2, .largest = OTHERS(1),
        .hops = ONE(1), .messages = OTHERS(1), .message = DTN_UNIT_BLOCK,
        .moved.block = ONE(1),
        .eager_moved.block = { .constant = -1, .per_peer = 1 },
        .copied.block = ONE(1) } },
    { ROW(SCATTER, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_scatter_put, .weight = {
        .senders = DTN_SENDERS_ROOT, .overlaps = 1,
        .hops = ONE(1), .messages = OTHERS(1), .message = DTN_UNIT_BLOCK,
        .moved.block = OTHERS(1), .copied.block = ONE(1) } },

    { ROW(PAIRS, "put", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_pairs_put, .weight = {
        .hops = ONE(1), .messages = ONE(1), .message = DTN_UNIT_BLOCK,
        .moved.block = ONE(1) } },

    { ROW(BARRIER, "direct", DIRECT, PUT, ANY_BYTES),
      .emit = dtn_emit_barrier_direct, .weight = {
        .hops = ONE(1), .messages = OTHERS(1) } },
    { ROW(BARRIER, "tree", TREE, PUT, ANY_BYTES),
      .emit = dtn_emit_barrier_tree, .weight = {
        .senders = DTN_SENDERS_SHIFT,
        .hops = LEVELS(1), .messages = LEVELS(1) } },
    { ROW(BARRIER, "hierarchical", HIERARCHICAL, HOST, ANY_BYTES),
      .emit = dtn_emit_barrier_hierarchical, .weight = {
        .hops = ONE(2), .messages = OTHERS(1) }, .between_hosts = {
        .hops = LEVELS(1), .messages = LEVELS(1) } },
    { .emit = NULL }
};
