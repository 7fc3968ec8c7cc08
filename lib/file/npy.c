/* npy.c - the header of a .npy file
 *
 * The format is NumPy's (numpy.lib.format): six bytes of magic, two of version,
 * the length of a text, and the text, which is a Python dictionary:
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 *
 * It is padded with spaces to a multiple of 64 bytes, so that the elements,
 * which follow row-major, are aligned.  That header is of f32[3,4] and has 128
 * bytes.  NumPy has no name for bf16 and the two types of 8-bit floats; they
 * are written as '<V2' and '|V1', elements without meaning, as the Python
 * package ml_dtypes writes them.
 */
#include "file/npy.h"
#include "base/error.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "dtensor.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char npy_magic[] = "\x93NUMPY";

enum { NPY_MAGIC = 6, NPY_ALIGN = 64 };

static const char *const npy_descr[DTENSOR_NDTYPES] = {
    [DTENSOR_F32] = "<f4", [DTENSOR_F64] = "<f8", [DTENSOR_F16] = "<f2",
    [DTENSOR_BF16] = "<V2", [DTENSOR_I8] = "|i1", [DTENSOR_U8] = "|u1",
    [DTENSOR_I32] = "<i4", [DTENSOR_I64] = "<i8", [DTENSOR_I16] = "<i2",
    [DTENSOR_U16] = "<u2", [DTENSOR_U32] = "<u4", [DTENSOR_U64] = "<u8",
    [DTENSOR_BOOL] = "|b1", [DTENSOR_C64] = "<c8", [DTENSOR_C128] = "<c16",
    [DTENSOR_F8E4M3] = "|V1", [DTENSOR_F8E5M2] = "|V1"
};

size_t dtn_npy_format(const struct dtensor_meta *meta, char *buf)
{
    char *text = buf + DTN_NPY_MIN_BYTES;
    size_t used, room = DTN_NPY_MAX_BYTES - DTN_NPY_MIN_BYTES, total;

    used = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': "
                            "False, 'shape': (", npy_descr[meta->dtype]);
    for (int d = 0; d < meta->ndim; d++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld",
                                 d ? ", " : "", (long long)meta->shape[d]);
    used += (size_t)snprintf(text + used, room - used, "%s), }",
                             meta->ndim == 1 ? "," : "");
    total = (DTN_NPY_MIN_BYTES + used + 1 + NPY_ALIGN - 1) / NPY_ALIGN *
            NPY_ALIGN;
    memset(text + used, ' ', total - DTN_NPY_MIN_BYTES - used);
    buf[total - 1] = '\n';
    memcpy(buf, npy_magic, NPY_MAGIC);
    buf[6] = 1;
    buf[7] = 0;
    buf[8] = (char)((total - DTN_NPY_MIN_BYTES) & 0xff);
    buf[9] = (char)((total - DTN_NPY_MIN_BYTES) >> 8);
    return total;
}

/* ------------------------------------------------------------- the text --- */

/* The rest of the text; `bad` once something unexpected was found. */
struct npy_text {
    const char *at;               /* next character, before a NUL             */
    bool bad;                     /* something unexpected was found           */
};

static bool npy_take(struct npy_text *text, char c)
{
    while (isspace((unsigned char)*text->at))
        text->at++;
    if (*text->at != c)
        return false;
    text->at++;
    return true;
}

static void npy_need(struct npy_text *text, char c)
{
    if (!npy_take(text, c))
        text->bad = true;
}

/* 'word' or "word", at most size - 1 characters, to `word`. */
static void npy_word(struct npy_text *text, char *word, size_t size)
{
    const char quote = npy_take(text, '\'') ? '\'' : '"';
    size_t n;

    if (quote == '"')
        npy_need(text, '"');
    n = strcspn(text->at, quote == '"' ? "\"" : "'");
    if (text->bad || n >= size || text->at[n] == '\0') {
        text->bad = true;
        return;
    }
    memcpy(word, text->at, n);
    word[n] = '\0';
    text->at += n + 1;
}

/* A size; Python 2 writes an L behind it. */
static int64_t npy_size(struct npy_text *text)
{
    char *end;
    long long size;

    npy_take(text, '+');
    errno = 0;
    size = strtoll(text->at, &end, 10);
    if (!isdigit((unsigned char)*text->at) || errno != 0 || size < 0)
        text->bad = true;
    text->at = end;
    npy_take(text, 'L');
    return size;
}

static void npy_shape(struct npy_text *text, struct dtensor_meta *meta)
{
    meta->ndim = 0;
    npy_need(text, '(');
    while (!text->bad && !npy_take(text, ')')) {
        if (meta->ndim == DTENSOR_MAX_DIMS) {
            text->bad = true;
            return;
        }
        meta->shape[meta->ndim++] = npy_size(text);
        if (!npy_take(text, ',')) {
            npy_need(text, ')');
            return;
        }
    }
}

