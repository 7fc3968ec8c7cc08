/* head.c - the head of a frame: what it says, and what it may say
 *
 * A frame begins with a head of 20 bytes: magic, version, type, round, number
 * of descriptors, length.  A port scanner's "GET / HTTP/1.0" fails at the
 * magic; a HELLO with a length of 4 GiB fails at the length, because a HELLO
 * has at most 359 bytes.
 */
#include "boot/boot.h"
#include "boot/frame.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdint.h>

#define HEAD_MAGIC 0x424e5444u    /* "DTNB" on the wire                       */
#define HEAD_NAMES_MAX (DTN_HOST_MAX + DTN_FRAME_JOB_MAX - 1)

void dtn_frame_put32(unsigned char *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(value >> 8 * i);
}

void dtn_frame_put64(unsigned char *p, uint64_t value)
{
    dtn_frame_put32(p, (uint32_t)value);
    dtn_frame_put32(p + 4, (uint32_t)(value >> 32));
}

uint32_t dtn_frame_get32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

uint64_t dtn_frame_get64(const unsigned char *p)
{
    return dtn_frame_get32(p) | (uint64_t)dtn_frame_get32(p + 4) << 32;
}

void dtn_frame_head(unsigned char head[DTN_FRAME_HEAD_BYTES],
                    const struct dtn_frame *frame)
{
    dtn_frame_put32(head, HEAD_MAGIC);
    dtn_frame_put32(head + 4,
                    DTN_FRAME_VERSION | (uint32_t)frame->type << 16);
    dtn_frame_put32(head + 8, frame->seq);
    dtn_frame_put32(head + 12, (uint32_t)frame->nfds);
    dtn_frame_put32(head + 16, frame->size);
}

/* The longest body a frame of this type may have. */
static size_t head_limit(const struct dtn_frame_stream *s,
                         enum dtn_frame_type type)
{
    static const size_t limits[DTN_FRAME_NTYPES] = {
        [DTN_FRAME_HELLO] = DTN_FRAME_HELLO_BYTES + HEAD_NAMES_MAX,
        [DTN_FRAME_WELCOME] = 8,
        [DTN_FRAME_ASK] = 4,
        [DTN_FRAME_IDENTITY] = 4 + DTN_FRAME_IDENTITY_MAX,
        [DTN_FRAME_EXPIRED] = DTN_FRAME_EXPIRED_BYTES,
        [DTN_FRAME_FAILURE] = DTN_FRAME_FAILURE_BYTES,
        [DTN_FRAME_CALL] = DTN_FRAME_CALL_BYTES + DTN_RECORD_TEXT - 1,
        [DTN_FRAME_QUERY] = DTN_FRAME_QUERY_BYTES,
        [DTN_FRAME_STATUS] = DTN_FRAME_STATUS_BYTES,
        [DTN_FRAME_SILENT] = DTN_FRAME_SILENT_BYTES,
        [DTN_FRAME_NAME] = DTN_FRAME_NAME_BYTES,
        [DTN_FRAME_KNOCK] = DTN_FRAME_KNOCK_BYTES + HEAD_NAMES_MAX,
        [DTN_FRAME_PROOF] = DTN_FRAME_EARLY,
        [DTN_FRAME_REFUSED] = DTN_FRAME_REFUSED_BYTES,
        [DTN_FRAME_FAIL] = 12 + sizeof((struct dtensor_error *)0)->text,
    };

    if (type == DTN_FRAME_ENTRIES || type == DTN_FRAME_ALL)
        return s->entries_max;
    return limits[type];
}

enum dtn_frame_got
dtn_frame_parse(const struct dtn_frame_stream *s,
                const unsigned char head[DTN_FRAME_HEAD_BYTES],
                struct dtn_frame *frame)
{
    uint32_t type = dtn_frame_get32(head + 4) >> 16;
    uint32_t nfds = dtn_frame_get32(head + 12);

    if (dtn_frame_get32(head) != HEAD_MAGIC || type >= DTN_FRAME_NTYPES ||
        !(s->accepts & DTN_FRAME_BIT(type)) || nfds > (uint32_t)s->fds_max)
        return DTN_FRAME_GARBAGE;
    frame->version = dtn_frame_get32(head + 4) & 0xffff;
    frame->type = (enum dtn_frame_type)type;
    frame->seq = dtn_frame_get32(head + 8);
    frame->nfds = (int)nfds;
    frame->size = dtn_frame_get32(head + 16);
    frame->body = NULL;
    frame->fds = NULL;
    if (frame->size > head_limit(s, frame->type))
        return DTN_FRAME_GARBAGE;
    if (frame->version != DTN_FRAME_VERSION && frame->type != DTN_FRAME_HELLO &&
        frame->type != DTN_FRAME_FAIL && frame->type != DTN_FRAME_KNOCK)
        return DTN_FRAME_GARBAGE;
    return DTN_FRAME_READY;
}
