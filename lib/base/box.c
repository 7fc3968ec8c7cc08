/* box.c - boxes of elements, from one array to another
 *
 * Take a box of 4 rows of 1024 f32.  If the source has rows of 4096, the copy
 * is 4 memcpy of 4 KiB.  If both arrays have rows of 1024, it is one memcpy of
 * 16 KiB, because dimensions that are contiguous on both sides are merged
 * first.  An odometer then walks the outer dimensions, and a loop inside it
 * copies the two innermost ones, the *plane*.  The unit of a plane is a run of
 * bytes that is contiguous on both sides.  Runs of 1 to 64 bytes (powers of
 * two) have their own loops, so 2 f32 are moved as one load and one store.  A
 * plane that transposes is copied tile by tile, so that the cache lines of both
 * sides stay in the L1 cache; if its runs are single numbers, in vectors.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/copy.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "base/transpose.h"

#include <stdbool.h>
#include <string.h>

enum {
    TILE_BYTES = 64,               /* side of a tile: a line of 64 bytes ...  */
    TILE_LEAST = 8,                /* ... but at least 8 runs                 */
    PIECE_BYTES = 4096,            /* of a box reduced through packed buffers */
    ROW_LEAST_BYTES = 128          /* of a row worth a dtn_fold() of its own*/
};

/* ----------------------------------------------------------- coalesce --- */

static void box_drop(struct dtn_box *box, int d)
{
    box->ndim--;
    for (; d < box->ndim; d++) {
        box->size[d] = box->size[d + 1];
        box->dst_stride[d] = box->dst_stride[d + 1];
        box->src_stride[d] = box->src_stride[d + 1];
    }
}

static void box_swap(struct dtn_box *box, int a, int b)
{
    const int64_t size = box->size[a];
    const int64_t dst_stride = box->dst_stride[a];
    const int64_t src_stride = box->src_stride[a];

    box->size[a] = box->size[b];
    box->dst_stride[a] = box->dst_stride[b];
    box->src_stride[a] = box->src_stride[b];
    box->size[b] = size;
    box->dst_stride[b] = dst_stride;
    box->src_stride[b] = src_stride;
}

/* Is dimension d + 1 followed, on both sides, by the next step of d? */
static bool box_flat(const struct dtn_box *box, int d)
{
    const int64_t n = box->size[d + 1];

    return box->dst_stride[d] == n * box->dst_stride[d + 1] &&
           box->src_stride[d] == n * box->src_stride[d + 1];
}

static bool box_empty(const struct dtn_box *box)
{
    for (int d = 0; d < box->ndim; d++)
        if (box->size[d] == 0)
            return true;
    return false;
}

void dtn_box_coalesce(struct dtn_box *box)
{
    if (box_empty(box)) {
        *box = (struct dtn_box){ .ndim = 1, .dst_stride = { 1 },
                                 .src_stride = { 1 } };
        return;
    }
    for (int d = box->ndim - 1; d >= 0; d--)
        if (box->size[d] == 1)
            box_drop(box, d);
    for (int d = 1; d < box->ndim; d++)          /* dst's strides descending */
        for (int e = d; e > 0 && box->dst_stride[e] > box->dst_stride[e - 1];
             e--)
            box_swap(box, e, e - 1);
    for (int d = box->ndim - 2; d >= 0; d--) {
        if (!box_flat(box, d))
            continue;
        box->size[d + 1] *= box->size[d];
        box_drop(box, d);
    }
}

int64_t dtn_box_count(const struct dtn_box *box)
{
    int64_t count = 1;

    for (int d = 0; d < box->ndim; d++)
        count *= box->size[d];
    return count;
}

/* --------------------------------------------------------------- copy --- */

/* The two innermost dimensions: strides in bytes, runs of `bytes`. */
struct plane {
    int64_t rows, cols;
    int64_t dst_row, dst_col;
    int64_t src_row, src_col;
    size_t bytes;
    int64_t tile;
};

typedef void plane_f(const struct plane *p, char *dst, const char *src);

/* One tile of a plane, `bytes` a constant in all callers but one. */
static inline void plane_tile(const struct plane *p, size_t bytes, char *dst,
                              const char *src, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        char *to = dst + r * p->dst_row;
        const char *from = src + r * p->src_row;

        for (int64_t c = 0; c < cols; c++) {
            memcpy(to, from, bytes);
            to += p->dst_col;
            from += p->src_col;
        }
    }
}

