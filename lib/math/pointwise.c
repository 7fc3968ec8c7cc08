/* pointwise.c - one element of the result from one of each operand
 *
 * A run of 1,000 elements of f16 is computed in blocks of 512: widened to f32
 * in a buffer, computed there, narrowed into the result.  A run of f32 without
 * gaps is one call of a loop.  An operand that is broadcast along the
 * run is spread over a buffer once.  The loops are in pointwise_lanes.h,
 * compiled for each vector width; they have no order to keep, so all give the
 * same bits.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/pointwise.h"
#include "math/block.h"
#include "math/complex.h"
#include "math/functions.h"
#include "math/integers.h"
#include "math/loop.h"
#include "math/pointwise_list.h"
#include "math/width.h"
#include "base/compiler.h"
#include "base/copy.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef DTN_WIDTHS
#include <immintrin.h>
#endif

enum { OPERANDS = 3 };

typedef void loop_f(void *to, const void *const in[], int64_t n,
                    const void *args);

/* By the type that is computed with; of narrow floats without a buffer; by the
 * bytes of an element; NULL: none.
 */
struct pointwise_loops {
    loop_f *of[DTENSOR_NDTYPES][DTN_POINTWISES];
    loop_f *narrow[DTENSOR_NDTYPES][DTN_POINTWISES];
    loop_f *where[17];
};

struct where_pair { uint64_t part[2]; };

#define LANES_FILE "math/pointwise_lanes.h"
#define LANES_LOOPS struct pointwise_loops
#include "math/width_lanes.h"

int dtn_pointwise_operands(enum dtn_pointwise op)
{
    return op < DTN_ADD ? 1 : op < DTN_ADDCMUL ? 2 : 3;
}

/* Of f32 that were bf16 some loops have fewer digits. */
static loop_f *loop_of(enum dtn_pointwise op, enum dtensor_dtype dtype)
{
    const struct pointwise_loops *loops = widths[dtn_width()];
    const enum dtensor_dtype work = dtn_block_type(dtype);

    if (work == DTENSOR_C128)
        return dtn_complex_loop(op);
    return loops->of[dtype][op] ? loops->of[dtype][op] : loops->of[work][op];
}

/* The loop that takes elements of type `work`. */
static loop_f *loop_with(enum dtn_pointwise op, enum dtensor_dtype dtype,
                         enum dtensor_dtype work)
{
    return work == dtn_block_type(dtype)
               ? loop_of(op, dtype) : widths[dtn_width()]->narrow[work][op];
}

static bool compares(enum dtn_pointwise op)
{
    return op >= DTN_LT && op <= DTN_NE;
}

bool dtn_pointwise_ok(enum dtn_pointwise op, enum dtensor_dtype dtype)
{
    const bool orders = op <= DTN_SIGN || op == DTN_MAXIMUM ||
                        op == DTN_MINIMUM || compares(op);

    return (orders || dtype != DTENSOR_BOOL) && loop_of(op, dtype) != NULL;
}

/* ---------------------------------------------------------------- runs --- */

/* One call: how elements come and go. */
struct pass {
    loop_f *loop;
    int first, nin;               /* operands of the loop                     */
    struct dtn_storage out, in[OPERANDS];
    double args[4];               /* two of the type of the computation       */
    enum dtn_pointwise op;        /* of two floats; else DTN_POINTWISES       */
    bool by_one;                  /* the other operand is args[0] of each run */
    bool direct;                  /* elements are where the loop can use them */
    bool large;                   /* and they do not fit a cache              */
};

/* n elements of operand i from element `first` of the run on.  One that is
 * broadcast fills its buffer in the first block of the run.
 */
static const void *pass_load(const struct pass *pass,
                             const struct dtn_loop *loop, int i, int64_t first,
                             int64_t n, void *buffer)
{
    const struct dtn_storage *how = &pass->in[i];

    if (how->step == 0 && first > 0)
        return buffer;
    return dtn_block_load(how, loop->at[i + 1] + first * how->step *
                          (int64_t)loop->size[i + 1], n, buffer);
}

static bool pass_is_direct(const struct pass *pass)
{
    bool direct = pass->out.step == 1 && pass->out.dtype == pass->out.work;

    for (int i = pass->first; i < pass->first + pass->nin; i++)
        direct &= pass->in[i].step == 1 &&
                  pass->in[i].dtype == pass->in[i].work;
    return direct;
}

