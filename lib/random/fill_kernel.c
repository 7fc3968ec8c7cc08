/* fill_kernel.c - a fill as the launch of a kernel
 *
 * A thread makes one block of words and its elements.  For elements 10 .. 29
 * of f32 in the sequential order these are blocks 2 .. 7: six threads, of which
 * the first and the last store half of theirs.  In the order of a CUDA grid of
 * T threads, the unit is a thread of that grid in one of its turns.
 */
#include "random/fill.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "device/memory.h"
#include "random/dist.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* The kernels of `fill = cuda` whose values are PyTorch's on that GPU. */
static enum dtn_kernel kernel_of_cuda(const struct dtn_dist *dist,
                                      enum dtn_kernel otherwise)
{
    const bool f64 = dist->words == 2;

    switch (dist->kind) {
    case DTN_NORMAL:
        return f64 ? DTN_KERNEL_fill_cuda_normal_f64
                   : DTN_KERNEL_fill_cuda_normal_f32;
    case DTN_LOG_NORMAL:
        return f64 ? DTN_KERNEL_fill_cuda_log_normal_f64
                   : DTN_KERNEL_fill_cuda_log_normal_f32;
    case DTN_EXPONENTIAL:
        return f64 ? DTN_KERNEL_fill_cuda_exponential_f64
                   : DTN_KERNEL_fill_cuda_exponential_f32;
    default:
        return otherwise;
    }
}

static enum dtn_kernel kernel_of(const struct dtn_dist *dist, bool cuda)
{
    static const enum dtn_kernel f32[DTN_NDISTS] = {
        [DTN_UNIFORM] = DTN_KERNEL_fill_uniform_f32,
        [DTN_NORMAL] = DTN_KERNEL_fill_normal_f32,
        [DTN_LOG_NORMAL] = DTN_KERNEL_fill_log_normal_f32,
        [DTN_EXPONENTIAL] = DTN_KERNEL_fill_exponential_f32,
        [DTN_BERNOULLI] = DTN_KERNEL_fill_bernoulli_f32,
        [DTN_TRUNC_NORMAL] = DTN_KERNEL_fill_trunc_normal_f32,
        [DTN_INTEGERS] = DTN_KERNEL_fill_integers,
    };
    static const enum dtn_kernel f64[DTN_NDISTS] = {
        [DTN_UNIFORM] = DTN_KERNEL_fill_uniform_f64,
        [DTN_NORMAL] = DTN_KERNEL_fill_normal_f64,
        [DTN_LOG_NORMAL] = DTN_KERNEL_fill_log_normal_f64,
        [DTN_EXPONENTIAL] = DTN_KERNEL_fill_exponential_f64,
        [DTN_BERNOULLI] = DTN_KERNEL_fill_bernoulli_f64,
        [DTN_TRUNC_NORMAL] = DTN_KERNEL_fill_trunc_normal_f64,
        [DTN_INTEGERS] = DTN_KERNEL_fill_integers,
    };

    const enum dtn_kernel kernel = (dist->words == 2 ? f64 : f32)[dist->kind];

    return cuda ? kernel_of_cuda(dist, kernel) : kernel;
}

static void args_distribution(const struct dtn_dist *dist,
                              struct dtn_fill_args *args)
{
    args->dtype = dist->dtype;
    args->words = (uint32_t)dist->words;
    args->remainder = dist->remainder;
    args->mirrored = dist->mirrored;
    args->mul = dist->mul;
    args->add = dist->add;
    args->from = dist->from;
    args->to = dist->to;
    args->p_low = dist->p_low;
    args->p_range = dist->p_range;
    args->low = dist->low;
    args->range = dist->range;
}

/* Neighbours: `each` elements in a unit. */
static void args_sequential(struct dtn_fill_args *args, uint64_t each)
{
    args->order = DTN_FILL_SEQUENTIAL;
    args->unit = args->first / each;
    args->units = (args->first + args->count - 1) / each - args->unit + 1;
}

/* If all elements are of one turn, only their threads; else all threads. */
static void args_grid(struct dtn_fill_args *args, uint64_t threads,
                      uint64_t each)
{
    const uint64_t last = args->first + args->count - 1;
    const bool within = args->first / threads == last / threads;
    const uint64_t width = within ? args->count : threads;

    args->order = DTN_FILL_GRID;
    args->grid = dtn_divide_by(threads);
    args->per_turn = dtn_divide_by(width);
    args->unit = within ? args->first % threads : 0;
    args->turn = args->first / threads / each;
    args->units = width * (last / threads / each - args->turn + 1);
}

static void args_vector(struct dtn_fill_args *args, uint64_t threads,
                        uint64_t vector)
{
    const uint64_t parts = vector > 4 ? 2 : 1;
    const uint64_t last = (args->first + args->count - 1) / vector;

    args->order = DTN_FILL_VECTOR;
    args->grid = dtn_divide_by(threads);
    args->vector = vector;
    args->unit = args->first / vector * parts;
    args->units = (last - args->first / vector + 1) * parts;
}

/* Does every unit begin at a multiple of its bytes, or of 16? */
static bool args_aligned(const struct dtn_fill_args *args, uint64_t lanes,
                         size_t elem_bytes)
{
    const uint64_t bytes = lanes * elem_bytes;

    return args->order != DTN_FILL_GRID
        && ((uint64_t)(uintptr_t)args->dst - args->first * elem_bytes)
           % (bytes < 16 ? bytes : 16) == 0;
}

/* Elements that a kernel stores by fours, or each at its place of the grid. */
static bool args_plain(const struct dtn_fill_args *args, uint64_t each)
{
    return args->dtype == DTENSOR_F32 && each == 4
        && (args->order == DTN_FILL_GRID
            || (args->order == DTN_FILL_SEQUENTIAL && args->aligned
                && args->first % 4 == 0 && args->count % 4 == 0));
}

/* The key of each round of Philox. */
static void args_seed(struct dtn_fill_args *args, uint64_t seed)
{
    args->seed = seed;
    for (uint32_t r = 0; r < 10; r++) {
        args->key[2 * r] = (uint32_t)seed + r * 0x9E3779B9u;
        args->key[2 * r + 1] = (uint32_t)(seed >> 32) + r * 0xBB67AE85u;
    }
}

void dtn_fill_launch(const struct dtn_elements *elements, void *out,
                     const void *const in[], struct dtn_launch *launch)
{
    const struct dtn_fill_how *how = elements->how;
    const struct dtn_random_stream *stream = how->stream;
    const struct dtn_dist *dist = how->dist;
    const uint64_t each = 4 / (uint64_t)dist->words;
    struct dtn_fill_args *args = &launch->args.fill;

    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel_of(dist, stream->threads != 0);
    if (elements->count == 0)
        return;
    args_distribution(dist, args);
    args->dst = out;
    args_seed(args, stream->seed);
    args->block = stream->block;
    args->first = (uint64_t)elements->first;
    args->count = elements->count;
    if (stream->threads == 0)
        args_sequential(args, each);
    else if (dist->vector > 1 && stream->numel % dist->vector == 0)
        args_vector(args, (uint64_t)stream->threads, (uint64_t)dist->vector);
    else
        args_grid(args, (uint64_t)stream->threads, each);
    args->aligned = args_aligned(args, each, elements->out_bytes);
    args->plain = args_plain(args, each);
    launch->threads = args->units;
}