static inline void plane_tiles(const struct plane *p, size_t bytes, char *dst,
                               const char *src)
{
    const int64_t t = p->tile;

    for (int64_t r = 0; r < p->rows; r += t)
        for (int64_t c = 0; c < p->cols; c += t)
            plane_tile(p, bytes, dst + r * p->dst_row + c * p->dst_col,
                       src + r * p->src_row + c * p->src_col,
                       p->rows - r < t ? p->rows - r : t,
                       p->cols - c < t ? p->cols - c : t);
}

#ifdef DTN_TRANSPOSE
typedef void square_f(char *to, int64_t to_row, const char *from,
                      int64_t from_row);

/* A plane whose rows are contiguous in dst, and columns in src: squares of
 * `side`, eight rows of dst at a time, whose lines then stay in the L1 cache
 * even if all are a multiple of 4 KiB apart.
 */
static inline void plane_squares(const struct plane *p, size_t bytes,
                                 square_f *square, char *dst, const char *src)
{
    const int64_t side = 16 / (int64_t)bytes, line = 4 * side;
    const int64_t rows = p->rows - p->rows % 8, cols = p->cols - p->cols % line;

    for (int64_t r = 0; r < rows; r += 8)
        for (int64_t at = 0; at < cols; at += line)
            for (int64_t c = at; c < at + line; c += side)
                for (int64_t k = r; k < r + 8; k += side)
                    square(dst + k * p->dst_row + c * (int64_t)bytes,
                           p->dst_row, src + c * p->src_col +
                           k * (int64_t)bytes, p->src_col);
    plane_tile(p, bytes, dst + cols * p->dst_col, src + cols * p->src_col, rows,
               p->cols - cols);
    plane_tile(p, bytes, dst + rows * p->dst_row, src + rows * p->src_row,
               p->rows - rows, p->cols);
}
#define SQUARES(bytes)                                                        \
    static void squares_##bytes(const struct plane *p, char *dst,             \
                                const char *src)                              \
    {                                                                         \
        plane_squares(p, bytes, dtn_transpose_##bytes, dst, src);             \
    }

SQUARES(2)
SQUARES(4)
SQUARES(8)
#endif

static inline void plane_copy(const struct plane *p, size_t bytes, char *dst,
                              const char *src)
{
    if (p->tile > 0)
        plane_tiles(p, bytes, dst, src);
    else
        plane_tile(p, bytes, dst, src, p->rows, p->cols);
}

#define PLANE(bytes)                                                          \
    static void plane_##bytes(const struct plane *p, char *dst,               \
                              const char *src)                                \
    {                                                                         \
        plane_copy(p, bytes, dst, src);                                       \
    }

PLANE(1)
PLANE(2)
PLANE(4)
PLANE(8)
PLANE(16)
PLANE(32)
PLANE(64)

static void plane_any(const struct plane *p, char *dst, const char *src)
{
    plane_copy(p, p->bytes, dst, src);
}

/* Each row is copies of one element. */
static void plane_spread(const struct plane *p, char *dst, const char *src)
{
    for (int64_t r = 0; r < p->rows; r++)
        dtn_copy_spread(dst + r * p->dst_row, src + r * p->src_row, p->bytes,
                        (size_t)p->cols);
}

/* Of a transposition in squares; NULL: this is none. */
static plane_f *plane_transposes(const struct plane *p)
{
#ifdef DTN_TRANSPOSE
    if (p->tile > 0 && p->dst_col == (int64_t)p->bytes &&
        p->src_row == (int64_t)p->bytes)
        return p->bytes == 2 ? squares_2 : p->bytes == 4 ? squares_4
             : p->bytes == 8 ? squares_8 : NULL;
#endif
    (void)p;
    return NULL;
}

static plane_f *plane_find(const struct plane *p)
{
    static const struct { size_t bytes; plane_f *copy; } planes[] = {
        { 1, plane_1 }, { 2, plane_2 }, { 4, plane_4 }, { 8, plane_8 },
        { 16, plane_16 }, { 32, plane_32 }, { 64, plane_64 }
    };

    if (p->src_col == 0 && p->dst_col == (int64_t)p->bytes &&
        64 % p->bytes == 0)
        return plane_spread;
    if (plane_transposes(p))
        return plane_transposes(p);
    for (size_t i = 0; i < DTN_COUNT(planes); i++)
        if (planes[i].bytes == p->bytes)
            return planes[i].copy;
    return plane_any;
}

