/* ops.c - the operations of the kind `cuda`
 *
 * Copies and bytes that are set are calls of the driver (copies.c).  All others
 * are kernels (lib/cuda), or the CPU does them on copies, by the functions of
 * the kind `host` (pass.c, boxes.c).  The results have the same bits.
 */
#include "base/box.h"
#include "base/dtype.h"
#include "base/equal.h"
#include "base/reduce.h"
#include "base/units.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/launch.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "transport/arena.h"
#include "transport/extents.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- words --- */

static const char *cuda_why(const struct dtn_memory *memory)
{
    return dtn_cuda_of(memory)->failure.text;
}

static int cuda_nomem(const struct dtn_memory *memory, const char *what,
                      size_t size, struct dtensor_error *err)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    const struct dtn_arena *arena = &cuda->arena;
    size_t free_bytes = 0, total_bytes = 0;
    char wanted[32], used[32], left[32], all[32];

    if (dtn_cuda_enter(cuda) == 0) {
        cuda->driver->cuMemGetInfo(&free_bytes, &total_bytes);
        dtn_cuda_leave(cuda);
    }
    return dtn_fail(err, DTENSOR_ENOMEM, "%s: no room for %s on %s: this rank "
                    "uses %s of %s, and %s are free for everybody (free some "
                    "tensors, or use more ranks)", what,
                    dtn_format_size(size, wanted, sizeof wanted), cuda->name,
                    dtn_format_size(arena->extents.used_bytes, used,
                                    sizeof used),
                    dtn_format_size(total_bytes, all, sizeof all),
                    dtn_format_size(free_bytes, left, sizeof left));
}

/* --------------------------------------------- by a kernel or the CPU --- */

static int cuda_pass(const struct dtn_memory *memory,
                     struct dtn_cuda_pass *pass)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    return rc != 0 ? rc : dtn_cuda_end(cuda, dtn_cuda_run(cuda, pass));
}

struct fold_how {
    const struct dtn_reduction *how;
    unsigned partial;
};

static void fold_run(const struct dtn_cuda_pass *pass, size_t first, size_t n,
                     void *dst, const void *const src[])
{
    const struct fold_how *fold = pass->how;

    dtn_fold(fold->how, fold->partial, dst, src, pass->nsrc, n);
}

/* 32 terms at a time, of which the first is the partial result so far. */
static int fold_launch(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass,
                       const struct dtn_cuda_part *part)
{
    const struct fold_how *fold = pass->how;
    const void *terms[DTN_KERNEL_TERMS];
    unsigned partial = fold->partial;
    struct dtn_launch launch;
    int rc = 0;

    for (int at = 0, n = 0; at < pass->nsrc && rc == 0; n = 1) {
        void *dst = part->extra;

        while (n < DTN_KERNEL_TERMS && at < pass->nsrc)
            terms[n++] = part->src[at++];
        if (at == pass->nsrc)
            dst = part->dst;
        dtn_launch_fold(fold->how,
                        at < pass->nsrc ? partial | DTN_PARTIAL_DST : partial,
                        &dst, 1, terms, n, part->n, &launch);
        rc = dtn_cuda_launch(cuda, &launch);
        terms[0] = part->extra;
        partial |= DTN_PARTIAL_FIRST;
    }
    return rc;
}

/* Bytes of an element, or of a partial result. */
static size_t term_bytes(const struct dtn_reduction *how, bool partial)
{
    return dtn_dtype_size(partial ? how->partial : how->dtype);
}

static int cuda_fold(const struct dtn_memory *memory,
                     const struct dtn_reduction *how, unsigned partial,
                     void *dst, const void *const src[], int nsrc,
                     size_t count)
{
    const size_t bytes = term_bytes(how, partial & DTN_PARTIAL_DST);

    if (nsrc == 1 && dtn_fold_moves(how, partial))
        return dst == src[0] ? 0 : dtn_cuda_move(memory, dst, src[0],
                                             count * bytes);
    return cuda_pass(memory, &(struct dtn_cuda_pass){
        .run = fold_run, .launch = how->fn ? NULL : fold_launch,
        .how = &(struct fold_how){ how, partial }, .dst = dst,
        .dst_bytes = bytes,
        .extra_bytes = nsrc > DTN_KERNEL_TERMS ? term_bytes(how, true) : 0,
        .nsrc = nsrc, .src = src, .count = count,
        .src_bytes = { term_bytes(how, partial & DTN_PARTIAL_FIRST),
                       term_bytes(how, partial & DTN_PARTIAL_REST) } });
}

