/* frame.h - frames on a stream socket; private to lib/boot
 *
 * A frame is a head of 20 bytes and a body whose length is in the head.  On
 * AF_UNIX it may also carry file descriptors.  Once both sides of a connection
 * between hosts have proved who they are, head and body are sealed.
 */
#ifndef DTN_FRAME_H
#define DTN_FRAME_H

#include "base/seal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTN_FRAME_VERSION 10
#define DTN_FRAME_HEAD_BYTES 20
#define DTN_FRAME_HELLO_BYTES 24  /* before the host name, a NUL and the job  */
#define DTN_FRAME_JOB_MAX 80      /* bytes of a job's name, with NUL          */
#define DTN_FRAME_FAILURE_BYTES 36 /* who, whose fault, why; and a mismatch   */
#define DTN_FRAME_CALL_BYTES 52   /* who, what it called, before its text     */
#define DTN_FRAME_QUERY_BYTES 4   /* whose status is wanted                   */
#define DTN_FRAME_STATUS_BYTES (DTN_FRAME_CALL_BYTES + 4) /* its call; waits */
#define DTN_FRAME_EXPIRED_BYTES 4 /* who runs; down: 0                        */
#define DTN_FRAME_SILENT_BYTES 8  /* who hears nothing, of whom               */
#define DTN_FRAME_NAME_BYTES 8    /* who is lost, how; or 0: whom to name?   */
#define DTN_FRAME_IDENTITY_MAX (1u << 20)
#define DTN_FRAME_KNOCK_BYTES 60  /* before the host name, a NUL and the job  */
#define DTN_FRAME_REFUSED_BYTES DTN_SEAL_BYTES /* so that it is as long as a  */
                                  /* sealed head                              */
#define DTN_FRAME_EARLY 512       /* bytes of a body from a stranger          */

enum dtn_frame_type {
    DTN_FRAME_HELLO = 1,          /* up: who connects; layout never changes   */
    DTN_FRAME_WELCOME,            /* down: taken as a child                   */
    DTN_FRAME_ENTRIES,            /* up: entries new to this subtree          */
    DTN_FRAME_ASK,                /* down: the rank whose identity is wanted  */
    DTN_FRAME_IDENTITY,           /* up: that rank, its text                  */
    DTN_FRAME_EXPIRED,            /* both: deadline passed, who there runs?   */
    DTN_FRAME_ALL,                /* down: every rank's entry; ends the round */
    DTN_FRAME_FAIL,               /* both: error text; layout never changes   */
    DTN_FRAME_FAILURE,            /* both, afterwards: a rank, rank at fault  */
    DTN_FRAME_CALL,               /* both, afterwards: a rank, what it called */
    DTN_FRAME_KNOCK,              /* both, first between hosts: who is there  */
    DTN_FRAME_PROOF,              /* up: that this rank belongs to the job    */
    DTN_FRAME_REFUSED,            /* down: enum dtn_refusal; never sealed     */
    DTN_FRAME_BEAT,               /* both, afterwards: the leader runs        */
    DTN_FRAME_QUERY,              /* both, afterwards: a rank's status?       */
    DTN_FRAME_STATUS,             /* both, afterwards: a rank, its status     */
    DTN_FRAME_SILENT,             /* both, afterwards: who hears not whom     */
    DTN_FRAME_NAME,               /* both, afterwards: whom all name, or who? */
    DTN_FRAME_NTYPES
};
#define DTN_FRAME_BIT(type) (1u << (type))
#define DTN_FRAMES_WATCHED /* what may come after the first exchange */       \
    (DTN_FRAME_BIT(DTN_FRAME_FAILURE) | DTN_FRAME_BIT(DTN_FRAME_CALL)         \
     | DTN_FRAME_BIT(DTN_FRAME_BEAT) | DTN_FRAME_BIT(DTN_FRAME_QUERY)         \
     | DTN_FRAME_BIT(DTN_FRAME_STATUS) | DTN_FRAME_BIT(DTN_FRAME_SILENT)      \
     | DTN_FRAME_BIT(DTN_FRAME_NAME))

struct dtn_frame {
    unsigned version;             /* of the protocol: DTN_FRAME_VERSION       */
    enum dtn_frame_type type;     /* what the body is                         */
    uint32_t seq;                 /* round: 0 while opening, then 1, 2, ...   */
    uint32_t size;                /* of the body, in bytes                    */
    const unsigned char *body;    /* [size]                                   */
    int nfds;                     /* descriptors that travel with it          */
    const int *fds;               /* [nfds]                                   */
};

