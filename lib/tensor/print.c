/* print.c - the elements of a tensor, or its corners, as text
 *
 * Of f32[1000,1000] only 6 x 6 elements are printed: the first and last three
 * of each dimension.  Each rank writes those that it has into an array of that
 * size, zeros elsewhere.  A bitwise "or" over the ranks puts them together, so
 * that the bits of a NaN or of -0 stay as they are; then terms are reduced.  A
 * tensor of any size costs an allreduce of 144 bytes.
 */
#include "base/dtype.h"
#include "base/error.h"
#include "job/buffer.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PRINT_ALL = 1000,          /* elements; more of them are elided        */
       PRINT_EDGE = 3 };          /* first and last ones that are printed     */

/* What is printed: a small array of the tensor's dtype. */
struct print {
    const struct dtensor *t;      /* the tensor                               */
    int64_t shape[DTENSOR_MAX_DIMS];   /* of the small array                  */
    int64_t stride[DTENSOR_MAX_DIMS];  /* its strides, in elements            */
    size_t count, elem_bytes;     /* elements of it, and bytes of one         */
    unsigned char *small;         /* the array                                */
    int width;                    /* characters of its longest element        */
};

/* Which elements.  They are kept along a dimension if it is short. */
static void print_shape(struct print *print)
{
    const struct dtensor_spec *spec = &print->t->spec;
    const bool all = dtn_numel(spec->ndim, spec->shape) <= PRINT_ALL;

    for (int d = 0; d < spec->ndim; d++)
        print->shape[d] = all || spec->shape[d] <= 2 * PRINT_EDGE
                        ? spec->shape[d] : 2 * PRINT_EDGE;
    dtn_strides(spec->ndim, print->shape, print->stride);
    print->count = (size_t)dtn_numel(spec->ndim, print->shape);
    print->elem_bytes = dtensor_dtype_size(spec->dtype);
}

/* Is something left out along dimension d? */
static bool print_elides(const struct print *print, int d)
{
    return print->shape[d] < print->t->spec.shape[d];
}

/* Where global index i of dimension d is in the small array; -1: left out. */
static int64_t print_place(const struct print *print, int d, int64_t i)
{
    const int64_t end = print->t->spec.shape[d];

    if (!print_elides(print, d) || i < PRINT_EDGE)
        return i;
    return i < end - PRINT_EDGE ? -1 : i - end + 2 * PRINT_EDGE;
}

/* --------------------------------------------------------- the elements --- */

/* The first local index from `i` on, along dimension d, that is printed. */
static int64_t print_next(const struct print *print,
                          const struct dtn_part *part, int d, int64_t i,
                          int64_t *placep)
{
    int64_t run, at;

    for (; i < part->shape[d]; i++) {
        at = dtn_part_at(part, d, i, &run);
        *placep = print_place(print, d, at);
        if (*placep >= 0)
            return i;
        if (at + run > print->t->spec.shape[d] - PRINT_EDGE)
            run = print->t->spec.shape[d] - PRINT_EDGE - at;
        i += run - 1;
    }
    return -1;
}

/* Copy what this rank has, from dimension d on: `from` and `to` are elements of
 * the part and of the small array.
 */
static int print_copy(const struct print *print, const struct dtn_part *part,
                      int d, int64_t from, int64_t to,
                      struct dtensor_error *err)
{
    const struct dtensor_spec *spec = &print->t->spec;
    const size_t bytes = print->elem_bytes;
    int64_t place = 0, i = -1;
    int rc = 0;

    if (d == spec->ndim)
        return dtn_buffer_copy(spec->mesh->ctx,
                               print->small + (size_t)to * bytes,
                               (unsigned char *)print->t->local +
                               (size_t)from * bytes, bytes, err);
    while (rc == 0 &&
           (i = print_next(print, part, d, i + 1, &place)) >= 0)
        rc = print_copy(print, part, d + 1, from * part->shape[d] + i,
                        to + place * print->stride[d], err);
    return rc;
}

/* Has this rank the first of the replicas? */
static bool print_speaks(const struct dtensor_spec *spec)
{
    int coord[DTENSOR_MAX_DIMS];

    dtn_mesh_coord_of(spec->mesh, spec->mesh->group.me, coord);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_REPLICATE && coord[m] != 0)
            return false;
    return true;
}

/* Reduce the terms along mesh dimension m. */
static int print_reduce(const struct print *print, int m,
                        struct dtensor_error *err)
{
    const struct dtensor_spec *spec = &print->t->spec;
    const struct dtensor_mesh *along;
    int rc = dtn_mesh_sub(spec->mesh, 1u << m, &along, err);

    return rc != 0 ? rc
                   : dtensor_allreduce(along, print->small, print->small,
                                       print->count, spec->dtype,
                                       spec->placement[m].op, err);
}