/* Can one kernel read and write all of them? */
static bool fold_is_one(const struct dtn_cuda *cuda,
                        const struct dtn_reduction *how, void *const dst[],
                        int ndst, const void *const src[], int nsrc)
{
    bool one = cuda->library && !how->fn && nsrc > 1
            && ndst <= DTN_KERNEL_TERMS && nsrc <= DTN_KERNEL_TERMS;

    for (int i = 0; i < ndst && one; i++)
        one = dtn_cuda_holds(&cuda->memory, dst[i]);
    for (int i = 0; i < nsrc && one; i++)
        one = dtn_cuda_holds(&cuda->memory, src[i]);
    return one;
}

static int fold_once(struct dtn_cuda *cuda, const struct dtn_reduction *how,
                     unsigned partial, void *const dst[], int ndst,
                     const void *const src[], int nsrc, size_t count)
{
    struct dtn_launch launch;
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    dtn_launch_fold(how, partial, dst, ndst, src, nsrc, count, &launch);
    rc = dtn_cuda_launch(cuda, &launch);
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

static int cuda_fold_to(const struct dtn_memory *memory,
                        const struct dtn_reduction *how, unsigned partial,
                        void *const dst[], int ndst, const void *const src[],
                        int nsrc, size_t count)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    const size_t bytes = count * term_bytes(how, partial & DTN_PARTIAL_DST);
    bool launched = false;
    int rc;

    if (fold_is_one(cuda, how, dst, ndst, src, nsrc))
        return fold_once(cuda, how, partial, dst, ndst, src, nsrc, count);
    rc = cuda_fold(memory, how, partial, dst[0], src, nsrc, count);
    for (int i = 1; i < ndst && (rc == 0 || rc == DTN_LAUNCHED); i++) {
        launched |= rc == DTN_LAUNCHED;
        rc = dtn_cuda_move(memory, dst[i], dst[0], bytes);
    }
    return rc == 0 && launched ? DTN_LAUNCHED : rc;
}

struct scale {
    enum dtensor_dtype dtype;
    int n;
};

static void scale_run(const struct dtn_cuda_pass *pass, size_t first, size_t n,
                      void *dst, const void *const src[])
{
    const struct scale *scale = pass->how;

    if (dst != src[0])
        memcpy(dst, src[0], n * pass->dst_bytes);
    dtn_scale(scale->dtype, dst, n, scale->n);
}

static int scale_launch(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass,
                        const struct dtn_cuda_part *part)
{
    const struct scale *scale = pass->how;
    struct dtn_launch launch;

    dtn_launch_scale(scale->dtype, part->dst, part->n, scale->n, &launch);
    return dtn_cuda_launch(cuda, &launch);
}

static int cuda_scale(const struct dtn_memory *memory,
                      enum dtensor_dtype dtype, void *array, size_t count,
                      int n)
{
    const size_t bytes = dtn_dtype_size(dtype);

    return cuda_pass(memory, &(struct dtn_cuda_pass){
        .run = scale_run, .launch = scale_launch,
        .how = &(struct scale){ dtype, n }, .dst = array, .dst_bytes = bytes,
        .nsrc = 1, .src = (const void *[]){ array }, .src_bytes = { bytes },
        .count = count });
}

struct neutral {
    enum dtensor_dtype dtype;
    enum dtensor_redop op;
};

static void neutral_run(const struct dtn_cuda_pass *pass, size_t first,
                        size_t n, void *dst, const void *const src[])
{
    const struct neutral *neutral = pass->how;

    dtn_fill_neutral(neutral->dtype, neutral->op, dst, n);
}

static int neutral_launch(struct dtn_cuda *cuda,
                          const struct dtn_cuda_pass *pass,
                          const struct dtn_cuda_part *part)
{
    const struct neutral *neutral = pass->how;
    struct dtn_launch launch;

    dtn_launch_neutral(neutral->dtype, neutral->op, part->dst, part->n,
                       &launch);
    return dtn_cuda_launch(cuda, &launch);
}

static int cuda_neutral(const struct dtn_memory *memory,
                        enum dtensor_dtype dtype, enum dtensor_redop op,
                        void *array, size_t count)
{
    return cuda_pass(memory, &(struct dtn_cuda_pass){
        .run = neutral_run, .launch = neutral_launch,
        .how = &(struct neutral){ dtype, op }, .dst = array,
        .dst_bytes = dtn_dtype_size(dtype), .count = count });
}