/* Of the largest type in which elements are in a buffer. */
static int64_t pass_bytes(const struct pass *pass)
{
    size_t most = dtn_dtype_size(pass->out.work);

    for (int i = pass->first; i < pass->first + pass->nin; i++)
        if (dtn_dtype_size(pass->in[i].work) > most)
            most = dtn_dtype_size(pass->in[i].work);
    return (int64_t)most;
}

/* Elements of a block: what a buffer holds; less if a buffer has to be filled
 * with copies of one element.
 */
static int64_t pass_most(const struct pass *pass)
{
    enum { COPIES = 256 };
    bool copies = false;

    for (int i = pass->first; i < pass->first + pass->nin; i++)
        copies |= pass->in[i].step == 0;
    return copies ? COPIES : DTN_BLOCK_BYTES / pass_bytes(pass);
}

/* x + y, x - y and x y, where y is one number in a run, are what SHIFT and
 * SCALE make of x.
 */
static void pass_by_one(struct pass *pass)
{
    const bool product = pass->op == DTN_MUL;
    const int one = pass->in[1].step == 0 ? 1 : 0;

    if (pass->in[one].step != 0 || pass->in[1 - one].step == 0 ||
        (pass->op == DTN_SUB && one == 0) ||
        !(pass->op == DTN_ADD || pass->op == DTN_SUB || product))
        return;
    pass->by_one = true;
    pass->first = 1 - one;
    pass->nin = 1;
    pass->loop = loop_with(product ? DTN_SCALE : DTN_SHIFT,
                           pass->in[one].dtype, pass->out.work);
}

static void run_argument(const struct pass *pass, const struct dtn_loop *loop,
                         double args[4])
{
    const int one = 1 - pass->first;
    const char *at = loop->at[one + 1];
    double x;

    if (pass->in[one].dtype == DTENSOR_F32 && pass->op != DTN_SUB) {
        memcpy(args, at, sizeof(float));          /* often, and for each run  */
        return;
    }
    x = dtn_load(pass->in[one].dtype, at, 0);
    dtn_store(dtn_block_type(pass->out.work), args, 0,
              pass->op == DTN_SUB ? -x : x);
}

/* A run that needs no buffer. */
static void run_direct(const struct pass *pass, const struct dtn_loop *loop)
{
    const size_t size = loop->size[0];
    const int64_t most = pass->large ? (int64_t)(DTN_COPY_ASKED_BYTES / size)
                                     : loop->run;
    const void *in[OPERANDS];
    int64_t n;

    for (int64_t first = 0; first < loop->run; first += n) {
        char *to = loop->at[0] + (size_t)first * size;

        n = loop->run - first < most ? loop->run - first : most;
        for (int i = 0, k = pass->first + 1; i < pass->nin; i++, k++)
            in[i] = loop->at[k] + (size_t)first * loop->size[k];
        if (pass->large)
            dtn_copy_ask(to, (size_t)n * size);
        pass->loop(to, in, n, pass->args);
    }
}

static void run_buffered(const struct pass *pass, const struct dtn_loop *loop)
{
    _Alignas(64) char room[OPERANDS][DTN_BLOCK_BYTES], made[DTN_BLOCK_BYTES];
    const int64_t most = pass_most(pass);
    const void *in[OPERANDS];
    int64_t n;

    for (int64_t first = 0; first < loop->run; first += n) {
        char *at = loop->at[0] + first * loop->step[0] *
                   (int64_t)loop->size[0];
        void *to = dtn_block_place(&pass->out, at, made);

        n = loop->run - first < most ? loop->run - first : most;
        for (int i = 0; i < pass->nin; i++)
            in[i] = pass_load(pass, loop, pass->first + i, first, n, room[i]);
        pass->loop(to, in, n, pass->args);
        if (to == made)
            dtn_block_store(&pass->out, at, n, made);
    }
}

static void pass_run(struct pass *pass, const struct dtn_loop *loop)
{
    if (pass->by_one)
        run_argument(pass, loop, pass->args);
    if (pass->direct)
        run_direct(pass, loop);
    else
        run_buffered(pass, loop);
}

