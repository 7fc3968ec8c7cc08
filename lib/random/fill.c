/* fill.c - which block and lane of the stream an element gets
 *
 * A block makes `each` = 4 values, or 2 of two words.
 *   sequential  element i is lane i mod 4 of block i / 4.
 *   cuda        as a grid of T threads would: element i belongs to thread
 *               i mod T, which is the block's stream; it is that thread's
 *               (i / T)-th value, so lane (i / T) mod 4 of the block
 *               i / T / 4 further on.  On an H200 (132 multiprocessors of 2048
 *               threads) T is 270336 at most: below that many elements each
 *               is lane 0 of its own stream, and all advance by 4.
 * An offset counts words of one stream, so block = offset / 4.
 */
#include "random/fill.h"
#include "base/copy.h"
#include "device/memory.h"
#include "random/dist.h"
#include "random/philox.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

enum { CUDA_BLOCK = 256, STREAM_BYTES = 4 << 20 };

static int64_t each_of(const struct dtn_dist *dist)
{
    return 4 / dist->words;
}

/* T, the threads of the grid for so many elements. */
static int64_t cuda_threads(const struct dtensor_random_rule *rule,
                            int64_t numel)
{
    int64_t most = (int64_t)rule->sms * (rule->threads_per_sm / CUDA_BLOCK);
    int64_t blocks = numel / CUDA_BLOCK + (numel % CUDA_BLOCK != 0);

    return CUDA_BLOCK * (blocks < most ? blocks : most);
}

int64_t dtn_fill_need(const struct dtensor_random_rule *rule,
                      const struct dtn_dist *dist, int64_t numel)
{
    int64_t each = each_of(dist);

    if (numel == 0)
        return 0;
    if (rule->fill == DTENSOR_FILL_CUDA)
        each *= cuda_threads(rule, numel);
    numel = (numel - 1) / each + 1;
    return numel > INT64_MAX / 4 ? INT64_MAX : 4 * numel;
}

/* Set what CUDA's kernels do differently from the sequential fill. */
void dtn_fill_adapt(const struct dtensor_random_rule *rule,
                    struct dtn_dist *dist)
{
    if (rule->fill == DTENSOR_FILL_CUDA && dist->kind == DTN_INTEGERS &&
        dist->range != 0) {
        dist->remainder = true;
        dist->words = dist->range < UINT64_C(1) << 28 ? 1 : 2;
    } else if (rule->fill == DTENSOR_FILL_CUDA) {
        dist->remainder = true;
    } else if (dist->kind == DTN_BERNOULLI && (float)dist->mul == 1.0f) {
        dist->mul = 2;                     /* all, even where the value is 1 */
    }
}

/* ----------------------------------------------------------- sequential --- */

struct fill {
    const struct dtn_random_stream *stream;
    const struct dtn_dist *dist;
    int width;
    size_t each, bytes;                    /* of a block; of an element      */
};

static struct fill fill_of(const struct dtn_random_stream *stream,
                           const struct dtn_dist *dist)
{
    return (struct fill){ stream, dist, dtn_random_widths() - 1,
                          (size_t)each_of(dist),
                          dtensor_dtype_size(dist->dtype) };
}

/* All values of at most DTN_CHUNK_BLOCKS blocks, in their order. */
static void fill_chunk(const struct fill *fill, const struct dtn_counter *at,
                       size_t nblocks, void *out)
{
    uint32_t words[4 * DTN_CHUNK_BLOCKS];

    dtn_philox(fill->width, fill->stream->seed, at, nblocks, words);
    dtn_dist_blocks(fill->dist, fill->width, words, nblocks, out);
}

/* Write `count` elements of one block, from lane `lane` on. */
static void fill_part(const struct fill *fill, uint64_t block, size_t lane,
                      size_t count, unsigned char *out)
{
    const struct dtn_counter at = { block, 0, false };
    unsigned char whole[4 * 8];

    fill_chunk(fill, &at, 1, whole);
    memcpy(out, whole + lane * fill->bytes, count * fill->bytes);
}

/* Write full blocks with non-temporal stores, if no cache can hold them. */
static size_t fill_past(const struct fill *fill, struct dtn_counter *at,
                        size_t nblocks, unsigned char *out)
{
    _Alignas(64) unsigned char whole[4 * 8 * DTN_CHUNK_BLOCKS];
    const size_t bytes = DTN_CHUNK_BLOCKS * fill->each * fill->bytes;
    size_t done = 0;

    for (; nblocks - done >= DTN_CHUNK_BLOCKS; done += DTN_CHUNK_BLOCKS) {
        fill_chunk(fill, at, DTN_CHUNK_BLOCKS, whole);
        dtn_copy_nt(out, whole, bytes);
        at->counter += DTN_CHUNK_BLOCKS;
        out += bytes;
    }
    dtn_copy_fence();
    return done;
}