struct make {
    const struct dtn_formula *formula;
    const struct dtn_elements *elements;
};

static void make_run(const struct dtn_cuda_pass *pass, size_t first, size_t n,
                     void *dst, const void *const src[])
{
    const struct make *make = pass->how;

    make->formula->make(make->elements->how,
                        make->elements->first + (int64_t)first, n, dst, src);
}

static int make_launch(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass,
                       const struct dtn_cuda_part *part)
{
    const struct make *make = pass->how;
    struct dtn_elements elements = *make->elements;
    struct dtn_launch launch;

    elements.first += (int64_t)part->first;
    elements.count = part->n;
    make->formula->launch(&elements, part->dst, part->src, &launch);
    return dtn_cuda_launch(cuda, &launch);
}

static int cuda_make(const struct dtn_memory *memory,
                     const struct dtn_formula *formula,
                     const struct dtn_elements *elements, void *out,
                     const void *const in[])
{
    return cuda_pass(memory, &(struct dtn_cuda_pass){
        .run = make_run, .launch = formula->launch ? make_launch : NULL,
        .how = &(struct make){ formula, elements }, .dst = out,
        .dst_bytes = elements->out_bytes, .nsrc = formula->ninputs, .src = in,
        .count = elements->count,
        .src_bytes = { elements->in_bytes[0], elements->in_bytes[1] } });
}

struct equal {
    enum dtensor_dtype dtype;
    bool *equalp;
    bool *launchedp;              /* the word behind the room says it         */
};

static void equal_run(const struct dtn_cuda_pass *pass, size_t first, size_t n,
                      void *dst, const void *const src[])
{
    const struct equal *equal = pass->how;

    *equal->equalp = *equal->equalp && dtn_equal(equal->dtype, src[0], src[1],
                                                 n);
}

static unsigned char *equal_word(const struct dtn_cuda *cuda)
{
    return (unsigned char *)cuda->room + DTN_CUDA_SLOT_BYTES;
}

static int equal_launch(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass,
                        const struct dtn_cuda_part *part)
{
    const struct equal *equal = pass->how;
    struct dtn_launch launch;
    int rc = 0;

    if (!*equal->launchedp)
        rc = dtn_cuda_set_device(cuda, equal_word(cuda), 0, sizeof(uint32_t));
    if (rc != 0 && rc != DTN_LAUNCHED)
        return rc;
    *equal->launchedp = true;
    dtn_launch_equal(equal->dtype, part->src[0], part->src[1], part->n,
                     (uint32_t *)(void *)equal_word(cuda), &launch);
    return dtn_cuda_launch(cuda, &launch);
}

/* Wait for the kernels and read their word. */
static int equal_read(struct dtn_cuda *cuda, bool *equalp)
{
    uint32_t differ = 1;
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_copy(cuda, &differ, equal_word(cuda), sizeof differ);
    if (rc == 0)
        rc = dtn_cuda_drain(cuda);
    *equalp = differ == 0;
    return dtn_cuda_end(cuda, rc);
}

static int cuda_equal(const struct dtn_memory *memory,
                      enum dtensor_dtype dtype, const void *left,
                      const void *right, size_t count, bool *equalp)
{
    const size_t bytes = dtn_dtype_size(dtype);
    bool launched = false;
    int rc;

    *equalp = true;
    rc = cuda_pass(memory, &(struct dtn_cuda_pass){
        .run = equal_run, .launch = equal_launch,
        .how = &(struct equal){ dtype, equalp, &launched },
        .nsrc = 2, .src = (const void *[]){ left, right },
        .src_bytes = { bytes, bytes }, .count = count });
    return rc == DTN_LAUNCHED && launched
         ? equal_read(dtn_cuda_of(memory), equalp) : rc;
}

/* -------------------------------------------------------------- boxes --- */

static int cuda_box(const struct dtn_memory *memory,
                    const struct dtn_cuda_box *op, void *dst, const void *src)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    return rc != 0 ? rc : dtn_cuda_end(cuda, dtn_cuda_box(cuda, op, dst, src));
}

static int cuda_copy_box(const struct dtn_memory *memory,
                         const struct dtn_box *box, size_t elem_bytes,
                         void *dst, const void *src)
{
    return cuda_box(memory, &(struct dtn_cuda_box){
        .box = box, .dst_bytes = elem_bytes, .src_bytes = elem_bytes },
        dst, src);
}

