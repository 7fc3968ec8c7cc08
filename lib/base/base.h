/* base.h - L0: what every other room stands on
 *
 * errors (error.c), logging (log.c), checked sizes and units (units.c),
 * the right word for an unknown one (words.c), the version (version.c),
 * element types (dtype.c, narrow.h), comparing (equal.c), reductions
 * (reduction.c, reduce*.c), strided boxes (box.c), copying (copy.c),
 * time and patience (wait.c).
 */
#ifndef DTN_BASE_H
#define DTN_BASE_H

#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>

#define DTN_CACHE_LINE 64
#define DTN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define DTN_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ------------------------------------------------------------- error.c --- */

/* Fill *err (NULL: do nothing) and return `code`, so that a failing function
 * is one statement: return dtn_fail(err, DTENSOR_EINVAL, "mesh: ...", ...).
 * The text is `what: fact with values (what to do)`.  errno is preserved.
 */
int dtn_fail(struct dtensor_error *err, int code, const char *fmt, ...)
    DTN_PRINTF(3, 4);

/* The same for a failed system call: ESYS (ENOMEM for errno ENOMEM), and %m in
 * `fmt` prints the words for `sys_errno`.
 */
int dtn_fail_sys(struct dtensor_error *err, int sys_errno, const char *fmt, ...)
    DTN_PRINTF(3, 4);

/* The same with a culprit. */
int dtn_fail_rank(struct dtensor_error *err, int code, int rank,
                  const char *fmt, ...) DTN_PRINTF(4, 5);

/* "out of memory" for `what`, `size` bytes. */
int dtn_fail_nomem(struct dtensor_error *err, const char *what, size_t size);

/* --------------------------------------------------------------- log.c --- */

enum dtn_log_level { DTN_LOG_OFF, DTN_LOG_WARN, DTN_LOG_INFO, DTN_LOG_DEBUG };

/* Where a context's log goes.  `rank` is -1 until it is known. */
struct dtn_log {
    enum dtn_log_level level;
    int rank;
    FILE *stream;
    unsigned dropped;             /* lines dropped, not yet reported           */
};

/* Level from DTN_LOG, stream stderr; warn for a word that is no level. */
void dtn_log_init(struct dtn_log *log);

/* Warn of such a word, on rank 0 and where the rank is not known. */
void dtn_log_check(struct dtn_log *log);

/* One line "dtensor[rank 3] room: text".  Choices and degradations only,
 * never an error that is also returned.
 */
void dtn_log(struct dtn_log *log, enum dtn_log_level level,
             const char *fmt, ...) DTN_PRINTF(3, 4);

/* ------------------------------------------------------------- units.c --- */

/* a*b and a+b into *out; false, leaving it alone, when that overflows. */
bool dtn_mul_size(size_t a, size_t b, size_t *out);
bool dtn_add_size(size_t a, size_t b, size_t *out);

/* Whole decimal number (0x too if `hex`), all of the text, at most `max`. */
bool dtn_parse_u64(const char *text, bool hex, uint64_t max, uint64_t *out);

/* "512K" is 524288: K M G T are powers of 1024. */
bool dtn_parse_size(const char *text, uint64_t *bytes);

/* "30s" is 30e9: a unit is required, us ms s or min. */
bool dtn_parse_time(const char *text, int64_t *ns);

/* "512.0 KiB", "1.5 s": for people.  Return `buf`. */
char *dtn_format_size(uint64_t bytes, char *buf, size_t size);
char *dtn_format_time(int64_t ns, char *buf, size_t size);

/* Ranks as people write them: {0,1,2,5} is "0-2,5"; cut with "..." . */
char *dtn_format_ranks(const int ranks[], int n, char *buf, size_t size);

/* ------------------------------------------------------------- words.c --- */

/* The name in `known` (NULL-terminated) for which another library uses `word`,
 * such as avg for "mean" and allreduce for "MPI_Allreduce"; NULL: none.
 */
const char *dtn_synonym(const char *word, const char *const known[]);

/* The one that is spelled nearly so, if it is near enough to be meant; or NULL.
 */
const char *dtn_nearest(const char *word, const char *const known[]);

/* -------------------------------------------------------------- copy.c --- */

/* memcpy() past the caches.  Other CPUs may see the bytes when they see what
 * this one stores after the fence.
 */
void dtn_copy_past(void *dst, const void *src, size_t bytes);
void dtn_copy_fence(void);

/* ------------------------------------------------------------- dtype.c --- */

bool dtn_dtype_ok(enum dtensor_dtype dtype);

/* 128-bit integers, in which averages of 64-bit integers are added.  Internal:
 * no caller has buffers of this type, and it has no name or size.
 */
#define DTN_I128 ((enum dtensor_dtype)DTENSOR_NDTYPES)
enum { DTN_NDTYPES = DTENSOR_NDTYPES + 1 };
__extension__ typedef __int128 dtn_i128;
__extension__ typedef unsigned __int128 dtn_u128;

