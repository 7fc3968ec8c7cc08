/* lane.c - the memory through which two ranks signal to each other
 *
 * Each rank has a lane for each peer that it has met: 16 places into which the
 * peer writes its signals, and 16 from which our own signals are sent.  A
 * signal is one write of 20 bytes and the payload.  Up to 4 KiB of data go in
 * the same write, in front of the line, with the address where they belong; or
 * they stay where they arrive until the signal is consumed.  So a message of
 * 512 bytes is one write of 576 bytes, not one of 512 and one of 40.
 *
 *     ... 512 bytes | address, key, size, hash | line: 20 bytes, their number
 *
 * If the device writes in order, the number at the end shows that everything
 * has landed.  If not, the line is cut into pieces of four bytes, each beside
 * the number, and a hash shows that the data have landed.  The number is part
 * of the hash, so older data do not match; data that landed in part match once
 * in 2^64.
 */
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/fail.h"
#include "transport/verbs/keys.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/post.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/register.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int dtn_verbs_lane_open(struct dtn_verbs *verbs, int peer,
                        struct dtensor_error *err)
{
    struct dtn_verbs_peer *p = verbs->peers[peer];
    size_t size = dtn_verbs_lane_bytes(verbs->nrails);

    p->lane = dtn_arena_alloc(verbs->args.arena, size);
    if (!p->lane)
        return dtn_arena_fail(verbs->args.arena, "verbs", size, err);
    memset(p->lane, 0, size);
    if (!dtn_verbs_register(&verbs->memory, p->lane, size, p->lane_mr))
        return dtn_verbs_fail_register(&verbs->memory.refused->device, size,
                                       errno, err);
    return 0;
}

void dtn_verbs_lane_close(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer)
{
    dtn_verbs_deregister(&verbs->memory, peer->lane_mr);
    dtn_arena_free(verbs->args.arena, peer->lane);
}

/* Append a write from our lane for the peer to its lane for us. */
static int lane_post(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                     int q, size_t offset, const void *from, size_t size)
{
    const struct dtn_verbs_rail *rail = peer->queue[q].rail;
    const struct ibv_mr *mr = size <= (size_t)rail->device.max_inline ? NULL
                            : peer->lane_mr[rail->number];

    return dtn_verbs_post(verbs, peer, q, &(struct dtn_verbs_write){
        .to = peer->greeting.lane + offset,
        .key = peer->greeting.lane_key[rail->number], .from = from,
        .size = size, .mr = mr });
}

int dtn_verbs_lane_write(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                         int q, size_t offset, const void *from, size_t size)
{
    int rc = dtn_verbs_release(verbs);

    if (peer->queue[q].error)
        return DTENSOR_EPEER;
    if (rc == 0 && dtn_verbs_room(verbs, &peer->queue[q]) < 1)
        return DTENSOR_EAGAIN;
    if (rc == 0)
        rc = lane_post(verbs, peer, q, offset, from, size);
    return rc == 0 ? dtn_verbs_ring(verbs) : rc;
}

/* ------------------------------------------------------------- numbered --- */

enum {
    WORDS = 16,
    WORD_BYTES = 4,               /* of the content, in a word of eight bytes */
    WORDS_OF_PAYLOAD = DTN_PAYLOAD_MAX / WORD_BYTES
};

/* Word w has part WORDS - 1 - w: so what each signal has comes first. */
static void words_fill(_Atomic uint64_t word[WORDS],
                       const struct dtn_verbs_content *said, int first,
                       uint64_t seq)
{
    uint32_t part[WORDS];

    memcpy(part, said, sizeof part);
    for (int i = first; i < WORDS; i++)
        atomic_store_explicit(&word[WORDS - 1 - i], seq << 32 | part[i],
                              memory_order_relaxed);
}

/* Read parts `first` to `last`, if all of them are of this signal. */
static bool words_read(const _Atomic uint64_t word[WORDS], int first, int last,
                       uint64_t seq, uint32_t part[WORDS])
{
    for (int i = last; i >= first; i--) {
        uint64_t got = atomic_load_explicit(&word[WORDS - 1 - i],
                                            memory_order_acquire);

        if (got >> 32 != (uint32_t)seq)
            return false;
        part[i] = (uint32_t)got;
    }
    return true;
}

/* Read the fields behind the payload first: they say how long it is. */
static bool words_take(const _Atomic uint64_t word[WORDS],
                       struct dtn_verbs_content *said, uint64_t seq)
{
    uint32_t part[WORDS];
    size_t skip;

    if (!words_read(word, WORDS_OF_PAYLOAD, WORDS - 1, seq, part))
        return false;
    memcpy((unsigned char *)said + DTN_PAYLOAD_MAX, part + WORDS_OF_PAYLOAD,
           sizeof *said - DTN_PAYLOAD_MAX);
    skip = dtn_verbs_line_skip(said->len);
    if (!words_read(word, (int)skip / WORD_BYTES, WORDS_OF_PAYLOAD - 1, seq,
                    part))
        return false;
    memcpy(said->payload + skip, (unsigned char *)part + skip,
           DTN_PAYLOAD_MAX - skip);
    return true;
}

/* ---------------------------------------------------------------- lines --- */

enum { FEW = 240 };               /* bytes that XXH3 treats as short          */

/* The hash of the bytes in front of `along`, of its fields and of the number.
 * For 88 bytes XXH3 takes 75 instructions and XXH64 182; for 536 bytes both
 * take the same.
 */
