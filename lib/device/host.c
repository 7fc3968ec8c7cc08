/* host.c - the kind `host`: memory that the CPU loads and stores
 *
 * Every operation is a function of lib/base and is complete when it returns.
 */
#include "base/box.h"
#include "base/copy.h"
#include "base/equal.h"
#include "base/reduce.h"
#include "device/memory.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

static bool host_holds(const struct dtn_memory *memory, const void *mem)
{
    return true;
}

static int host_check(const struct dtn_memory *memory, const char *what,
                      const void *mem, size_t bytes, struct dtensor_error *err)
{
    return 0;
}

static int host_begin(const struct dtn_memory *memory)
{
    return 0;
}

static const char *host_why(const struct dtn_memory *memory)
{
    return "";
}

static int host_copy(const struct dtn_memory *memory, void *dst,
                     const void *src, size_t bytes)
{
    dtn_copy(dst, src, bytes);
    return 0;
}

static int host_set(const struct dtn_memory *memory, void *dst, int byte,
                    size_t bytes)
{
    memset(dst, byte, bytes);
    return 0;
}

static int host_copy_box(const struct dtn_memory *memory,
                         const struct dtn_box *box, size_t elem_bytes,
                         void *dst, const void *src)
{
    dtn_box_copy(box, elem_bytes, dst, src);
    return 0;
}

static int host_fold(const struct dtn_memory *memory,
                     const struct dtn_reduction *how, unsigned partial,
                     void *dst, const void *const src[], int nsrc,
                     size_t count)
{
    dtn_fold(how, partial, dst, src, nsrc, count);
    return 0;
}

static int host_fold_box(const struct dtn_memory *memory,
                         const struct dtn_box *box,
                         const struct dtn_reduction *how, unsigned partial,
                         bool adds, void *dst, const void *src)
{
    dtn_box_fold(box, how, partial, adds, dst, src);
    return 0;
}

static int host_scale(const struct dtn_memory *memory,
                      enum dtensor_dtype dtype, void *array, size_t count,
                      int n)
{
    dtn_scale(dtype, array, count, n);
    return 0;
}

static int host_neutral(const struct dtn_memory *memory,
                        enum dtensor_dtype dtype, enum dtensor_redop op,
                        void *array, size_t count)
{
    dtn_fill_neutral(dtype, op, array, count);
    return 0;
}

static int host_make(const struct dtn_memory *memory,
                     const struct dtn_formula *formula,
                     const struct dtn_elements *elements, void *out,
                     const void *const in[])
{
    formula->make(elements->how, elements->first, elements->count, out, in);
    return 0;
}

static int host_equal(const struct dtn_memory *memory,
                      enum dtensor_dtype dtype, const void *left,
                      const void *right, size_t count, bool *equalp)
{
    *equalp = dtn_equal(dtype, left, right, count);
    return 0;
}

static int host_settle(const struct dtn_memory *memory, bool waits)
{
    return 0;
}

static void host_close(struct dtn_memory *memory)
{
}

static const struct dtn_memory_ops host_ops = {
    .name = "host",
    .holds = host_holds,
    .check = host_check,
    .begin = host_begin,
    .why = host_why,
    .copy = host_copy,
    .set = host_set,
    .copy_box = host_copy_box,
    .fold = host_fold,
    .fold_box = host_fold_box,
    .scale = host_scale,
    .neutral = host_neutral,
    .make = host_make,
    .equal = host_equal,
    .settle = host_settle,
    .close = host_close,
};

const struct dtn_memory dtn_host = { .ops = &host_ops };