enum dtn_dtype_kind {
    DTN_DTYPE_FLOAT, DTN_DTYPE_COMPLEX, DTN_DTYPE_SIGNED, DTN_DTYPE_UNSIGNED,
    DTN_DTYPE_BOOL
};
enum dtn_dtype_kind dtn_dtype_kind(enum dtensor_dtype dtype);

/* Is division exact but for rounding: floats and complex numbers? */
bool dtn_dtype_is_float(enum dtensor_dtype dtype);

/* Is it a float of 16 or 8 bits, which is computed with as f32? */
bool dtn_dtype_is_narrow(enum dtensor_dtype dtype);

/* The type in which sums over ranks neither overflow nor lose digits; itself, of
 * f32, f64, bool and complex numbers.  Bytes of any type, of DTN_I128 too.
 */
enum dtensor_dtype dtn_dtype_wide(enum dtensor_dtype dtype);
size_t dtn_dtype_size(enum dtensor_dtype dtype);

/* Does this reduction exist for this type?  See enum dtensor_redop. */
bool dtn_redop_ok(enum dtensor_redop op, enum dtensor_dtype dtype);

/* Reductions made at run time are numbered from DTN_MADE_FIRST on, functions of
 * the caller's odd.  The kind of any reduction is a built-in one or one of two
 * more, which have names, too.
 */
enum { DTN_MADE_FIRST = 0x10000, DTN_MADE_USER = 1 };
enum { DTN_REDOP_PREMUL = DTENSOR_NREDOPS, DTN_REDOP_USER, DTN_NREDOPS };
int dtn_redop_kind(enum dtensor_redop op);

/* What PyTorch calls them: "f8e4m3fn", "b8", "product".  Static. */
const char *dtn_dtype_torch(enum dtensor_dtype dtype);
const char *dtn_redop_torch(enum dtensor_redop op);

/* Element `i` of an array, read and written as double (integers rounded
 * toward zero and clamped, bool by != 0, of complex numbers the real part,
 * with an imaginary 0).  For slow paths: fills, checks, printing.
 */
double dtn_load(enum dtensor_dtype dtype, const void *array, size_t i);
void dtn_store(enum dtensor_dtype dtype, void *array, size_t i, double value);

/* Element `i` of an array of integers or bool, exactly; of u64 the bits. */
int64_t dtn_load_int(enum dtensor_dtype dtype, const void *array, size_t i);
void dtn_store_int(enum dtensor_dtype dtype, void *array, size_t i,
                   int64_t value);

/* The 16-bit floats, round to nearest even. */
float dtn_f16_to_f32(uint16_t bits);
uint16_t dtn_f32_to_f16(float value);
float dtn_bf16_to_f32(uint16_t bits);
uint16_t dtn_f32_to_bf16(float value);

/* ------------------------------------------------------------- equal.c --- */

/* Are they the same numbers?  -0 equals 0, a NaN nothing.  Both aligned. */
bool dtn_equal(enum dtensor_dtype dtype, const void *left, const void *right,
               size_t count);

/* ------------------------------------------------------------ reduce.c --- */

/* A reduction of one type over ranks.  What the caller's arrays hold are
 * *elements*; what lies between two steps is a *partial result*, of type
 * `partial`: f32 where floats of 16 and 8 bits are added, multiplied or given
 * to a function of the caller's, and i64 or 128 bits where integers are averaged,
 * so that all of them are rounded once, at the end, and no sum overflows; else
 * the element's own type.  An element that comes in is *lifted*:
 * widened, and multiplied by `factor`.  A result that becomes an element is
 * *dropped*: divided by `divisor`, and rounded.
 */
struct dtn_reduction {
    enum dtensor_dtype dtype;
    enum dtensor_dtype partial;
    enum dtensor_dtype work;      /* type of the computation                   */
    enum dtensor_redop op;        /* a built-in one; AVG folds as SUM          */
    int divisor;                  /* of AVG the ranks, else 1                  */
    double factor;                /* of a premultiplied sum, else 1            */
    dtensor_reduce_f *fn;         /* folds instead of `op`; or NULL            */
    void *arg;
};

/* That of a built-in `op` over n ranks. */
struct dtn_reduction dtn_reduction(enum dtensor_dtype dtype,
                                   enum dtensor_redop op, int n);

/* Is an element something else than a partial result of one term, and is a
 * partial result of all terms something else than the element it becomes?
 */
bool dtn_reduction_lifts(const struct dtn_reduction *how);
bool dtn_reduction_drops(const struct dtn_reduction *how);

/* Elements that take as much memory as one partial result: 1, 2, 4 or 8. */
size_t dtn_reduction_ratio(const struct dtn_reduction *how);

/* dst[i] = src[0][i] op src[1][i] op ... op src[nsrc-1][i], folded from the
 * left in that order, nsrc >= 1.  `partial` says which of them are partial
 * results; the rest are elements.  dst may be the same as any src of its kind,
 * else does not overlap.  Of bool SUM and MAX are or, PROD and MIN are and, if
 * it is 0 or 1.  MIN and MAX keep the left of two equal ones, such as -0 and
 * +0; a NaN that comes out of two or more sources is always the same positive
 * quiet one, and that of a single source quiet or not.  The type has the
 * operation: dtn_redop_ok() was asked when the reduction was made.  Dispatches
 * to the widest vectors of the CPU at run time; every width gives the same bits.
 */
