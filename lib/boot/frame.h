/* frame.h - frames on a stream socket; private to lib/net
 *
 * A frame is a head of 20 bytes and a body whose length is in the head, and
 * on AF_UNIX file descriptors that travel with its bytes.
 */
#ifndef DTN_FRAME_H
#define DTN_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION 2
#define FRAME_HEAD_BYTES 20
#define FRAME_HELLO_BYTES 24      /* before the host name, a NUL and the job  */
#define FRAME_JOB_MAX 80          /* bytes of a job's name, with NUL          */
#define FRAME_GONE_BYTES 36       /* who, whose fault, why; and a mismatch    */
#define FRAME_SAID_BYTES 44       /* who, what it called, before its text     */
#define FRAME_IDENTITY_MAX (1u << 20)
#define FRAME_FOREIGN UINT32_MAX  /* round of a FAIL that another job answers */

enum dtn_frame_type {
    FRAME_HELLO = 1,              /* up: who connects; layout never changes   */
    FRAME_WELCOME,                /* down: taken as a child                   */
    FRAME_ENTRIES,                /* up: entries new to this subtree          */
    FRAME_ASK,                    /* down: the rank whose identity is wanted  */
    FRAME_IDENTITY,               /* up: that rank, its text                  */
    FRAME_EXPIRED,                /* up: out of patience, a verdict is wanted */
    FRAME_ALL,                    /* down: every rank's entry; ends the round */
    FRAME_FAIL,                   /* both: the words; layout never changes    */
    FRAME_GONE,                   /* both, afterwards: a rank, who is blamed  */
    FRAME_SAID,                   /* both, afterwards: a rank, what it called */
    FRAME_NTYPES
};
#define FRAME_BIT(type) (1u << (type))

struct dtn_frame {
    unsigned version;             /* of the protocol: FRAME_VERSION           */
    enum dtn_frame_type type;     /* what the body is                         */
    uint32_t seq;                 /* round: 0 while opening, then 1, 2, ...   */
    uint32_t size;                /* of the body, in bytes                    */
    const unsigned char *body;    /* [size]                                   */
    int nfds;                     /* descriptors that travel with it          */
    const int *fds;               /* [nfds]                                   */
};

/* What reading and writing come to. */
enum dtn_frame_got {
    FRAME_READY,                  /* a whole frame; everything sent           */
    FRAME_MORE,                   /* not yet: poll                            */
    FRAME_CLOSED,                 /* the other side is gone                   */
    FRAME_GARBAGE,                /* not our protocol, or past a limit        */
    FRAME_NOMEM,
    FRAME_NOFDS                   /* descriptors came and the limit cut them  */
};

struct dtn_frame_out;             /* one frame on its way                     */

/* One connection.  fd -1: none, and every call is harmless.  May be moved. */
struct dtn_frame_stream {
    int fd;                       /* the socket, or -1                        */
    bool local;                   /* AF_UNIX: descriptors may come            */
    bool broken;                  /* sending failed: reading will tell        */
    bool stalled;                 /* too many descriptors on their way        */
    uint32_t accepts;             /* FRAME_BIT()s that may come now           */
    size_t entries_max;           /* longest body of ENTRIES and ALL          */
    int fds_max;                  /* most descriptors in one frame            */
    unsigned char head[FRAME_HEAD_BYTES]; /* of the frame that comes          */
    size_t got;                   /* bytes of the frame that came             */
    struct dtn_frame in;          /* the frame that comes                     */
    unsigned char *body;          /* its body, allocated                      */
    int *fds;                     /* its descriptors, allocated               */
    bool whole;                   /* `in` was handed out                      */
    struct dtn_frame_out *out;    /* oldest first                             */
    struct dtn_frame_out *out_last; /* newest                                 */
};

void dtn_frame_init(struct dtn_frame_stream *s, int fd, bool local);
void dtn_frame_close(struct dtn_frame_stream *s);

/* Take what has come.  READY: *frame is valid until the next call. */
enum dtn_frame_got dtn_frame_recv(struct dtn_frame_stream *s,
                                  struct dtn_frame *frame);

/* Keep what `dtn_frame_recv` gave: the body is the caller's to free, the
 * descriptors the caller's to close.
 */
unsigned char *dtn_frame_take_body(struct dtn_frame_stream *s);
void dtn_frame_take_fds(struct dtn_frame_stream *s);

/* Queue a frame; version is filled in.  The descriptors stay the caller's
 * and, with `borrow`, so does the body: all must last until sent.  false: no
 * memory.  A stream that is broken or has no connection swallows it.
 */
bool dtn_frame_post(struct dtn_frame_stream *s, const struct dtn_frame *frame,
                    bool borrow);

/* Send what the socket takes.  READY: nothing is left. */
enum dtn_frame_got dtn_frame_flush(struct dtn_frame_stream *s);

/* Check a head against what the stream may get.  READY or GARBAGE. */
enum dtn_frame_got dtn_frame_parse(const struct dtn_frame_stream *s,
                                   const unsigned char head[FRAME_HEAD_BYTES],
                                   struct dtn_frame *frame);

/* Little-endian numbers in bodies. */
void dtn_frame_put32(unsigned char *p, uint32_t value);
void dtn_frame_put64(unsigned char *p, uint64_t value);
uint32_t dtn_frame_get32(const unsigned char *p);
uint64_t dtn_frame_get64(const unsigned char *p);

#endif