static uint64_t along_hash(const struct dtn_verbs_along *along, uint64_t seq)
{
    const unsigned char *at = (const unsigned char *)along - along->size;
    const size_t size = along->size + offsetof(struct dtn_verbs_along, hash);

    return size <= FEW ? XXH3_64bits(at, size)
                         + seq * UINT64_C(0x9e3779b97f4a7c15)
         : XXH64(at, size, seq);
}

/* Of a line with a payload of `len` bytes the part that is sent: the last bytes
 * of the plain form, from a multiple of eight on, or the first words.
 */
struct part {
    size_t from, to;              /* bytes of the line                        */
};

static struct part line_part(size_t len, bool plain)
{
    const size_t skip = dtn_verbs_line_skip(len);

    return plain ? (struct part){ skip / 8 * 8,
                                  sizeof ((union dtn_verbs_line *)0)->plain }
         : (struct part){ 0, (WORDS - skip / WORD_BYTES) * 8 };
}

static struct dtn_verbs_along *along_of(struct dtn_verbs_place *place,
                                        size_t len, bool plain)
{
    unsigned char *line = (unsigned char *)&place->line;

    return (void *)(line + line_part(len, plain).from
                    - sizeof(struct dtn_verbs_along));
}

unsigned char *dtn_verbs_line_data(struct dtn_verbs_place *place, size_t len,
                                   bool plain)
{
    return (unsigned char *)along_of(place, len, plain) - len;
}

/* Copy the data in front of the line; returns where they begin. */
static unsigned char *along_fill(struct dtn_verbs_along *along, uint64_t seq,
                                 bool plain, const struct dtn_eager *put)
{
    unsigned char *data = (unsigned char *)along - put->size;

    along->addr = put->dst.addr;
    along->key = (uint32_t)put->dst.key;
    along->size = (uint32_t)put->size;
    memcpy(data, put->src, put->size);
    along->hash = plain ? 0 : along_hash(along, seq);
    return data;
}

int dtn_verbs_line_send(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                        uint64_t seq, struct dtn_verbs_content *say,
                        const struct dtn_eager *put)
{
    struct dtn_verbs_lane *lane = peer->lane;
    struct dtn_verbs_place *place = &lane->out[(seq - 1) % DTN_QUEUE_DEPTH];
    union dtn_verbs_line *line = &place->line;
    const struct part part = line_part(say->len, peer->plain);
    unsigned char *from = (unsigned char *)line + part.from;
    unsigned char *end = (unsigned char *)line + part.to;

    say->along = put ? (uint16_t)put->size : 0;
    peer->queue[0].rail->put_bytes += say->along;
    say->along |= peer->to_device ? DTN_VERBS_TO_DEVICE : 0;
    if (peer->plain) {
        line->plain.content = *say;
        atomic_store_explicit(&line->plain.seq, seq, memory_order_relaxed);
    } else {
        words_fill(line->word, say, WORDS - (int)part.to / 8, seq);
    }
    if (put)
        from = along_fill(along_of(place, say->len, peer->plain), seq,
                          peer->plain, put);
    return lane_post(verbs, peer, 0, offsetof(struct dtn_verbs_lane, place)
                     + (size_t)(from - (unsigned char *)lane->out), from,
                     (size_t)(end - from));
}

bool dtn_verbs_line_take(const struct dtn_verbs_peer *peer, uint64_t seq,
                         struct dtn_verbs_content *said)
{
    const union dtn_verbs_line *line =
        &peer->lane->place[(seq - 1) % DTN_QUEUE_DEPTH].line;

    if (!peer->plain)
        return words_take(line->word, said, seq);
    if (atomic_load_explicit(&line->plain.seq, memory_order_acquire) != seq)
        return false;
    *said = line->plain.content;
    return true;
}

int dtn_verbs_along_take(struct dtn_verbs *verbs,
                         const struct dtn_verbs_peer *peer, uint64_t seq,
                         const struct dtn_verbs_content *said)
{
    const struct dtn_verbs_along *along =
        along_of(&peer->lane->place[(seq - 1) % DTN_QUEUE_DEPTH], said->len,
                 peer->plain);
    void *dst = (void *)(uintptr_t)along->addr;

    if (said->along > DTN_VERBS_ALONG)
        return DTENSOR_EINVAL;
    if (!peer->plain && (along->size != said->along
                         || along_hash(along, seq) != along->hash))
        return DTENSOR_EAGAIN;
    if (along->size != said->along)
        return DTENSOR_EINVAL;
    if (along->addr == 0)
        return 0;
    if (!dtn_verbs_memory_open(&verbs->memory, dst, along->size, along->key))
        return DTENSOR_EINVAL;
    memcpy(dst, (const unsigned char *)along - along->size, along->size);
    return 0;
}

int dtn_verbs_keys_tell(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer)
{
    const struct dtn_verbs_keys *keys = &verbs->memory.keys;
    size_t row_bytes = (size_t)keys->nrails * sizeof keys->key[0];
    int first = DTN_VERBS_REGIONS, last = 0, rc;

    if (peer->keys_told == keys->version)
        return 0;
    for (int row = 0; row < DTN_VERBS_REGIONS; row++)
        if (keys->written[row] > peer->keys_told) {
            first = row < first ? row : first;
            last = row;
        }
    rc = dtn_verbs_post(verbs, peer, 0, &(struct dtn_verbs_write){
        .to = peer->greeting.lane + offsetof(struct dtn_verbs_lane, keys)
              + (size_t)first * row_bytes,
        .key = peer->greeting.lane_key[0],
        .from = keys->key + first * keys->nrails,
        .size = (size_t)(last + 1 - first) * row_bytes, .mr = keys->mr });
    if (rc == 0)
        peer->keys_told = keys->version;
    return rc;
}