/* The result of a read or a write. */
enum dtn_frame_got {
    DTN_FRAME_READY,              /* a whole frame; everything sent           */
    DTN_FRAME_MORE,               /* not yet: poll                            */
    DTN_FRAME_CLOSED,             /* the other side is gone                   */
    DTN_FRAME_GARBAGE,            /* not our protocol, or past a limit        */
    DTN_FRAME_NOMEM,
    DTN_FRAME_NOFDS               /* descriptors came and the limit cut them  */
};

struct dtn_frame_out;             /* one frame on its way                     */

/* One connection.  With fd -1 there is none, and all calls do nothing.  The
 * struct may be moved.
 */
struct dtn_frame_stream {
    int fd;                       /* the socket, or -1                        */
    bool local;                   /* AF_UNIX: descriptors may come            */
    bool broken;                  /* sending failed: reading will tell        */
    bool stalled;                 /* too many descriptors on their way        */
    uint64_t sent;                /* bytes, ever                              */
    uint32_t accepts;             /* DTN_FRAME_BIT()s that may come now       */
    size_t entries_max;           /* longest body of ENTRIES and ALL          */
    int fds_max;                  /* most descriptors in one frame            */
    bool sealed;                  /* frames are sealed, both ways             */
    struct dtn_seal out_seal;     /* of what is sent                          */
    struct dtn_seal in_seal;      /* of what comes                            */
    unsigned char raw[DTN_FRAME_HEAD_BYTES + DTN_SEAL_BYTES]; /* head of the  */
                                  /* frame that comes, as on the wire         */
    unsigned char head[DTN_FRAME_HEAD_BYTES]; /* the same, opened             */
    size_t got;                   /* bytes of the frame that came             */
    struct dtn_frame in;          /* the frame that comes                     */
    unsigned char *body;          /* its body, allocated; NULL: in `early`    */
    unsigned char early[DTN_FRAME_EARLY]; /* body of a frame that strangers   */
                                  /* may send: nothing is allocated for them  */
    int *fds;                     /* its descriptors, allocated               */
    bool whole;                   /* `in` was handed out                      */
    struct dtn_frame_out *out;    /* oldest first                             */
    struct dtn_frame_out *out_last; /* newest                                 */
};

void dtn_frame_init(struct dtn_frame_stream *s, int fd, bool local);
void dtn_frame_close(struct dtn_frame_stream *s);

/* Read what has arrived.  READY: *frame is valid until the next call. */
enum dtn_frame_got dtn_frame_recv(struct dtn_frame_stream *s,
                                  struct dtn_frame *frame);

/* Keep the body or the descriptors of the frame of dtn_frame_recv(): the caller
 * frees the body and closes the descriptors.
 */
unsigned char *dtn_frame_take_body(struct dtn_frame_stream *s);
void dtn_frame_take_fds(struct dtn_frame_stream *s);

/* Queue a frame; its version is filled in.  The caller keeps the descriptors
 * and, with `borrow`, the body; they must stay valid until the frame is sent.
 * False: not enough memory.  A stream that is broken or not connected drops the
 * frame.
 */
bool dtn_frame_post(struct dtn_frame_stream *s, const struct dtn_frame *frame,
                    bool borrow);

/* Send as much as the socket accepts.  READY: everything is sent. */
enum dtn_frame_got dtn_frame_flush(struct dtn_frame_stream *s);

/* From now on what is posted is sealed, and only sealed frames are read. */
void dtn_frame_seal(struct dtn_frame_stream *s,
                    const unsigned char out_key[DTN_SECRET_BYTES],
                    const unsigned char in_key[DTN_SECRET_BYTES]);

/* After GARBAGE: the reason, if the other side has refused this one. */
bool dtn_frame_refused(const struct dtn_frame_stream *s, uint32_t *reason);

/* Write the head of a frame of this version.  parse: check a head against the
 * limits of the stream; READY or GARBAGE.
 */
void dtn_frame_head(unsigned char head[DTN_FRAME_HEAD_BYTES],
                    const struct dtn_frame *frame);
enum dtn_frame_got
dtn_frame_parse(const struct dtn_frame_stream *s,
                const unsigned char head[DTN_FRAME_HEAD_BYTES],
                struct dtn_frame *frame);

/* Numbers in bodies are little-endian. */
void dtn_frame_put32(unsigned char *p, uint32_t value);
void dtn_frame_put64(unsigned char *p, uint64_t value);
uint32_t dtn_frame_get32(const unsigned char *p);
uint64_t dtn_frame_get64(const unsigned char *p);

#endif
