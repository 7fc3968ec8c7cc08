/* memory.h - kinds of memory, and the operations on each */
#ifndef DTN_DEVICE_MEMORY_H
#define DTN_DEVICE_MEMORY_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_box;
struct dtn_elements;
struct dtn_exporter;
struct dtn_graph;
struct dtn_launch;
struct dtn_memory;
struct dtn_point;
struct dtn_reduction;

/* A formula for elements, defined by a higher room: random numbers, indices,
 * dropout.  It computes elements first .. first + count - 1 of a sequence, each
 * from the same element of its inputs `in`, if it has any.  make() runs on the
 * CPU.  If the CPU cannot access a kind of memory, that kind launches a kernel
 * where it can, or else calls make() on copies.
 */
enum { DTN_FORMULA_INPUTS = 2 };

struct dtn_formula {
    /* Write the elements to `out`. */
    void (*make)(const void *how, int64_t first, size_t count, void *out,
                 const void *const in[]);

    /* Write the launch of a kernel of lib/cuda that writes the same to `out`.
     * NULL: there is no kernel.
     */
    void (*launch)(const struct dtn_elements *elements, void *out,
                   const void *const in[], struct dtn_launch *launch);
    int ninputs;                  /* arrays that it reads                     */
};

struct dtn_elements {
    const void *how;              /* of the formula, in host memory           */
    int64_t first;                /* index of the first element               */
    size_t count;                 /* elements                                 */
    size_t out_bytes;             /* of an element that is written            */
    size_t in_bytes[DTN_FORMULA_INPUTS];   /* of an element of each input     */
};

/* out = a b, or out + a b: `batch` times m x k by k x n.  `out` has rows. */
struct dtn_gemm {
    enum dtensor_dtype dtype;     /* of all elements                          */
    int m, n, k;                  /* rows and columns of out, terms; above 0  */
    int batch;                    /* products                                 */
    bool adds;                    /* to what `out` holds                      */
    struct dtn_gemm_matrix {
        void *data;               /* the first element of the first matrix    */
        bool transposed;          /* columns are contiguous, not rows         */
        int stride;               /* elements from a row (or column) to the   */
                                  /* next                                     */
        int64_t apart;            /* elements from a matrix to the next       */
    } out, a, b;                  /* see above                                */
};

/* An operation returns 0 if it is complete, or DTN_LAUNCHED if it is complete
 * after settle() has returned 0; launched operations run in their order.  Any
 * other value is an error code, and the contents are then unspecified.  Arrays
 * of pointers, boxes and `how` may be freed when the call returns.
 *
 * Each pointer is to memory of this kind or of the host.
 */
enum { DTN_LAUNCHED = 1 };

/* A word by which devices signal, and what is done with it. */
struct dtn_word_op {
    void *word;                   /* as of post() and hold()                  */
    uint64_t value;               /* written or waited for                    */
    bool posts;                   /* written; else waited for                 */
};

/* Points in the queue of operations, by which the device tells the time. */
struct dtn_clock {
    /* Make a point. */
    int (*create)(const struct dtn_memory *memory, struct dtn_point **pointp);

    /* Put it behind all launched operations.  It can be put there again. */
    int (*note)(const struct dtn_memory *memory, struct dtn_point *point);

    /* Nanoseconds from when the device reached one to when it reached the
     * other; EAGAIN: it has not reached both.
     */
    int (*between)(const struct dtn_memory *memory, struct dtn_point *from,
                   struct dtn_point *to, int64_t *nsp);

    /* Free a point. */
    void (*destroy)(const struct dtn_memory *memory, struct dtn_point *point);
};

struct dtn_memory_ops {
    const char *name;             /* of the kind, for messages                */

    /* Is `mem` the address of memory of this kind? */
    bool (*holds)(const struct dtn_memory *memory, const void *mem);

    /* May `bytes` bytes at `mem`, of any kind, be used now?  `what` begins the
     * words of an error.   Errors: EINVAL, ENODEV
     */
    int (*check)(const struct dtn_memory *memory, const char *what,
                 const void *mem, size_t bytes, struct dtensor_error *err);

    /* Operations from now on come after what the program has enqueued.  Peers
     * and cards, which access the memory themselves, wait for settle().
     */
    int (*begin)(const struct dtn_memory *memory);

    /* In words, why the last operation that failed did. */
    const char *(*why)(const struct dtn_memory *memory);

    /* Words for ENOMEM, after dtn_arena_alloc() of `size` bytes for `what` in
     * the arena of this kind returned NULL; returns ENOMEM.  NULL: it has none.
     */
    int (*nomem)(const struct dtn_memory *memory, const char *what, size_t size,
                 struct dtensor_error *err);

    /* As memcpy(). */
    int (*copy)(const struct dtn_memory *memory, void *dst, const void *src,
                size_t bytes);

    /* Set each byte to `byte`. */
    int (*set)(const struct dtn_memory *memory, void *dst, int byte,
               size_t bytes);

    /* As dtn_box_copy(). */
    int (*copy_box)(const struct dtn_memory *memory, const struct dtn_box *box,
                    size_t elem_bytes, void *dst, const void *src);

    /* As dtn_fold(). */
    int (*fold)(const struct dtn_memory *memory,
                const struct dtn_reduction *how, unsigned partial, void *dst,
                const void *const src[], int nsrc, size_t count);

    /* The same result in `ndst` places, in memory of this kind, of the host, or
     * of peers that it reaches.  NULL: fold() and copies do it.
     */
    int (*fold_to)(const struct dtn_memory *memory,
                   const struct dtn_reduction *how, unsigned partial,
                   void *const dst[], int ndst, const void *const src[],
                   int nsrc, size_t count);