static void box_to_bytes(struct dtn_box *box, size_t elem_bytes)
{
    for (int d = 0; d < box->ndim; d++) {
        box->dst_stride[d] *= (int64_t)elem_bytes;
        box->src_stride[d] *= (int64_t)elem_bytes;
    }
}

size_t dtn_box_take_run(struct dtn_box *box)
{
    const int last = box->ndim - 1;

    if (last < 0 || box->dst_stride[last] != 1 || box->src_stride[last] != 1)
        return 1;
    box->ndim--;
    return (size_t)box->size[last];
}

/* The last dimension has the smallest stride in dst.  If another one has the
 * smallest stride in src, move it next to the last: the plane transposes.
 */
static bool box_choose_plane(struct dtn_box *box)
{
    const int last = box->ndim - 1;
    int least = last;

    for (int d = 0; d < last; d++)
        if (box->src_stride[d] < box->src_stride[least])
            least = d;
    if (least == last)
        return false;
    for (; least < last - 1; least++)
        box_swap(box, least, least + 1);
    return true;
}

/* Take the plane off the end of the box. */
static struct plane box_take_plane(struct dtn_box *box, size_t bytes)
{
    struct plane p = { .rows = 1, .cols = 1, .bytes = bytes };
    int64_t tile = TILE_BYTES / (int64_t)bytes;
    int d;

    if (box->ndim >= 2 && box_choose_plane(box))
        p.tile = tile < TILE_LEAST ? TILE_LEAST : tile;
    if (box->ndim >= 1) {
        d = --box->ndim;
        p.cols = box->size[d];
        p.dst_col = box->dst_stride[d];
        p.src_col = box->src_stride[d];
    }
    if (box->ndim >= 1) {
        d = --box->ndim;
        p.rows = box->size[d];
        p.dst_row = box->dst_stride[d];
        p.src_row = box->src_stride[d];
    }
    return p;
}

bool dtn_walk_next(struct dtn_walk *walk)
{
    const struct dtn_box *box = walk->box;

    for (int d = box->ndim - 1; d >= 0; d--) {
        walk->dst += box->dst_stride[d];
        walk->src += box->src_stride[d];
        if (++walk->index[d] < box->size[d])
            return true;
        walk->dst -= box->size[d] * box->dst_stride[d];
        walk->src -= box->size[d] * box->src_stride[d];
        walk->index[d] = 0;
    }
    return false;
}

void dtn_box_copy(const struct dtn_box *box, size_t elem_bytes, void *dst,
                  const void *src)
{
    struct dtn_box outer = *box;
    struct dtn_walk walk = { .box = &outer };
    struct plane plane;
    plane_f *copy;
    size_t bytes;

    if (box_empty(box))
        return;
    dtn_box_coalesce(&outer);
    bytes = elem_bytes * dtn_box_take_run(&outer);
    box_to_bytes(&outer, elem_bytes);
    plane = box_take_plane(&outer, bytes);
    copy = plane_find(&plane);
    do
        copy(&plane, (char *)dst + walk.dst, (const char *)src + walk.src);
    while (dtn_walk_next(&walk));
}

/* ------------------------------------------------------------- reduce --- */

/* What dtn_box_fold() does to each run, and the sizes of both sides. */
struct fold {
    const struct dtn_reduction *how;
    unsigned partial;
    bool adds;
    size_t dst_bytes;
    size_t src_bytes;
};

static void fold_row(const struct fold *fold, void *dst, const void *src,
                     size_t count)
{
    const void *both[] = { dst, src };

    dtn_fold(fold->how, fold->partial, dst, fold->adds ? both : both + 1,
             fold->adds ? 2 : 1, count);
}

/* A box of at most PIECE_BYTES: pack both sides, reduce, unpack the result. */
static void fold_piece(const struct dtn_box *box, const struct fold *fold,
                       char *dst, const char *src)
{
    _Alignas(DTN_CACHE_LINE) char left[PIECE_BYTES], right[PIECE_BYTES];
    struct dtn_box from_dst = *box, from_src = *box, to_dst = *box;
    int64_t packed = 1;

    for (int d = box->ndim - 1; d >= 0; d--) {
        from_src.dst_stride[d] = packed;
        from_dst.dst_stride[d] = packed;
        from_dst.src_stride[d] = box->dst_stride[d];
        to_dst.src_stride[d] = packed;
        packed *= box->size[d];
    }
    if (fold->adds)
        dtn_box_copy(&from_dst, fold->dst_bytes, left, dst);
    dtn_box_copy(&from_src, fold->src_bytes, right, src);
    fold_row(fold, left, right, (size_t)packed);
    dtn_box_copy(&to_dst, fold->dst_bytes, dst, left);
}