static bool npy_bool(struct npy_text *text)
{
    const bool yes = npy_take(text, 'T');
    const char *rest = yes ? "rue" : "alse";

    if (!yes)
        npy_need(text, 'F');
    if (strncmp(text->at, rest, strlen(rest)) != 0)
        text->bad = true;
    else
        text->at += strlen(rest);
    return yes;
}

/* What the dictionary says. */
struct npy_said {
    char descr[16];
    bool fortran;
    bool found[3];                /* descr, fortran_order, shape              */
};

static void npy_item(struct npy_text *text, struct npy_said *said,
                     struct dtensor_meta *meta)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char key[16] = "";
    int k = 0;

    npy_word(text, key, sizeof key);
    npy_need(text, ':');
    while (k < 3 && strcmp(key, keys[k]) != 0)
        k++;
    if (text->bad || k == 3 || said->found[k]) {
        text->bad = true;
        return;
    }
    said->found[k] = true;
    if (k == 0)
        npy_word(text, said->descr, sizeof said->descr);
    else if (k == 1)
        said->fortran = npy_bool(text);
    else
        npy_shape(text, meta);
}

static void npy_dictionary(struct npy_text *text, struct npy_said *said,
                           struct dtensor_meta *meta)
{
    npy_need(text, '{');
    while (!text->bad && !npy_take(text, '}')) {
        npy_item(text, said, meta);
        if (!npy_take(text, ',')) {
            npy_need(text, '}');
            break;
        }
    }
    npy_take(text, '\n');
    if (*text->at != '\0' || !said->found[0] || !said->found[1] ||
        !said->found[2])
        text->bad = true;
}

/* ----------------------------------------------------------- the header --- */

/* The first dtype of that name.  A one-byte element needs no order. */
static int npy_dtype(const char *what, const char *descr,
                     enum dtensor_dtype *dtypep, struct dtensor_error *err)
{
    const bool native = descr[0] == '<' || descr[0] == '|' || descr[0] == '=';

    for (int t = 0; native && t < DTENSOR_NDTYPES; t++)
        if (strcmp(descr + 1, npy_descr[t] + 1) == 0) {
            *dtypep = (enum dtensor_dtype)t;
            return 0;
        }
    return dtn_fail(err, DTENSOR_EINVAL, "%s: elements are \"%s\", which "
                    "libdtensor has no type for (convert them with NumPy's "
                    "astype(), to little-endian numbers)", what, descr);
}

/* Where the text begins, and its bytes, by the version. */
static int npy_frame(const char *what, const char *buf, size_t bytes,
                     size_t *startp, size_t *lengthp,
                     struct dtensor_error *err)
{
    const unsigned char *b = (const unsigned char *)buf;
    size_t length;

    if (bytes < DTN_NPY_MIN_BYTES || memcmp(buf, npy_magic, NPY_MAGIC) != 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: not a .npy file (make one "
                        "with dtensor_save() or numpy.save())", what);
    if (b[6] < 1 || b[6] > 3)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: version %d.%d of the .npy "
                        "format; expected 1.0, 2.0 or 3.0", what, b[6], b[7]);
    *startp = b[6] == 1 ? 10 : 12;
    length = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1 && bytes >= *startp)
        length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (*startp + length > DTN_NPY_MAX_BYTES)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: its header has %zu bytes; "
                        "expected at most %d", what, *startp + length,
                        DTN_NPY_MAX_BYTES);
    if (*startp + length > bytes)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: it ends within its header, "
                        "after %zu of %zu bytes", what, bytes,
                        *startp + length);
    *lengthp = length;
    return 0;
}

int dtn_npy_parse(const char *what, const char *buf, size_t bytes,
                  struct dtensor_meta *meta, size_t *header_bytesp,
                  struct dtensor_error *err)
{
    struct dtensor_meta made = { .ndim = 0 };
    struct npy_said said = { .fortran = false };
    char copy[DTN_NPY_MAX_BYTES + 1];
    struct npy_text text = { copy, false };
    size_t start = 0, length = 0;
    int rc = npy_frame(what, buf, bytes, &start, &length, err);

    if (rc != 0)
        return rc;
    memcpy(copy, buf + start, length);
    copy[length] = '\0';
    npy_dictionary(&text, &said, &made);
    if (text.bad)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: its header is not the "
                        "dictionary of one array of at most %d dimensions",
                        what, DTENSOR_MAX_DIMS);
    if (said.fortran && made.ndim > 1)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: the array is column-major "
                        "(save numpy.ascontiguousarray() of it)", what);
    rc = npy_dtype(what, said.descr, &made.dtype, err);
    if (rc == 0)
        rc = dtn_shape_check(what, made.dtype, made.ndim, made.shape, err);
    if (rc != 0)
        return rc;
    dtn_strides(made.ndim, made.shape, made.stride);
    *meta = made;
    *header_bytesp = start + length;
    return 0;
}
