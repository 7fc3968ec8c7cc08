/* launch.c - from an operation to a kernel and its arguments
 *
 * A kernel exists for each element type and not for each reduction, so that few
 * have to be compiled: the operation is an argument, the same for all threads.
 * Types share kernels where their bits allow.  A sum of complex numbers is one
 * of twice as many floats; a sum of i32 is one of u32; bool is u8 with "or" and
 * "and"; dtn_scale() is the average of one term.
 *
 * A thread takes 16 bytes of elements at a time.  For a row of 10 bf16 that are
 * 2 units: 8 elements, then 2.
 */
#include "cuda/launch.h"
#include "base/box.h"
#include "base/dtype.h"
#include "base/equal.h"
#include "base/reduce.h"
#include "cuda/kernels.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

const struct dtn_kernel_row dtn_kernels[DTN_NKERNELS] = {
#define ROW(name, args, pointers)                                             \
    { "dtn_" #name, sizeof(struct dtn_##args), pointers },
    DTN_KERNELS(ROW)
#undef ROW
};

enum { WORD = 16 };                    /* bytes of the widest access         */

struct dtn_divide dtn_divide_by(uint64_t by)
{
    uint64_t shift = 0;
    dtn_u128 power;

    while (shift < 63 && UINT64_C(1) << shift < by)
        shift++;
    power = (dtn_u128)1 << (63 + shift);
    return (struct dtn_divide){ by, (uint64_t)((power + by - 1) / by), shift };
}

static bool is_multiple(uint64_t x, uint64_t of)
{
    return x % of == 0;
}

static uint64_t address(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

/* Runs of `run` elements, `unit` of them in a unit, at places of `outer`. */
static struct dtn_kernel_box kernel_box(const struct dtn_box *outer,
                                        uint64_t run, uint64_t unit,
                                        size_t dst_bytes, size_t src_bytes)
{
    const uint64_t per_run = (run + unit - 1) / unit;
    struct dtn_kernel_box box = {
        .units = (uint64_t)dtn_box_count(outer) * per_run, .run = run,
        .per_run = dtn_divide_by(per_run > 0 ? per_run : 1),
        .ndim = outer->ndim
    };

    for (int d = 0; box.units > 0 && d < outer->ndim; d++) {
        box.dim[d].size = dtn_divide_by((uint64_t)outer->size[d]);
        box.dim[d].dst = outer->dst_stride[d] * (int64_t)dst_bytes;
        box.dim[d].src = outer->src_stride[d] * (int64_t)src_bytes;
    }
    return box;
}

/* All bits of the addresses at which runs begin: the lowest that is 1 says how
 * they are aligned.
 */
static uint64_t box_bits(const struct dtn_kernel_box *box, const void *dst,
                         const void *src)
{
    uint64_t bits = address(dst) | address(src);

    for (int d = 0; d < box->ndim; d++)
        bits |= (uint64_t)box->dim[d].dst | (uint64_t)box->dim[d].src;
    return bits;
}

/* --------------------------------------------------------------- folds --- */

/* The kernel of a type and the bytes of what it computes with. */
struct kind {
    enum dtn_kernel kernel;
    size_t bytes;                      /* of an element of the kernel         */
    size_t each;                       /* of these in an element of the type  */
};

static struct kind kind_of_float(enum dtensor_dtype dtype, bool product)
{
    switch (dtype) {
    case DTENSOR_F64:    return (struct kind){ DTN_KERNEL_fold_f64, 8, 1 };
    case DTENSOR_F16:    return (struct kind){ DTN_KERNEL_fold_f16, 2, 1 };
    case DTENSOR_BF16:   return (struct kind){ DTN_KERNEL_fold_bf16, 2, 1 };
    case DTENSOR_F8E4M3: return (struct kind){ DTN_KERNEL_fold_f8e4m3, 1, 1 };
    case DTENSOR_F8E5M2: return (struct kind){ DTN_KERNEL_fold_f8e5m2, 1, 1 };
    case DTENSOR_C64:
        return product ? (struct kind){ DTN_KERNEL_product_c64, 8, 1 }
                       : (struct kind){ DTN_KERNEL_fold_f32, 4, 2 };
    case DTENSOR_C128:
        return product ? (struct kind){ DTN_KERNEL_product_c128, 16, 1 }
                       : (struct kind){ DTN_KERNEL_fold_f64, 8, 2 };
    default:             return (struct kind){ DTN_KERNEL_fold_f32, 4, 1 };
    }
}

static struct kind kind_of_int(enum dtensor_dtype dtype, bool average)
{
    const size_t bytes = dtn_dtype_size(dtype);

    switch (bytes) {
    case 1:
        return (struct kind){ average ? DTN_KERNEL_average_int8
                                      : DTN_KERNEL_fold_int8, bytes, 1 };
    case 2:
        return (struct kind){ average ? DTN_KERNEL_average_int16
                                      : DTN_KERNEL_fold_int16, bytes, 1 };
    case 4:
        return (struct kind){ average ? DTN_KERNEL_average_int32
                                      : DTN_KERNEL_fold_int32, bytes, 1 };
    default:
        return (struct kind){ average ? DTN_KERNEL_average_int64
                                      : DTN_KERNEL_fold_int64, bytes, 1 };
    }
}

static uint32_t fold_op(const struct dtn_reduction *how)
{
    const enum dtn_dtype_kind kind = dtn_dtype_kind(how->dtype);
    const bool is_signed = kind == DTN_DTYPE_SIGNED;
    const bool is_bool = kind == DTN_DTYPE_BOOL;

    switch (how->op) {
    case DTENSOR_PROD: return is_bool ? DTN_FOLD_BAND : DTN_FOLD_PROD;
    case DTENSOR_MIN:
        return is_bool ? DTN_FOLD_BAND
             : is_signed ? DTN_FOLD_MIN_SIGNED : DTN_FOLD_MIN;
    case DTENSOR_MAX:
        return is_bool ? DTN_FOLD_BOR
             : is_signed ? DTN_FOLD_MAX_SIGNED : DTN_FOLD_MAX;
    case DTENSOR_BAND: return DTN_FOLD_BAND;
    case DTENSOR_BOR:  return DTN_FOLD_BOR;
    case DTENSOR_BXOR: return DTN_FOLD_BXOR;
    default:           return is_bool ? DTN_FOLD_BOR : DTN_FOLD_SUM;
    }
}

/* The flags that do not depend on addresses. */
static uint32_t fold_flags(const struct dtn_reduction *how, unsigned partial,
                           int nsrc)
{
    const bool wider = how->partial != how->dtype;
    const bool times = how->factor != 1;
    uint32_t flags = 0;

    if (wider && partial & DTN_PARTIAL_DST)
        flags |= DTN_FOLD_WIDE_DST;
    if (wider && partial & DTN_PARTIAL_FIRST)
        flags |= DTN_FOLD_WIDE_FIRST;
    if (wider && partial & DTN_PARTIAL_REST)
        flags |= DTN_FOLD_WIDE_REST;
    if (times && !(partial & DTN_PARTIAL_FIRST))
        flags |= DTN_FOLD_TIMES_FIRST;
    if (times && !(partial & DTN_PARTIAL_REST))
        flags |= DTN_FOLD_TIMES_REST;
    if (nsrc > 1 || flags & DTN_FOLD_TIMES_FIRST
        || (how->divisor > 1 && !(partial & DTN_PARTIAL_DST)))
        flags |= DTN_FOLD_ONE_NAN;
    if (dtn_dtype_kind(how->dtype) == DTN_DTYPE_SIGNED)
        flags |= DTN_FOLD_SIGNED;
    return flags;
}

static struct kind fold_kind(const struct dtn_reduction *how)
{
    return dtn_dtype_is_float(how->dtype)
         ? kind_of_float(how->dtype, how->op == DTENSOR_PROD)
         : kind_of_int(how->dtype, how->work != how->dtype);
}

static void fold_begin(const struct dtn_reduction *how, unsigned partial,
                       int ndst, int nsrc, struct dtn_launch *launch)
{
    struct dtn_fold_args *args = &launch->args.fold;

    memset(launch, 0, sizeof *launch);
    launch->kernel = fold_kind(how).kernel;
    args->factor = how->factor;
    args->divisor = partial & DTN_PARTIAL_DST || how->divisor <= 1
                  ? 0 : how->divisor;
    args->ndst = ndst;
    args->nsrc = nsrc;
    args->op = fold_op(how);
    args->flags = fold_flags(how, partial, nsrc);
}

static size_t fold_bytes(const struct dtn_reduction *how, bool partial)
{
    return dtn_dtype_size(partial ? how->partial : how->dtype);
}

static bool is_flat_sum(const struct dtn_fold_args *args)
{
    const uint32_t special = DTN_FOLD_WIDE_DST | DTN_FOLD_WIDE_FIRST
                           | DTN_FOLD_WIDE_REST | DTN_FOLD_TIMES_FIRST
                           | DTN_FOLD_TIMES_REST;

    return args->op == DTN_FOLD_SUM && args->nsrc > 1 && args->box.ndim == 0
        && args->flags & DTN_FOLD_ALIGNED && !(args->flags & special);
}

/* Pointers are set.  Which elements, and are they aligned? */
static void fold_end(const struct dtn_reduction *how, unsigned partial,
                     const struct dtn_box *box, struct dtn_launch *launch)
{
    struct dtn_fold_args *args = &launch->args.fold;
    const struct kind kind = fold_kind(how);
    const bool onto = args->flags & DTN_FOLD_ONTO_DST;
    struct dtn_box outer = *box;
    uint64_t bits, run;

    dtn_box_coalesce(&outer);
    run = dtn_box_take_run(&outer) * kind.each;
    args->box = kernel_box(&outer, run, WORD / kind.bytes,
                           fold_bytes(how, partial & DTN_PARTIAL_DST),
                           fold_bytes(how, partial & (onto ? DTN_PARTIAL_REST
                                                      : DTN_PARTIAL_FIRST)));
    bits = box_bits(&args->box, NULL, NULL);
    for (int i = 0; i < args->ndst; i++)
        bits |= address(args->dst[i]);
    for (int i = 0; i < args->nsrc; i++)
        bits |= address(args->src[i]);
    if (is_multiple(bits, WORD))
        args->flags |= DTN_FOLD_ALIGNED;
    if (is_flat_sum(args))
        args->flags |= DTN_FOLD_FLAT;
    launch->threads = args->box.units;
}

bool dtn_launch_fold(const struct dtn_reduction *how, unsigned partial,
                     void *const dst[], int ndst, const void *const src[],
                     int nsrc, size_t count, struct dtn_launch *launch)
{
    const struct dtn_box flat = { 1, { (int64_t)count }, { 1 }, { 1 } };

    if (how->fn || ndst > DTN_KERNEL_TERMS || nsrc > DTN_KERNEL_TERMS)
        return false;
    fold_begin(how, partial, ndst, nsrc, launch);
    memcpy(launch->args.fold.dst, dst, (size_t)ndst * sizeof dst[0]);
    memcpy(launch->args.fold.src, src, (size_t)nsrc * sizeof src[0]);
    fold_end(how, partial, &flat, launch);
    return true;
}

bool dtn_launch_fold_box(const struct dtn_box *box,
                         const struct dtn_reduction *how, unsigned partial,
                         bool adds, void *dst, const void *src,
                         struct dtn_launch *launch)
{
    struct dtn_fold_args *args = &launch->args.fold;

    if (how->fn)
        return false;
    fold_begin(how, partial, 1, adds ? 2 : 1, launch);
    args->dst[0] = dst;
    args->src[0] = adds ? dst : src;
    args->src[1] = adds ? src : NULL;
    if (adds)
        args->flags |= DTN_FOLD_ONTO_DST;
    fold_end(how, partial, box, launch);
    return true;
}

/* The average of one term, of which a NaN keeps its bits as in dtn_scale(). */
void dtn_launch_scale(enum dtensor_dtype dtype, void *array, size_t count,
                      int n, struct dtn_launch *launch)
{
    const struct dtn_reduction how = dtn_reduction(dtype, DTENSOR_AVG, n);

    dtn_launch_fold(&how, 0, &array, 1, (const void *const *)&array, 1, count,
                    launch);
    launch->args.fold.flags &= ~(uint32_t)DTN_FOLD_ONE_NAN;
    launch->args.fold.divisor = n;
}

/* --------------------------------------------------------------- moves --- */

static void flat_to_bytes(struct dtn_box *box, size_t bytes)
{
    for (int d = 0; d < box->ndim; d++) {
        box->dst_stride[d] *= (int64_t)bytes;
        box->src_stride[d] *= (int64_t)bytes;
    }
}

/* In elements as large as alignment and length of the runs allow. */
void dtn_launch_copy_box(const struct dtn_box *box, size_t elem_bytes,
                         void *dst, const void *src, struct dtn_launch *launch)
{
    struct dtn_copy_args *args = &launch->args.copy;
    enum dtn_kernel kernel = DTN_KERNEL_copy_16;
    struct dtn_box outer = *box;
    uint64_t bits, run, unit = WORD;

    memset(launch, 0, sizeof *launch);
    dtn_box_coalesce(&outer);
    run = dtn_box_take_run(&outer) * elem_bytes;
    flat_to_bytes(&outer, elem_bytes);
    args->box = kernel_box(&outer, run, 1, 1, 1);
    bits = box_bits(&args->box, dst, src) | run;
    for (; !is_multiple(bits, unit); unit /= 2)
        kernel--;
    args->dst = dst;
    args->src = src;
    args->box.run = run / unit;
    args->box.units /= unit;
    args->box.per_run = dtn_divide_by(run / unit > 0 ? run / unit : 1);
    launch->kernel = kernel;
    launch->threads = args->box.units;
}

void dtn_launch_repeat(const void *elem, size_t elem_bytes, void *dst,
                       size_t count, struct dtn_launch *launch)
{
    struct dtn_pattern_args *args = &launch->args.pattern;
    const uint64_t head = -address(dst) % WORD;
    unsigned char twice[2 * WORD];

    memset(launch, 0, sizeof *launch);
    for (size_t i = 0; i < sizeof twice; i += elem_bytes)
        memcpy(twice + i, elem, elem_bytes);
    args->dst = dst;
    args->bytes = count * elem_bytes;
    args->head = head < args->bytes ? head : args->bytes;
    memcpy(args->pattern, twice + head % elem_bytes, WORD);
    launch->kernel = DTN_KERNEL_pattern;
    launch->threads = count > 0 ? (args->bytes + WORD - 1) / WORD + 1 : 0;
}

void dtn_launch_neutral(enum dtensor_dtype dtype, enum dtensor_redop op,
                        void *array, size_t count, struct dtn_launch *launch)
{
    _Alignas(WORD) unsigned char elem[WORD];

    dtn_fill_neutral(dtype, op, elem, 1);
    dtn_launch_repeat(elem, dtn_dtype_size(dtype), array, count, launch);
}

void dtn_launch_equal(enum dtensor_dtype dtype, const void *left,
                      const void *right, size_t count, uint32_t *differ,
                      struct dtn_launch *launch)
{
    struct dtn_equal_args *args = &launch->args.equal;
    const bool floats = dtn_dtype_is_float(dtype);
    const bool is_complex = dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX;
    const size_t bytes = dtn_dtype_size(dtype) / (is_complex ? 2 : 1);
    const uint64_t all = UINT64_MAX >> (64 - 8 * bytes);

    memset(launch, 0, sizeof *launch);
    launch->kernel = bytes == 1 ? DTN_KERNEL_equal_1
                   : bytes == 2 ? DTN_KERNEL_equal_2
                   : bytes == 4 ? DTN_KERNEL_equal_4 : DTN_KERNEL_equal_8;
    args->left = left;
    args->right = right;
    args->differ = differ;
    args->count = is_complex ? 2 * count : count;
    args->mask = floats ? all >> 1 : all;
    args->limit = floats ? dtn_equal_limit(dtype) : all;
    launch->threads = args->count;
}