static int cuda_fold_box(const struct dtn_memory *memory,
                         const struct dtn_box *box,
                         const struct dtn_reduction *how, unsigned partial,
                         bool adds, void *dst, const void *src)
{
    const unsigned of_src = adds ? DTN_PARTIAL_REST : DTN_PARTIAL_FIRST;

    if (!adds && dtn_fold_moves(how, partial))
        return cuda_copy_box(memory, box,
                             term_bytes(how, partial & DTN_PARTIAL_DST), dst,
                             src);
    return cuda_box(memory, &(struct dtn_cuda_box){
        .box = box, .how = how, .partial = partial, .adds = adds,
        .dst_bytes = term_bytes(how, partial & DTN_PARTIAL_DST),
        .src_bytes = term_bytes(how, partial & of_src) }, dst, src);
}

/* --------------------------------------------------- pinning, closing --- */

/* It is only faster, so an error is none. */
static void cuda_pin(const struct dtn_memory *memory, void *mem, size_t bytes)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);

    if (dtn_cuda_enter(cuda) != 0)
        return;
    if (cuda->driver->cuMemHostRegister(mem, bytes, CU_MEMHOSTREGISTER_PORTABLE)
        != CUDA_SUCCESS)
        dtn_log(cuda->log, DTN_LOG_WARN, "gpu: cannot pin %zu bytes of host "
                "memory, so copies are slower (see ulimit -l)", bytes);
    dtn_cuda_leave(cuda);
}

static void cuda_unpin(const struct dtn_memory *memory, void *mem)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);

    if (dtn_cuda_enter(cuda) != 0)
        return;
    cuda->driver->cuMemHostUnregister(mem);
    dtn_cuda_leave(cuda);
}

static void cuda_close(struct dtn_memory *memory)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    const struct dtn_cuda_driver *driver = cuda->driver;
    CUstream streams[] = { cuda->aside, cuda->other.stream, cuda->stream };
    const bool entered = dtn_cuda_enter(cuda) == 0;

    for (int i = 0; i < DTN_CUDA_SLOTS; i++) {
        if (cuda->slot[i])
            driver->cuMemFreeHost(cuda->slot[i]);
        if (cuda->moved[i])
            driver->cuEventDestroy(cuda->moved[i]);
    }
    dtn_cuda_blas_close(cuda);
    if (cuda->end)
        driver->cuEventDestroy(cuda->end);
    for (int i = 0; i < 3; i++)
        if (streams[i])
            driver->cuStreamDestroy(streams[i]);
    dtn_cuda_kernels_close(cuda);
    dtn_arena_fini(&cuda->arena);
    if (entered)
        dtn_cuda_leave(cuda);
    driver->cuDevicePrimaryCtxRelease(cuda->device);
    free(cuda->table);
    free(cuda);
}

const struct dtn_memory_ops dtn_cuda_ops = {
    .name = "cuda",
    .holds = dtn_cuda_holds,
    .check = dtn_cuda_check,
    .begin = dtn_cuda_begin,
    .why = cuda_why,
    .nomem = cuda_nomem,
    .copy = dtn_cuda_move,
    .set = dtn_cuda_set,
    .copy_box = cuda_copy_box,
    .fold = cuda_fold,
    .fold_to = cuda_fold_to,
    .fold_box = cuda_fold_box,
    .scale = cuda_scale,
    .neutral = cuda_neutral,
    .make = cuda_make,
    .equal = cuda_equal,
    .computes = dtn_cuda_computes,
    .launch = dtn_cuda_launch_one,
    .multiplies = dtn_cuda_multiplies,
    .multiply = dtn_cuda_multiply,
    .settle = dtn_cuda_settle,
    .signals = dtn_cuda_signals,
    .post = dtn_cuda_post,
    .hold = dtn_cuda_hold,
    .look = dtn_cuda_look,
    .unhold = dtn_cuda_unhold,
    .turn = dtn_cuda_turn,
    .join = dtn_cuda_join,
    .record = dtn_cuda_record,
    .batch = dtn_cuda_batch,
    .recorded = dtn_cuda_recorded,
    .replay = dtn_cuda_replay,
    .forget = dtn_cuda_forget,
    .clock = &dtn_cuda_clock,
    .pin = cuda_pin, .unpin = cuda_unpin,
    .close = cuda_close,
};