enum {
    DTN_PARTIAL_DST = 1,
    DTN_PARTIAL_FIRST = 2,                  /* src[0]                        */
    DTN_PARTIAL_REST = 4                    /* src[1] and all that follow    */
};
void dtn_fold(const struct dtn_reduction *how, unsigned partial, void *dst,
              const void *const src[], int nsrc, size_t count);

/* The same of elements only, AVG as SUM. */
void dtn_reduce(enum dtensor_dtype dtype, enum dtensor_redop op, void *dst,
                const void *const src[], int nsrc, size_t count);

/* One of the widths by number, narrowest first, and its name; NULL when this
 * CPU has no more.  For tests and measurements.
 */
void dtn_fold_width(int width, const struct dtn_reduction *how,
                    unsigned partial, void *dst, const void *const src[],
                    int nsrc, size_t count);
const char *dtn_reduce_width_name(int width);

/* Their naive twins: one element at a time, for tests. */
void dtn_fold_naive(const struct dtn_reduction *how, unsigned partial,
                    void *dst, const void *const src[], int nsrc,
                    size_t count);
void dtn_reduce_naive(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *dst, const void *const src[], int nsrc,
                      size_t count);

/* reduce_ends.c: array[i] /= n; integers round toward zero. */
void dtn_scale(enum dtensor_dtype dtype, void *array, size_t count, int n);

/* array[i] = the neutral element of op: 0 (of floats -0, which changes no
 * zero's sign), 1, +inf or type maximum, ...  A complex 1 changes the sign of
 * some zeros and makes a NaN of an infinity, as multiplication is defined.
 */
void dtn_fill_neutral(enum dtensor_dtype dtype, enum dtensor_redop op,
                      void *array, size_t count);

/* --------------------------------------------------------------- box.c --- */

/* An n-dimensional box of elements seen from two arrays.  Strides in elements
 * between neighbours along each dimension; a row of the last dimension with
 * stride 1 on both sides is one memcpy.  ndim 0 is one element; any size 0 is
 * none.
 */
#define DTN_BOX_DIMS (2 * DTENSOR_MAX_DIMS)    /* runs, along each dimension */

struct dtn_box {
    int ndim;
    int64_t size[DTN_BOX_DIMS];
    int64_t dst_stride[DTN_BOX_DIMS];
    int64_t src_stride[DTN_BOX_DIMS];
};

/* Merge dimensions that lie flat on both sides and drop those of size 1: the
 * fewest, longest runs.  The elements stay the same.
 */
void dtn_box_coalesce(struct dtn_box *box);

int64_t dtn_box_count(const struct dtn_box *box);

/* Take the last dimension off a coalesced box if its elements are neighbours
 * on both sides, and return how many they are; else 1.  What is left are the
 * places where these runs begin.
 */
size_t dtn_box_take_run(struct dtn_box *box);

/* An odometer over a box, row-major, in the unit of its strides: begin with
 * all 0.  next() is false when there was no further place.
 */
struct dtn_walk {
    const struct dtn_box *box;
    int64_t index[DTN_BOX_DIMS];
    int64_t dst;
    int64_t src;
};
bool dtn_walk_next(struct dtn_walk *walk);

/* Copy the box of `elem_bytes`-byte elements; dst and src are its first. */
void dtn_box_copy(const struct dtn_box *box, size_t elem_bytes, void *dst,
                  const void *src);

/* dtn_fold() over the box: of dst and src if it adds, else of src alone. */
void dtn_box_fold(const struct dtn_box *box, const struct dtn_reduction *how,
                  unsigned partial, bool adds, void *dst, const void *src);

/* -------------------------------------------------------------- wait.c --- */

int64_t dtn_now_ns(void);                   /* CLOCK_MONOTONIC               */

/* Patience of one wait: first spin (pause), then yield, then sleep a little.
 * With `crowded` (more ranks than CPUs) it yields from the start.
 */
struct dtn_wait {
    int64_t timeout_ns;
    int64_t start_ns;                       /* of the first look, 0 before   */
    int64_t next_look_ns;                   /* used by dtn_wait_pause()      */
    uint32_t turns;
    bool looked;                            /* one look has passed           */
    bool sleeping;                          /* two have: sleep between polls */
    bool crowded;
    bool *sharing;                          /* NULL, or what was learned: a  */
                                            /* peer runs on the same CPU     */
};

void dtn_wait_init(struct dtn_wait *wait, int64_t timeout_ns, bool crowded);

/* What the waiter should do after this pause. */
enum dtn_turn {
    DTN_TURN_POLL,                          /* look at the awaited line only */
    DTN_TURN_LOOK,                          /* also at peers' health         */
    DTN_TURN_EXPIRED                        /* the deadline has passed       */
};
enum dtn_turn dtn_wait_pause(struct dtn_wait *wait);

#endif
