/* lane.h - the memory through which two ranks signal to each other */
#ifndef DTN_TRANSPORT_VERBS_LANE_H
#define DTN_TRANSPORT_VERBS_LANE_H

#include "base/compiler.h"
#include "transport/transport.h"
#include "transport/verbs/keys.h"
#include "transport/verbs/queue.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_verbs;
struct dtn_verbs_peer;

enum {
    DTN_VERBS_ALONG = 4096,       /* most bytes of a put that a signal carries*/
    DTN_VERBS_TO_DEVICE = 1 << 15 /* puts before it wrote into a device       */
};

/* What a signal says. */
struct dtn_verbs_content {
    unsigned char payload[DTN_PAYLOAD_MAX]; /* right-aligned: ends at the end */
    uint16_t tag;                 /* as of struct dtn_signal                  */
    uint16_t len;                 /* bytes of payload                         */
    uint64_t fingerprint;         /* of the call                              */
    uint32_t consumed;            /* signals of the receiver that were read   */
    uint16_t stripes;             /* number that every other queue must show  */
    uint16_t along;               /* bytes of the data that it carries, and   */
                                  /* above them DTN_VERBS_TO_DEVICE           */
};
_Static_assert(sizeof(struct dtn_verbs_content) == 64,
               "sixteen times four bytes");

/* A signal on the wire.  Devices write eight bytes at once, in any order.  So
 * each word has four bytes of the content and, above them, the low half of the
 * signal's number: a reader that finds the number in all words has all of it.
 * Where the device writes in order, the plain form does: content, then number.
 * Leading bytes of the content that no payload fills are not sent.  A word with
 * a number never has other bytes: data of an earlier signal could look like it.
 */
union dtn_verbs_line {
    /* number<<32 | bytes, the last four bytes of the content first */
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t word[16];
    struct {
        struct dtn_verbs_content content; /* all of it                        */
        _Atomic uint64_t seq;     /* the signal's number; lands last          */
    } plain;                      /* from a device that writes in order       */
};

/* Where the data that a signal carries belong.  Their bytes stand before this
 * struct, the part of the line that is sent stands behind it: all three are one
 * write.
 */
struct dtn_verbs_along {
    uint64_t addr;                /* in the receiver's memory; 0: they stay   */
    uint32_t key;                 /* that opens it, on rail 0                 */
    uint32_t size;                /* bytes before this struct                 */
    uint64_t hash;                /* of bytes and fields above; plain: 0      */
};

/* Room for one signal. */
struct dtn_verbs_place {
    /* data, and the struct behind them, which ends where the part of the line
     * begins that is sent
     */
    _Alignas(DTN_CACHE_LINE) unsigned char
        room[DTN_VERBS_ALONG + DTN_CACHE_LINE];
    union dtn_verbs_line line;    /* the signal                               */
};
#define DTN_VERBS_AROUND                                                       \
    (sizeof(struct dtn_verbs_along) + sizeof(union dtn_verbs_line))
_Static_assert(sizeof(struct dtn_verbs_along) <= DTN_CACHE_LINE, "has room");

/* What one peer writes into our memory, and what we write to it from. */
struct dtn_verbs_lane {
    struct dtn_verbs_place place[DTN_QUEUE_DEPTH]; /* the peer's signals      */
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t acked; /* of ours, by the peer  */
    _Atomic uint64_t aborted;     /* ABORT_SET | code << 32 | culprit         */
    _Atomic uint64_t beat;        /* written while waiting, never read        */
    _Atomic uint64_t left;        /* 1: the peer closes, it reads no more     */
    /* the last stripe number that each queue showed */
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t stripes[DTN_VERBS_QUEUES_MAX];
    struct dtn_verbs_place out[DTN_QUEUE_DEPTH]; /* sources of our signals    */
    uint64_t out_acked, out_aborted, out_beat, out_left; /* their sources     */
    uint64_t out_stripes[DTN_QUEUE_DEPTH]; /* in turn: each must leave first  */
    _Atomic uint32_t keys[];      /* [DTN_VERBS_REGIONS][nrails] of the peer  */
};
#define DTN_VERBS_ABORT_SET (UINT64_C(1) << 63)

/* Allocate and register our lane for a peer.  close: legal at any time, after
 * the queue pairs.   Errors: ENOMEM, ESYS
 */
int dtn_verbs_lane_open(struct dtn_verbs *verbs, int peer,
                        struct dtensor_error *err);
void dtn_verbs_lane_close(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer);

/* Bytes of a lane between ranks of so many rails. */
static inline size_t dtn_verbs_lane_bytes(int nrails)
{
    return sizeof(struct dtn_verbs_lane)
         + (nrails > 1 ? (size_t)DTN_VERBS_REGIONS * (size_t)nrails
                         * sizeof(uint32_t) : 0);
}

/* Write from our lane for a peer to the peer's lane for us.  EAGAIN: no room */
int dtn_verbs_lane_write(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                         int q, size_t offset, const void *from, size_t size);

/* Can the write of a signal carry so many bytes of a put? */
static inline bool dtn_verbs_line_carries(const struct dtn_verbs_queue *queue,
                                          size_t size)
{
    return size <= DTN_VERBS_ALONG
        && size + DTN_VERBS_AROUND <= queue->request_max;
}

/* Append signal `seq` to the chain of queue 0, and with it `put` if any. */
int dtn_verbs_line_send(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer,
                        uint64_t seq, struct dtn_verbs_content *say,
                        const struct dtn_eager *put);

/* Where the payload of a signal with that `len` begins in the content.  Longer
 * payloads are not in it.
 */
static inline size_t dtn_verbs_line_skip(size_t len)
{
    return len > DTN_PAYLOAD_MAX ? DTN_PAYLOAD_MAX
         : DTN_PAYLOAD_MAX - ((size_t)len + 3) / 4 * 4;
}

/* Where the data of a signal with `len` bytes of them stay in its place. */
unsigned char *dtn_verbs_line_data(struct dtn_verbs_place *place, size_t len,
                                   bool plain);

/* Read the content of signal `seq` if all of it has landed. */
bool dtn_verbs_line_take(const struct dtn_verbs_peer *peer, uint64_t seq,
                         struct dtn_verbs_content *said);

/* Copy the data that came with signal `seq` to where they belong, unless they
 * stay.   EAGAIN: not all of them has landed; EINVAL: peers may not write there
 */
int dtn_verbs_along_take(struct dtn_verbs *verbs,
                         const struct dtn_verbs_peer *peer, uint64_t seq,
                         const struct dtn_verbs_content *said);

/* Append to the chain of queue 0 the rows of our keys that are new to the peer,
 * in at most one write.
 */
int dtn_verbs_keys_tell(struct dtn_verbs *verbs, struct dtn_verbs_peer *peer);

#endif
