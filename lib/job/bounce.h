/* bounce.h - bounce buffers: copies of memory that peers cannot access */
#ifndef DTN_JOB_BOUNCE_H
#define DTN_JOB_BOUNCE_H

#include <stddef.h>

struct dtensor_ctx;
struct dtn_memory;

/* What a buffer is used for.  It is used for the same again: a store to a cache
 * line that a peer has read is slow, and a buffer of OUT has no such lines.
 */
enum dtn_bounce_use {
    DTN_BOUNCE_IN,                /* peers read it, or puts do                */
    DTN_BOUNCE_OUT,               /* peers write it                           */
    DTN_BOUNCE_TERMS,             /* this rank reads memory of peers into it  */
    DTN_BOUNCE_WINDOW,            /* it writes and peers read, piece by piece */
    DTN_BOUNCE_USES
};

struct dtn_bounce {
    struct dtn_bounce *next;      /* another that is free, or NULL            */
    enum dtn_bounce_use use;      /* what it is for                           */
    unsigned char *base;          /* in the arena of the context              */
    size_t bytes;                 /* size of the buffer                       */
    unsigned char *mem;           /* the part that is taken                   */
    size_t next_offset;           /* of the part to take next                 */
    const struct dtn_memory *pinned;       /* kind that pinned it, or NULL    */
};

/* The bounce buffers of a context. */
struct dtn_bounces {
    struct dtn_bounce *free[DTN_BOUNCE_USES];      /* smallest first          */
    size_t free_bytes;            /* of all that are free                     */
    int ntaken;                   /* taken and not yet given back             */
};

/* Take a buffer of at least `bytes`, which the caller alone uses until it gives
 * it back.  If `memory` pins memory, the buffer is pinned for it.  NULL: not
 * enough memory.  Free buffers of more than [redistribute] max_scratch bytes
 * are not kept.
 */
struct dtn_bounce *dtn_bounce_take(struct dtensor_ctx *ctx,
                                   enum dtn_bounce_use use,
                                   const struct dtn_memory *memory,
                                   size_t bytes);
void dtn_bounce_give(struct dtensor_ctx *ctx, struct dtn_bounce *bounce);

/* How many calls in succession find different parts of a buffer, if they take
 * so many bytes by dtn_bounce_take_next().
 */
int dtn_bounce_parts(const struct dtensor_ctx *ctx, size_t bytes);

/* Take a part that the calls before have not used lately.  The buffer is for
 * dtn_bounce_parts() of them, which take turns from the first call on.
 */
struct dtn_bounce *dtn_bounce_take_next(struct dtensor_ctx *ctx,
                                        enum dtn_bounce_use use,
                                        const struct dtn_memory *memory,
                                        size_t bytes);

/* Free all.  None is taken. */
void dtn_bounces_fini(struct dtensor_ctx *ctx);

#endif