    /* As dtn_box_fold(). */
    int (*fold_box)(const struct dtn_memory *memory, const struct dtn_box *box,
                    const struct dtn_reduction *how, unsigned partial,
                    bool adds, void *dst, const void *src);

    /* As dtn_scale(). */
    int (*scale)(const struct dtn_memory *memory, enum dtensor_dtype dtype,
                 void *array, size_t count, int n);

    /* As dtn_fill_neutral(). */
    int (*neutral)(const struct dtn_memory *memory, enum dtensor_dtype dtype,
                   enum dtensor_redop op, void *array, size_t count);

    /* Apply a formula to elements: see struct dtn_formula. */
    int (*make)(const struct dtn_memory *memory,
                const struct dtn_formula *formula,
                const struct dtn_elements *elements, void *out,
                const void *const in[]);

    /* As dtn_equal().  *equalp is in host memory and is set after settle(). */
    int (*equal)(const struct dtn_memory *memory, enum dtensor_dtype dtype,
                 const void *left, const void *right, size_t count,
                 bool *equalp);

    /* Can kernels of lib/cuda be launched?  NULL: no. */
    bool (*computes)(const struct dtn_memory *memory);

    /* Launch one, on memory of this kind only.  NULL: as computes(). */
    int (*launch)(const struct dtn_memory *memory, struct dtn_launch *launch);

    /* Does a library multiply matrices of this type?  NULL: no.  The first call
     * may load it.
     */
    bool (*multiplies)(const struct dtn_memory *memory,
                       enum dtensor_dtype dtype);

    /* Multiply, in memory of this kind only. */
    int (*multiply)(const struct dtn_memory *memory,
                    const struct dtn_gemm *product);

    /* 0: all launched operations are complete.  EAGAIN, only without `waits`:
     * not yet.
     */
    int (*settle)(const struct dtn_memory *memory, bool waits);

    /* Can devices of this kind signal each other?  They do by words of 8 bytes
     * in memory of this kind, of this rank or of a peer.  NULL, as the four
     * that follow: no.
     */
    bool (*signals)(const struct dtn_memory *memory);

    /* Write a word after all launched operations. */
    int (*post)(const struct dtn_memory *memory, void *word, uint64_t value);

    /* Operations from now on come after the word has reached the value. */
    int (*hold)(const struct dtn_memory *memory, void *word, uint64_t value);

    /* Read words into host memory at once, whatever was launched. */
    int (*look)(const struct dtn_memory *memory, uint64_t to[],
                const void *words, size_t bytes);

    /* Let operations go on that wait for these words, which cannot be used any
     * more.
     */
    int (*unhold)(const struct dtn_memory *memory, void *words, size_t bytes);

    /* There are two queues of operations, one of which is for calls that were
     * started.  Use it from now on, or the other one.  NULL, as join(): there
     * is one queue.
     */
    void (*turn)(const struct dtn_memory *memory, bool started);

    /* Operations from now on come after those of the queue that is not used. */
    int (*join)(const struct dtn_memory *memory);

    /* Record operations from now on, instead of doing them.  NULL, as the four
     * that follow: cannot.
     */
    int (*record)(const struct dtn_memory *memory);

    /* While recording, post() and hold() words in this order, in one operation:
     * the only one on words that can be recorded.
     */
    int (*batch)(const struct dtn_memory *memory,
                 const struct dtn_word_op ops[], int n);

    /* The end of recording.  *graphp is what was recorded; graphp NULL: it is
     * thrown away.
     */
    int (*recorded)(const struct dtn_memory *memory, struct dtn_graph **graphp);

    /* Do what was recorded, with these words for those of all batches in their
     * order.  After an error nothing of it is done.
     */
    int (*replay)(const struct dtn_memory *memory, struct dtn_graph *graph,
                  const struct dtn_word_op ops[]);

    /* Free what was recorded. */
    void (*forget)(const struct dtn_memory *memory, struct dtn_graph *graph);

    /* The clock of the device; NULL: it has none. */
    const struct dtn_clock *clock;

    /* Host memory of whole pages is about to be copied to and from memory of
     * this kind often.  A pin that fails is not reported.  NULL, as unpin():
     * nothing makes such copies faster.
     */
    void (*pin)(const struct dtn_memory *memory, void *mem, size_t bytes);

    /* Undo pin(). */
    void (*unpin)(const struct dtn_memory *memory, void *mem);

    /* Free everything.  No operation is in progress. */
    void (*close)(struct dtn_memory *memory);
};

/* A kind in use.  The struct of each implementation begins with this. */
struct dtn_memory {
    const struct dtn_memory_ops *ops; /* operations of this kind              */
    struct dtn_arena *arena;      /* memory allocated in it; NULL: the        */
                                  /* context's own arena                      */
    const struct dtn_exporter *exporter;  /* for transports; NULL: none       */
                                  /* reaches this memory                      */
    uint64_t given;               /* operations that were launched so far, of */
                                  /* kinds with a clock                       */
};

extern const struct dtn_memory dtn_host;                   /* host.c          */

/* The kind that operates on these two pointers: `device` if one of them is to
 * its memory, else the host.  `device` and one pointer may be NULL.
 */
static inline const struct dtn_memory *dtn_memory_of(
    const struct dtn_memory *device, const void *one, const void *other)
{
    return device && (device->ops->holds(device, one)
                      || device->ops->holds(device, other)) ? device
                                                            : &dtn_host;
}

/* Wait until the operation that returned `rc` is complete: 0 or its code. */
static inline int dtn_memory_done(const struct dtn_memory *memory, int rc)
{
    return rc == DTN_LAUNCHED ? memory->ops->settle(memory, true) : rc;
}

#endif