static void fill_sequential(const struct fill *fill, uint64_t first,
                            size_t count, unsigned char *out)
{
    struct dtn_counter at = { fill->stream->block + first / fill->each, 0,
                             false };
    size_t lane = first % fill->each, now;

    if (lane > 0) {
        now = count < fill->each - lane ? count : fill->each - lane;
        fill_part(fill, at.counter++, lane, now, out);
        out += now * fill->bytes;
        count -= now;
    }
    if (count * fill->bytes >= STREAM_BYTES && (uintptr_t)out % 16 == 0) {
        now = fill_past(fill, &at, count / fill->each, out) * fill->each;
        out += now * fill->bytes;
        count -= now;
    }
    while (count >= fill->each) {
        now = count / fill->each;
        now = now < DTN_CHUNK_BLOCKS ? now : DTN_CHUNK_BLOCKS;
        fill_chunk(fill, &at, now, out);
        at.counter += now;
        out += now * fill->each * fill->bytes;
        count -= now * fill->each;
    }
    if (count > 0)
        fill_part(fill, at.counter, 0, count, out);
}

/* ----------------------------------------------------------------- cuda --- */

/* Neighbouring elements belong to neighbouring threads, up to thread T - 1. */
static void fill_cuda(const struct fill *fill, uint64_t first, size_t count,
                      unsigned char *out)
{
    const uint64_t threads = (uint64_t)fill->stream->threads;
    unsigned char whole[4 * 8 * DTN_CHUNK_BLOCKS];

    while (count > 0) {
        const uint64_t thread = first % threads, turn = first / threads;
        const size_t lane = turn % fill->each;
        const struct dtn_counter at = {
            fill->stream->block + turn / fill->each, thread, true
        };
        size_t now = count < DTN_CHUNK_BLOCKS ? count : DTN_CHUNK_BLOCKS;

        if (now > threads - thread)
            now = threads - thread;
        fill_chunk(fill, &at, now, whole);
        for (size_t i = 0; i < now; i++)
            memcpy(out + i * fill->bytes,
                   whole + (i * fill->each + lane) * fill->bytes, fill->bytes);
        first += now;
        count -= now;
        out += now * fill->bytes;
    }
}

/* A thread of dropout takes `vector` neighbouring elements at a time, if that
 * divides the number of elements: 4 lanes of a block, and the rest from the
 * next.
 */
static void fill_cuda_vector(const struct fill *fill, uint64_t first,
                             size_t count, unsigned char *out)
{
    const uint64_t vector = (uint64_t)fill->dist->vector;
    const uint64_t threads = (uint64_t)fill->stream->threads;
    unsigned char whole[4 * 8];

    for (; count > 0; count--, first++, out += fill->bytes) {
        const uint64_t group = first / vector, place = first % vector;
        const struct dtn_counter at = {
            fill->stream->block + group / threads * (vector > 4 ? 2 : 1)
                                + place / 4, group % threads, false
        };

        fill_chunk(fill, &at, 1, whole);
        memcpy(out, whole + place % 4 * fill->bytes, fill->bytes);
    }
}

struct dtn_random_stream
dtn_random_stream_of(const struct dtensor_random_rule *rule, uint64_t seed,
                     int64_t offset, int64_t numel)
{
    return (struct dtn_random_stream){
        seed, (uint64_t)offset / 4, numel,
        rule->fill == DTENSOR_FILL_CUDA ? cuda_threads(rule, numel) : 0
    };
}

void dtn_fill(const struct dtn_random_stream *stream,
              const struct dtn_dist *dist, int64_t first, int64_t count,
              void *out)
{
    const struct fill fill = fill_of(stream, dist);

    if (count <= 0)
        return;
    if (stream->threads == 0)
        fill_sequential(&fill, (uint64_t)first, (size_t)count, out);
    else if (dist->vector > 1 && stream->numel % dist->vector == 0)
        fill_cuda_vector(&fill, (uint64_t)first, (size_t)count, out);
    else
        fill_cuda(&fill, (uint64_t)first, (size_t)count, out);
}

static void fill_make(const void *how, int64_t first, size_t count, void *out,
                      const void *const in[])
{
    const struct dtn_fill_how *fill = how;

    dtn_fill(fill->stream, fill->dist, first, (int64_t)count, out);
}

const struct dtn_formula dtn_fill_formula = { fill_make, dtn_fill_launch, 0 };