/* Is array i of the loop as large as the output, not broadcast? */
static bool loop_whole(const struct dtn_loop *loop, int i)
{
    bool whole = loop->step[i] != 0;

    for (int d = 0; d < loop->ndim; d++)
        whole &= loop->stride[i][d] != 0;
    return whole;
}

/* Of an output alone, of operands that stay in the cache, the CPU has enough
 * stores under way.
 */
static bool pass_is_large(const struct pass *pass, const struct dtn_loop *loop,
                          const struct dtn_array *out)
{
    bool reads = false;

    for (int i = pass->first; i < pass->first + pass->nin; i++)
        reads |= loop_whole(loop, i + 1);
    return reads && (size_t)dtn_array_count(out) * loop->size[0] >
                    DTN_COPY_LARGE_BYTES;
}

static void pass_all(struct pass *pass, const struct dtn_array *out,
                     const struct dtn_array *const in[])
{
    struct dtn_array arrays[1 + OPERANDS];     /* large: only those in use   */
    struct dtn_loop loop;

    arrays[0] = *out;
    for (int i = 0; i < pass->nin; i++)
        arrays[1 + i] = dtn_array_expanded(in[i], out);
    dtn_loop_begin(&loop, arrays, 1 + pass->nin);
    pass->out.step = loop.step[0];
    for (int i = 0; i < pass->nin; i++)
        pass->in[i].step = loop.step[1 + i];
    if (pass->op != DTN_POINTWISES && pass->nin == 2)
        pass_by_one(pass);
    pass->direct = pass_is_direct(pass);
    pass->large = pass_is_large(pass, &loop, out);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        pass_run(pass, &loop);
}

void dtn_pointwise(enum dtn_pointwise op, const struct dtn_array *out,
                   const struct dtn_array *const in[], const double args[2])
{
    const enum dtensor_dtype dtype = in[0]->dtype;
    const bool narrow = out->dtype == dtype &&
                        widths[dtn_width()]->narrow[dtype][op];
    const enum dtensor_dtype work = narrow ? dtype : dtn_block_type(dtype);
    struct pass pass = {
        .loop = loop_with(op, dtype, work),
        .nin = dtn_pointwise_operands(op),
        .out = { out->dtype, compares(op) ? out->dtype : work, 1 },
        .op = dtn_dtype_kind(dtype) == DTN_DTYPE_FLOAT ? op : DTN_POINTWISES,
    };

    for (int i = 0; i < OPERANDS; i++)
        pass.in[i] = (struct dtn_storage){ dtype, work, 1 };
    for (int i = 0; args && i < 2; i++)
        dtn_store(dtn_block_type(dtype), pass.args, (size_t)i, args[i]);
    pass_all(&pass, out, in);
}

/* --------------------------------------------------------------- where --- */

void dtn_where(const struct dtn_array *out, const struct dtn_array *condition,
               const struct dtn_array *yes, const struct dtn_array *no)
{
    const struct dtn_array *const in[OPERANDS] = { condition, yes, no };
    struct pass pass = {
        .loop = widths[dtn_width()]->where[dtn_dtype_size(out->dtype)],
        .nin = OPERANDS,
        .out = { out->dtype, out->dtype, 1 },
        .op = DTN_POINTWISES,
    };

    for (int i = 0; i < OPERANDS; i++)
        pass.in[i] = (struct dtn_storage){ in[i]->dtype, in[i]->dtype, 1 };
    pass_all(&pass, out, in);
}

/* ---------------------------------------------------------------- fill --- */

static void fill_loop(void *to, const void *const in[], int64_t n,
                         const void *args)
{
    memcpy(to, in[0], (size_t)n * *(const size_t *)args);
}

/* A broadcast copy of one element. */
void dtn_array_fill(const struct dtn_array *out, double value)
{
    char one[16];
    const struct dtn_array element = { .data = one, .dtype = out->dtype };
    const struct dtn_array *const in[OPERANDS] = { &element };
    const size_t size = dtn_dtype_size(out->dtype);
    struct pass pass = {
        .loop = fill_loop,
        .nin = 1,
        .out = { out->dtype, out->dtype, 1 },
        .in = { { out->dtype, out->dtype, 1 } },
        .op = DTN_POINTWISES,
    };

    memcpy(pass.args, &size, sizeof size);
    dtn_store(out->dtype, one, 0, value);
    pass_all(&pass, out, in);
}
