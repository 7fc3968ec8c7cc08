/* memory.h - kinds of memory, and what is done with the bytes in each */
#ifndef DTN_DEVICE_MEMORY_H
#define DTN_DEVICE_MEMORY_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_box;
struct dtn_memory;
struct dtn_reduction;

/* An operation on elements that a room above defines: random numbers, indices,
 * dropout.  Elements first .. first + count - 1 of some sequence are written to
 * `out`, element by element, from those of `in` where it has inputs.  The
 * function runs on the CPU.  A kind whose memory the CPU does not reach runs it
 * on copies, or knows the formula by its address and has code of its own.
 */
enum { DTN_FORMULA_INPUTS = 2 };

struct dtn_formula {
    void (*make)(const void *how, int64_t first, size_t count, void *out,
                 const void *const in[]);
    int ninputs;                  /* arrays that it reads                      */
};

struct dtn_elements {
    const void *how;              /* of the formula, in host memory            */
    int64_t first;                /* index of the first element                */
    size_t count;                 /* elements                                  */
    size_t out_bytes;             /* of an element that is written             */
    size_t in_bytes[DTN_FORMULA_INPUTS];   /* of an element of each input      */
};

/* What an operation returns: 0: it is done; DTN_LAUNCHED: it will be done by
 * the time that settle() has returned 0, after all operations that were
 * launched before it; else a code, after which the contents are unspecified.
 * Arrays of pointers, boxes and `how` need not outlive the call.
 *
 * Each pointer is to memory of this kind or of the host.
 */
enum { DTN_LAUNCHED = 1 };

struct dtn_memory_ops {
    const char *name;

    /* Is `mem` the address of memory of this kind? */
    bool (*holds)(const struct dtn_memory *memory, const void *mem);

    int (*copy)(const struct dtn_memory *memory, void *dst, const void *src,
                size_t bytes);
    int (*set)(const struct dtn_memory *memory, void *dst, int byte,
               size_t bytes);

    /* As dtn_box_copy(), dtn_fold(), dtn_box_fold(), dtn_scale() and
     * dtn_fill_neutral().
     */
    int (*copy_box)(const struct dtn_memory *memory, const struct dtn_box *box,
                    size_t elem_bytes, void *dst, const void *src);
    int (*fold)(const struct dtn_memory *memory,
                const struct dtn_reduction *how, unsigned partial, void *dst,
                const void *const src[], int nsrc, size_t count);
    int (*fold_box)(const struct dtn_memory *memory, const struct dtn_box *box,
                    const struct dtn_reduction *how, unsigned partial,
                    bool adds, void *dst, const void *src);
    int (*scale)(const struct dtn_memory *memory, enum dtensor_dtype dtype,
                 void *array, size_t count, int n);
    int (*neutral)(const struct dtn_memory *memory, enum dtensor_dtype dtype,
                   enum dtensor_redop op, void *array, size_t count);

    int (*make)(const struct dtn_memory *memory,
                const struct dtn_formula *formula,
                const struct dtn_elements *elements, void *out,
                const void *const in[]);

    /* As dtn_equal(); *equalp, in host memory, is set once it is settled. */
    int (*equal)(const struct dtn_memory *memory, enum dtensor_dtype dtype,
                 const void *left, const void *right, size_t count,
                 bool *equalp);

    /* 0: all that was launched is done.  EAGAIN, unless it waits: not yet. */
    int (*settle)(const struct dtn_memory *memory, bool waits);

    /* Free everything; nothing is under way. */
    void (*close)(struct dtn_memory *memory);
};

/* A kind in use: each implementation's own struct begins with this. */
struct dtn_memory {
    const struct dtn_memory_ops *ops;
    struct dtn_arena *arena;      /* what is allocated in it; NULL: of the     */
                                  /* context                                   */
};

extern const struct dtn_memory dtn_host;                   /* host.c          */

/* Which of `device`, which may be NULL, and the host does operations on these
 * two?  One of them may be NULL.
 */
static inline const struct dtn_memory *dtn_memory_of(
    const struct dtn_memory *device, const void *one, const void *other)
{
    return device && (device->ops->holds(device, one)
                      || device->ops->holds(device, other)) ? device : &dtn_host;
}

/* What an operation returned, once it is done: 0 or its code. */
static inline int dtn_memory_done(const struct dtn_memory *memory, int rc)
{
    return rc == DTN_LAUNCHED ? memory->ops->settle(memory, true) : rc;
}

#endif