static size_t fold_most_bytes(const struct fold *fold)
{
    return fold->dst_bytes > fold->src_bytes ? fold->dst_bytes
                                             : fold->src_bytes;
}

/* Cut dimension d of the piece into parts that fit the buffers. */
static void fold_parts(struct dtn_box *piece, const struct fold *fold,
                       char *dst, const char *src)
{
    const int64_t whole = piece->size[0];
    const int64_t inner = dtn_box_count(piece) / whole;
    const int64_t most = PIECE_BYTES / (int64_t)fold_most_bytes(fold)
                       / inner;

    for (int64_t i = 0; i < whole; i += most) {
        piece->size[0] = whole - i < most ? whole - i : most;
        fold_piece(piece, fold,
                   dst + i * piece->dst_stride[0] * (int64_t)fold->dst_bytes,
                   src + i * piece->src_stride[0] * (int64_t)fold->src_bytes);
    }
    piece->size[0] = whole;
}

/* Strides in elements become bytes. */
static void fold_to_bytes(const struct fold *fold, struct dtn_box *box)
{
    for (int d = 0; d < box->ndim; d++) {
        box->dst_stride[d] *= (int64_t)fold->dst_bytes;
        box->src_stride[d] *= (int64_t)fold->src_bytes;
    }
}

/* Split off the inner dimensions of the box that together fit the buffers,
 * and one more that will be cut; strides of `outer` become bytes.
 */
static void box_split(struct dtn_box *outer, const struct fold *fold,
                      struct dtn_box *inner)
{
    int64_t bytes = (int64_t)fold_most_bytes(fold);
    int d = outer->ndim - 1;

    for (; d > 0 && bytes * outer->size[d] <= PIECE_BYTES; d--)
        bytes *= outer->size[d];
    *inner = (struct dtn_box){ .ndim = outer->ndim - d };
    for (int e = 0; e < inner->ndim; e++) {
        inner->size[e] = outer->size[d + e];
        inner->dst_stride[e] = outer->dst_stride[d + e];
        inner->src_stride[e] = outer->src_stride[d + e];
    }
    outer->ndim = d;
    fold_to_bytes(fold, outer);
}

static bool box_has_rows(const struct dtn_box *box, size_t elem_bytes)
{
    const int last = box->ndim - 1;

    return last < 0 ||
           (box->dst_stride[last] == 1 && box->src_stride[last] == 1 &&
            (last == 0 ||
             box->size[last] * (int64_t)elem_bytes >= ROW_LEAST_BYTES));
}

void dtn_box_fold(const struct dtn_box *box, const struct dtn_reduction *how,
                  unsigned partial, bool adds, void *dst, const void *src)
{
    const unsigned of_src = adds ? DTN_PARTIAL_REST : DTN_PARTIAL_FIRST;
    const struct fold fold = {
        .how = how, .partial = partial, .adds = adds,
        .dst_bytes = dtn_dtype_size(partial & DTN_PARTIAL_DST ? how->partial
                                                              : how->dtype),
        .src_bytes = dtn_dtype_size(partial & of_src ? how->partial
                                                     : how->dtype)
    };
    struct dtn_box outer = *box, inner;
    struct dtn_walk walk = { .box = &outer };
    char *to = dst;
    const char *from = src;
    size_t run;

    if (box_empty(box))
        return;
    dtn_box_coalesce(&outer);
    if (box_has_rows(&outer, fold.src_bytes)) {
        run = dtn_box_take_run(&outer);
        fold_to_bytes(&fold, &outer);
        do
            fold_row(&fold, to + walk.dst, from + walk.src, run);
        while (dtn_walk_next(&walk));
        return;
    }
    box_split(&outer, &fold, &inner);
    do
        fold_parts(&inner, &fold, to + walk.dst, from + walk.src);
    while (dtn_walk_next(&walk));
}
