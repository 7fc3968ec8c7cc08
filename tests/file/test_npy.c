/* test_npy.c - headers of .npy files, read and written
 *
 * Every dtype and number of dimensions is written and read back; texts as NumPy
 * and Python 2 write them are read; others are refused in words; bytes that are
 * changed at random never do harm.
 *
 * Without this test, a file of NumPy could be read with a wrong shape, and a
 * damaged one could crash a job.
 */
#include "file/npy.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdio.h>
#include <string.h>

static struct dtensor_meta meta;
static struct dtensor_error err;
static size_t header_bytes;

static int parse(const char *buf, size_t bytes)
{
    err.text[0] = '\0';
    return dtn_npy_parse("load: a.npy", buf, bytes, &meta, &header_bytes, &err);
}

/* A header of version 1 around `text`. */
static int parse_text(const char *text)
{
    char buf[DTN_NPY_MAX_BYTES];
    const size_t n = strlen(text);

    memcpy(buf, "\x93NUMPY\1\0", 8);
    buf[8] = (char)(n & 0xff);
    buf[9] = (char)(n >> 8);
    memcpy(buf + 10, text, n);
    return parse(buf, n + 10);
}

static void test_round_trip(void)
{
    char buf[DTN_NPY_MAX_BYTES];
    int bad = 0;

    for (int type = 0; type < DTENSOR_NDTYPES; type++)
        for (int ndim = 0; ndim <= DTENSOR_MAX_DIMS; ndim++) {
            struct dtensor_meta m = { .dtype = (enum dtensor_dtype)type,
                                      .ndim = ndim };
            size_t bytes;

            for (int d = 0; d < ndim; d++)
                m.shape[d] = d == 3 ? 0 : 1 + d * 37;
            bytes = dtn_npy_format(&m, buf);
            bad += bytes % 64 != 0 || buf[bytes - 1] != '\n' ||
                   parse(buf, bytes) != 0 || header_bytes != bytes ||
                   meta.ndim != ndim ||
                   memcmp(meta.shape, m.shape, sizeof m.shape[0] *
                          (size_t)ndim) != 0 ||
                   (meta.dtype != m.dtype && m.dtype != DTENSOR_F8E5M2);
        }
    ok(bad == 0, "headers of all dtypes and 0 to 8 dimensions are read as they "
       "were written (%d are not)", bad);
    ok(parse_text("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
                  "   \n") == 0 && meta.dtype == DTENSOR_F32 &&
       meta.stride[0] == 4 && meta.stride[1] == 1, "strides are row-major");
}

static void test_accepted(void)
{
    static const char *const texts[] = {
        "{\"shape\":(2,3L),\"descr\":\"<i8\",\"fortran_order\":False}\n",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }",
        " { 'fortran_order' : False , 'shape' : ( 2 , 3 ) , 'descr' : '<i8' }",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ok(parse_text(texts[i]) == 0 && meta.dtype == DTENSOR_I64 &&
           meta.ndim == 2 && meta.shape[0] == 2 && meta.shape[1] == 3,
           "text %zu is an i64[2,3] %s", i, err.text);
    ok(parse_text("{'descr': '|b1', 'fortran_order': True, 'shape': (7,), }")
       == 0 && meta.ndim == 1 && meta.shape[0] == 7,
       "one dimension is both row-major and column-major");
    ok(parse("\x93NUMPY\2\0\x39\0\0\0{'descr': '<f8', 'fortran_order': False, "
             "'shape': (), } \n", 69) == 0 && meta.ndim == 0 &&
       header_bytes == 69, "a header of version 2 %s", err.text);
}

static void refused(const char *text, const char *words)
{
    const int rc = parse_text(text);

    ok(rc == DTENSOR_EINVAL && strcmp(err.text, words) == 0,
       "%.60s: %s (%d)", text, err.text, rc);
}

#define NO_ARRAY "load: a.npy: its header is not the dictionary of one array " \
                 "of at most 8 dimensions"

static void test_refused(void)
{
    refused("{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }",
            "load: a.npy: elements are \">f4\", which libdtensor has no type "
            "for (convert them with NumPy's astype(), to little-endian "
            "numbers)");
    refused("{'descr': '<U8', 'fortran_order': False, 'shape': (3,), }",
            "load: a.npy: elements are \"<U8\", which libdtensor has no type "
            "for (convert them with NumPy's astype(), to little-endian "
            "numbers)");
    refused("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }",
            "load: a.npy: the array is column-major (save "
            "numpy.ascontiguousarray() of it)");
    refused("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,)}",
            NO_ARRAY);
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }",
            NO_ARRAY);
    refused("{'descr': '<f4', 'fortran_order': False, "
            "'shape': (1,1,1,1,1,1,1,1,1), }", NO_ARRAY);
    refused("{'descr': '<f4', 'fortran_order': False, }", NO_ARRAY);
    refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, "
            "'shape': (), }", NO_ARRAY);
    refused("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (), }",
            NO_ARRAY);
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (), } more",
            NO_ARRAY);
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': "
            "(99999999999999999999,), }", NO_ARRAY);
    refused("", NO_ARRAY);
    ok(parse_text("{'descr': '<f4', 'fortran_order': False, 'shape': "
                  "(4294967296, 4294967296), }") == DTENSOR_EINVAL,
       "more than 2^63 bytes: %s", err.text);
    ok(parse("PK\3\4 a .npz file", 16) == DTENSOR_EINVAL &&
       strstr(err.text, "not a .npy file"), "%s", err.text);
    ok(parse("\x93NUMPY\4\0..", 10) == DTENSOR_EINVAL &&
       strstr(err.text, "version 4.0"), "%s", err.text);
    ok(parse("\x93NUMPY\1\0\xff\x0e", 10) == DTENSOR_EINVAL &&
       strstr(err.text, "it ends within its header, after 10 of 3849 bytes"),
       "%s", err.text);
    ok(parse("\x93NUMPY\2\0\xff\xff\xff\xff", 12) == DTENSOR_EINVAL &&
       strstr(err.text, "expected at most 4096"), "%s", err.text);
}

static void test_random(void)
{
    const uint64_t seed = rand_seed(7);
    const struct dtensor_meta m = { .dtype = DTENSOR_C128, .ndim = 3,
                                    .shape = { 5, 6, 7 } };
    char buf[DTN_NPY_MAX_BYTES], changed[DTN_NPY_MAX_BYTES];
    const size_t bytes = dtn_npy_format(&m, buf);
    uint64_t state = seed;
    int others = 0;

    for (int i = 0; i < rounds_of(100000); i++) {
        size_t keep = (size_t)rand_below(&state, (int)bytes + 1);

        memcpy(changed, buf, bytes);
        for (int k = rand_below(&state, 4); k >= 0; k--)
            changed[rand_below(&state, (int)bytes)] = (char)rand_next(&state);
        others += parse(changed, rand_below(&state, 8) ? bytes : keep) != 0;
    }
    ok(others > 0, "changed bytes do no harm: %d headers are refused, seed "
       "%llu", others, (unsigned long long)seed);
}

int main(void)
{
    test_round_trip();
    test_accepted();
    test_refused();
    test_random();
    return done();
}