/* The small array, on every rank of the mesh. */
static int print_gather(struct print *print, struct dtensor_error *err)
{
    const struct dtensor_spec *spec = &print->t->spec;
    const struct dtensor_mesh *parts;
    struct dtn_part part;
    unsigned dims = 0;
    int rc = 0;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind != DTENSOR_PARTIAL)
            dims |= 1u << m;
    dtn_part_init(&part, spec, spec->mesh->group.me);
    if (print_speaks(spec) && print->t->bytes > 0)
        rc = print_copy(print, &part, 0, 0, 0, err);
    if (rc == 0)
        rc = dtn_mesh_sub(spec->mesh, dims, &parts, err);
    if (rc == 0)
        rc = dtensor_allreduce(parts, print->small, print->small,
                               print->count * print->elem_bytes, DTENSOR_U8,
                               DTENSOR_BOR, err);
    for (int m = 0; rc == 0 && m < spec->mesh->ndim; m++)
        if (!(dims & 1u << m))
            rc = print_reduce(print, m, err);
    return rc;
}

/* ------------------------------------------------------------- the text --- */

/* Element `i` of a float; a NaN has no sign, as in NumPy. */
static double print_float(enum dtensor_dtype dtype, const void *small, size_t i)
{
    const double x = dtn_load(dtype, small, i);

    return isnan(x) ? (double)NAN : x;
}

/* Element `i` as text. */
static int print_element(const struct print *print, size_t i, char *buf,
                         size_t size)
{
    const enum dtensor_dtype dtype = print->t->spec.dtype;
    const void *small = print->small;
    const enum dtensor_dtype half = dtype == DTENSOR_C64 ? DTENSOR_F32
                                                         : DTENSOR_F64;

    switch (dtn_dtype_kind(dtype)) {
    case DTN_DTYPE_FLOAT:
        return snprintf(buf, size, "%.6g", print_float(dtype, small, i));
    case DTN_DTYPE_COMPLEX:
        return snprintf(buf, size, "%.6g%+.6gi",
                        print_float(half, small, 2 * i),
                        print_float(half, small, 2 * i + 1));
    case DTN_DTYPE_SIGNED:
        return snprintf(buf, size, "%" PRId64, dtn_load_int(dtype, small, i));
    case DTN_DTYPE_UNSIGNED:
        return snprintf(buf, size, "%" PRIu64,
                        (uint64_t)dtn_load_int(dtype, small, i));
    case DTN_DTYPE_BOOL:
        break;
    }
    return snprintf(buf, size, "%s", dtn_load_int(dtype, small, i) ? "true"
                                                                   : "false");
}

static void print_width(struct print *print)
{
    char buf[80];
    int n;

    for (size_t i = 0; i < print->count; i++) {
        n = print_element(print, i, buf, sizeof buf);
        if (n > print->width)
            print->width = n;
    }
}

/* Between two items of dimension d: of elements a space, else lines that begin
 * under the first item.
 */
static void print_gap(const struct print *print, int d, FILE *stream)
{
    if (d == print->t->spec.ndim - 1) {
        fputc(' ', stream);
        return;
    }
    for (int lines = d; lines < print->t->spec.ndim - 1; lines++)
        fputc('\n', stream);
    fprintf(stream, "%*s", d + 1, "");
}

/* Everything from element `at` on that dimensions d and later have. */
static void print_dim(const struct print *print, int d, size_t at,
                      FILE *stream)
{
    char buf[80];

    if (d == print->t->spec.ndim) {
        print_element(print, at, buf, sizeof buf);
        fprintf(stream, "%*s", print->width, buf);
        return;
    }
    fputc('[', stream);
    for (int64_t i = 0; i < print->shape[d]; i++) {
        if (i > 0)
            print_gap(print, d, stream);
        if (i == PRINT_EDGE && print_elides(print, d)) {
            fputs("...", stream);
            print_gap(print, d, stream);
        }
        print_dim(print, d + 1, at + (size_t)(i * print->stride[d]), stream);
    }
    fputc(']', stream);
}

int dtensor_print(const struct dtensor *t, FILE *stream,
                  struct dtensor_error *err)
{
    struct print print = { .t = t };
    struct dtensor_error why;
    char text[400];
    int rc = 0;

    if (t->spec.mesh->group.me < 0)
        return 0;
    print_shape(&print);
    print.small = calloc(print.count + 1, print.elem_bytes);
    if (!print.small)
        return dtn_tensor_end_all(t->spec.mesh,
                                  dtn_fail_nomem(&why, "print", print.count *
                                                 print.elem_bytes), &why, err);
    if (print.count > 0)
        rc = print_gather(&print, err);
    if (rc == 0 && t->spec.mesh->group.me == 0) {
        print_width(&print);
        fprintf(stream, "%s\n", dtn_spec_format(&t->spec, text, sizeof text));
        print_dim(&print, 0, 0, stream);
        fputc('\n', stream);
    }
    free(print.small);
    return rc;
}
