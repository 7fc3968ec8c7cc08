/* test_cuda_kernels.c - operations of the kind `cuda`, by kernels or the CPU
 *
 * Each operation is done on memory of the device, of the host and pinned
 * memory, and compared byte by byte with what the kind `host` makes of copies.
 * How many kernels were launched is counted.  Chains of operations follow one
 * another without a wait.  Each case is a process of its own, with a driver of
 * tests/standin that may lack calls or fail.
 *
 * Without this test, an operation could go through host memory though a kernel
 * does it, or a kernel run before its data has arrived; and an old driver would
 * end the job instead of making it slower.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/reduce.h"
#include "cuda/image.h"
#include "device/cuda/cuda.h"
#include "device/memory.h"
#include "random/dist.h"
#include "random/fill.h"
#include "tensor/tensor.h"
#include "transport/arena.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 5000, LARGE = 3 << 20, ARRAYS = 3, LINKS = 6, MANY = 100,
       WIDE = 40000, FEW = 100 };

enum what {
    FOLD, MOVED, MANY_TERMS, MANY_BF16, MANY_AVERAGED, FUNCTION, SCALE, NEUTRAL,
    INDEX, NORMAL, DROPOUT, NO_KERNEL, EQUAL, COPY_BOX, TURN_BOX, FOLD_BOX,
    LINKED, WIDE_MAX = LINKED     /* too long for a chain                     */
};

/* An array, and what it has to be. */
struct array {
    unsigned char *at;            /* on the device or the host                */
    unsigned char *want;          /* the same, by the kind `host`             */
    char place;                   /* D: device, H: host, P: pinned host       */
};

static const struct dtn_cuda_want nobody = { .local_size = 1, .host = "here",
                                             .timeout_ns = 20000000000 };
static struct dtn_memory *gpu;
static struct array array[LINKS];
static size_t count;              /* elements of f32, or bytes / 4            */
static uint64_t seed;
static char said[2000];           /* by the log                               */

/* ---------------------------------------------------------- operations --- */

static void twice(void *dst, const void *left, const void *right, size_t n,
                  enum dtensor_dtype dtype, void *arg)
{
    for (size_t i = 0; i < n; i++)
        ((float *)dst)[i] = 2 * (((const float *)left)[i]
                                 + ((const float *)right)[i]);
}

static int fold(const struct dtn_memory *m, enum dtensor_dtype dtype,
                enum dtensor_redop op, int nsrc, void *const a[])
{
    struct dtn_reduction how = dtn_reduction(dtype, op, 3);
    const size_t n = 4 * count / dtensor_dtype_size(dtype);
    static const void *src[WIDE];

    for (int i = 0; i < nsrc; i++)
        src[i] = a[1 + i % 2];
    return m->ops->fold(m, &how, 0, a[0], src, nsrc, n);
}

static int function(const struct dtn_memory *m, void *const a[])
{
    struct dtn_reduction how = dtn_reduction(DTENSOR_F32, DTENSOR_SUM, 2);

    how.fn = twice;
    return m->ops->fold(m, &how, 0, a[0], (const void *const *)&a[1], 2, count);
}

/* Rows become columns, with gaps between them: of 40 or, if large, 1024. */
static struct dtn_box turned(void)
{
    const int64_t n = count < LARGE ? 40 : 1024;

    return (struct dtn_box){ 3, { 3, n, n - 1 }, { n * n, 1, n },
                             { n * n, n, 1 } };
}

static int box(const struct dtn_memory *m, enum what what, void *const a[])
{
    const struct dtn_reduction sum = dtn_reduction(DTENSOR_F32, DTENSOR_SUM, 2);
    const struct dtn_box rows = { 2, { 30, 40 }, { 80, 1 }, { 100, 1 } };
    const struct dtn_box turn = turned();

    if (what == COPY_BOX)
        return m->ops->copy_box(m, &rows, 4, a[0], a[1]);
    if (what == TURN_BOX)
        return m->ops->copy_box(m, &turn, 4, a[0], a[1]);
    return m->ops->fold_box(m, &turn, &sum, 0, true, a[0], a[1]);
}

static void fives(const void *how, int64_t first, size_t n, void *out,
                  const void *const in[])
{
    for (size_t i = 0; i < n; i++)
        ((int32_t *)out)[i] = (int32_t)(5 * (first + (int64_t)i));
}

static int formula(const struct dtn_memory *m, enum what what, void *const a[])
{
    static const struct dtn_formula no_kernel = { fives, NULL, 0 };
    const enum dtensor_dtype dtype = DTENSOR_F32;
    const struct dtn_random_stream stream = { 42, 7, (int64_t)count + 9, 0 };
    const struct dtn_dropout dropout = { DTENSOR_F32, 0.25 };
    struct dtn_dist dist;
    const struct dtn_fill_how fill = { &stream, &dist };
    struct dtn_elements elements = { .first = 9, .count = count,
                                     .out_bytes = 4, .in_bytes = { 4, 1 } };
    const struct dtn_formula *made = what == INDEX ? &dtn_index_formula
                                   : what == NORMAL ? &dtn_fill_formula
                                   : what == DROPOUT ? &dtn_dropout_formula
                                   : &no_kernel;

    dtn_dist_normal(&dist, DTN_NORMAL, DTENSOR_F32, 1, 3, NULL);
    elements.how = what == NORMAL ? &fill
                 : what == DROPOUT ? (const void *)&dropout : &dtype;
    return m->ops->make(m, made, &elements, a[0], (const void *const *)&a[1]);
}

/* The answer changes `want` of the first array; that of the kind `host` changes
 * it back, if it is the same.
 */
static int equal(const struct dtn_memory *m, void *const a[])
{
    bool same = false;
    int rc = m->ops->equal(m, DTENSOR_I32, a[1], a[2], count, &same);

    if (dtn_memory_done(m, rc) == 0)
        array[0].want[0] ^= same;
    return rc;
}

static int run(const struct dtn_memory *m, enum what what, void *const a[])
{
    switch (what) {
    case FOLD:   return fold(m, DTENSOR_F32, DTENSOR_SUM, 2, a);
    case MOVED:  return fold(m, DTENSOR_F32, DTENSOR_SUM, 1, a);
    case MANY_TERMS: return fold(m, DTENSOR_F32, DTENSOR_MAX, MANY, a);
    case MANY_BF16:  return fold(m, DTENSOR_BF16, DTENSOR_SUM, MANY, a);
    case MANY_AVERAGED: return fold(m, DTENSOR_I64, DTENSOR_AVG, MANY, a);
    case WIDE_MAX: return fold(m, DTENSOR_F32, DTENSOR_MAX, WIDE, a);
    case FUNCTION: return function(m, a);
    case SCALE:  return m->ops->scale(m, DTENSOR_F16, a[0], count, 3);
    case NEUTRAL:
        return m->ops->neutral(m, DTENSOR_F32, DTENSOR_MIN, a[0], count);
    case EQUAL:  return equal(m, a);
    case COPY_BOX: case TURN_BOX: case FOLD_BOX: return box(m, what, a);
    default:     return formula(m, what, a);
    }
}

/* -------------------------------------------------------------- arrays --- */

static size_t bytes(void)
{
    return 4 * count;
}

static int settled(int rc)
{
    return dtn_memory_done(gpu, rc);
}

static bool array_make(struct array *a, char place)
{
    const size_t whole = (bytes() + 4095) / 4096 * 4096;

    a->place = place;
    a->want = malloc(bytes());
    a->at = place == 'D' ? dtn_arena_alloc(gpu->arena, bytes())
                         : aligned_alloc(4096, whole);
    if (!a->at || !a->want)
        return false;
    if (place == 'P')
        gpu->ops->pin(gpu, a->at, whole);
    rand_bytes(&seed, a->want, bytes());
    return settled(gpu->ops->copy(gpu, a->at, a->want, bytes())) == 0;
}

static bool array_is_right(struct array *a)
{
    unsigned char *got = malloc(bytes());
    bool right = settled(gpu->ops->copy(gpu, got, a->at, bytes())) == 0
              && memcmp(got, a->want, bytes()) == 0;

    free(got);
    return right;
}

static void array_free(struct array *a)
{
    if (a->place == 'P')
        gpu->ops->unpin(gpu, a->at);
    if (a->place == 'D')
        dtn_arena_free(gpu->arena, a->at);
    else
        free(a->at);
    free(a->want);
}

/* On the arrays, and on what they have to be: 0 or DTN_LAUNCHED, if the last
 * one is complete.
 */
static bool both(enum what what, struct array *const of[])
{
    void *at[ARRAYS], *want[ARRAYS];
    int rc;

    for (int i = 0; i < ARRAYS; i++) {
        at[i] = of[i]->at;
        want[i] = of[i]->want;
    }
    rc = run(gpu, what, at);
    run(&dtn_host, what, want);
    return rc == 0 || rc == DTN_LAUNCHED;
}

/* --------------------------------------------------------------- cases --- */

static const struct {
    const char *claim;
    enum what what;
    const char *places;           /* of dst and the sources                   */
    int count;                    /* elements                                 */
    int launches;                 /* kernels that are launched                */
} cases[] = {
    { "a sum on the device", FOLD, "DDD", SMALL, 1 },
    { "a sum, a term of the host", FOLD, "DDH", SMALL, 1 },
    { "a sum, the first term pinned", FOLD, "DPD", SMALL, 1 },
    { "a sum into the host", FOLD, "HDD", SMALL, 1 },
    { "a sum into pinned memory", FOLD, "PDD", SMALL, 1 },
    { "a large sum, a term of the host, in pieces", FOLD, "DDH", LARGE, 4 },
    { "a large sum into pinned memory", FOLD, "PDD", LARGE, 4 },
    { "a sum, most of it in the host", FOLD, "DHP", SMALL, 0 },
    { "a sum in the host", FOLD, "HHP", SMALL, 0 },
    { "one term is a copy", MOVED, "DDD", SMALL, 0 },
    { "100 terms", MANY_TERMS, "DDD", SMALL, 4 },
    { "100 terms of bf16, rounded once", MANY_BF16, "DDD", SMALL, 4 },
    { "100 terms of i64, averaged", MANY_AVERAGED, "DDD", SMALL, 4 },
    { "40,000 terms, half of them in the host: pieces of 36 elements", WIDE_MAX,
      "DHD", FEW, 3 * 1291 },
    { "40,000 terms into the host", WIDE_MAX, "HHD", FEW, 0 },
    { "a function of the program's", FUNCTION, "DDD", SMALL, 0 },
    { "scale", SCALE, "DDD", SMALL, 1 },
    { "scale in the host", SCALE, "HDD", SMALL, 0 },
    { "neutral", NEUTRAL, "DDD", SMALL, 1 },
    { "arange", INDEX, "DDD", SMALL, 1 },
    { "arange in the host", INDEX, "HDD", SMALL, 0 },
    { "normal values", NORMAL, "DDD", SMALL, 1 },
    { "dropout", DROPOUT, "DDD", SMALL, 1 },
    { "dropout, the mask in the host", DROPOUT, "DDH", SMALL, 1 },
    { "large dropout, the mask in the host", DROPOUT, "DDH", LARGE, 1 },
    { "a formula without a kernel", NO_KERNEL, "DDD", SMALL, 0 },
    { "compare on the device", EQUAL, "HDD", SMALL, 1 },
    { "compare with the host", EQUAL, "HDH", SMALL, 1 },
    { "compare in pieces", EQUAL, "HPD", LARGE, 4 },
    { "compare in the host", EQUAL, "HHH", SMALL, 0 },
    { "rows on the device", COPY_BOX, "DDD", SMALL, 1 },
    { "rows from the host", COPY_BOX, "DHD", SMALL, 1 },
    { "rows to the host", COPY_BOX, "HDD", SMALL, 1 },
    { "rows in the host", COPY_BOX, "HPD", SMALL, 0 },
    { "a transpose on the device", TURN_BOX, "DDD", SMALL, 1 },
    { "a large transpose from the host", TURN_BOX, "DPD", LARGE, 3 },
    { "a large transpose to the host", TURN_BOX, "HDD", LARGE, 3 },
    { "a transpose added on the device", FOLD_BOX, "DDD", SMALL, 1 },
    { "a large one added from the host", FOLD_BOX, "DHD", LARGE, 3 },
    { "a large one added to pinned memory", FOLD_BOX, "PDD", LARGE, 3 },
};

/* In a process of its own: 0, or what was wrong. */
static int case_run(int i)
{
    struct array *of[ARRAYS] = { &array[0], &array[1], &array[2] };
    const struct dtn_cuda *cuda = dtn_cuda_of(gpu);
    const bool kernels = cuda->library && !getenv("TEST_NO_ROOM");
    int before;

    count = (size_t)cases[i].count;
    for (int a = 0; a < ARRAYS; a++)
        if (!array_make(of[a], cases[i].places[a]))
            return 1;
    if (cases[i].what == EQUAL && i % 2 == 0) {
        memcpy(array[2].want, array[1].want, bytes());
        if (settled(gpu->ops->copy(gpu, array[2].at, array[1].at, bytes())))
            return 2;
    }
    before = standin_launched();
    if (!both(cases[i].what, of))
        return 3;
    if (standin_used()
        && standin_launched() - before != (kernels ? cases[i].launches : 0))
        return 4;
    for (int a = 0; a < ARRAYS; a++)
        if (!array_is_right(of[a]))
            return 10 + a;
    for (int a = 0; a < ARRAYS; a++)
        array_free(of[a]);
    return 0;
}

/* Those of up to `most` elements. */
static int cases_run(int most)
{
    int rc = 0;

    for (size_t i = 0; i < DTN_COUNT(cases) && rc == 0; i++) {
        rc = cases[i].count <= most ? case_run((int)i) : 0;
        if (rc != 0)
            note("%s: step %d fails (%s)", cases[i].claim, rc,
                 gpu->ops->why(gpu));
    }
    return rc;
}

/* Operations one after another on arrays of all places, without a wait. */
static int chain_run(int rounds)
{
    static const char places[LINKS + 1] = "DPDDPH";

    count = SMALL;
    for (int i = 0; i < LINKS; i++)
        if (!array_make(&array[i], places[i]))
            return 1;
    for (int r = 0; r < rounds; r++) {
        for (int n = 0; n < 12; n++) {
            enum what what = (enum what)rand_below(&seed, LINKED);
            const int first = rand_below(&seed, LINKS);
            struct array *of[ARRAYS] = {
                &array[first], &array[(first + 1) % LINKS],
                &array[(first + 2 + rand_below(&seed, LINKS - 2)) % LINKS]
            };

            if (!both(what == EQUAL ? FOLD : what, of))
                return 2;
        }
        if (gpu->ops->settle(gpu, true) != 0)
            return 3;
        for (int i = 0; i < LINKS; i++)
            if (!array_is_right(&array[i]))
                return 10 + i;
    }
    for (int i = 0; i < LINKS; i++)
        array_free(&array[i]);
    return 0;
}

/* A kernel that fails ends the operation in words. */
static int fails(int later)
{
    struct array *of[ARRAYS] = { &array[0], &array[1], &array[2] };
    const char *why;

    count = SMALL;
    for (int a = 0; a < ARRAYS; a++)
        if (!array_make(of[a], 'D'))
            return 1;
    setenv("DTN_STANDIN_FAIL", later ? "cuLaunchKernel:1=-719"
                                     : "cuLaunchKernel:1=719", 1);
    if (both(FOLD, of) && gpu->ops->settle(gpu, true) == 0)
        return 2;
    why = gpu->ops->why(gpu);
    note("%s", why);
    _exit(!strstr(why, "dtn_fold_f32") || !strstr(why, "stream 0x")
          || !strstr(why, "GPU 0") || !strstr(why, "CUDA_ERROR_LAUNCH_FAILED"));
}

/* ----------------------------------------------------------- processes --- */

static bool device_open(const char *words)
{
    static struct dtn_log log = { .level = DTN_LOG_INFO };
    struct dtn_cuda_want want = nobody;
    struct dtensor_error err;

    want.log = &log;
    log.stream = tmpfile();
    if (!log.stream)
        return false;
    if (dtn_cuda_open(&want, &gpu, &err) != 0) {
        note("%s", err.text);
        return false;
    }
    rewind(log.stream);
    said[fread(said, 1, sizeof said - 1, log.stream)] = '\0';
    log.level = DTN_LOG_OFF;
    if (strstr(dtn_cuda_of(gpu)->no_kernels, words) && strstr(said, words)
        && (*words || !strstr(said, "no kernels")))
        return true;
    note("not \"%s\" but: %s", words, said);
    return false;
}

/* fn(arg) with a device of its own, where kernels are not loaded for a reason
 * with these words; "": they are.
 */
static int alone(const char *words, int (*fn)(int arg), int arg)
{
    char left[200];
    int status = 0, rc;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        rc = device_open(words) ? fn(arg) : 98;
        if (rc == 0) {
            gpu->ops->close(gpu);
            rc = standin_left(left, sizeof left);
        }
        fflush(stdout);
        _exit(rc);
    }
    waitpid(pid, &status, 0);
    return status;
}

/* Why no kernel is launched, and all is as it should be.  The CPU then goes the
 * same way: after the first reason it is not given the large arrays again.
 */
static const struct {
    const char *variable, *value, *words;
} reasons[] = {
    { "DTN_STANDIN_VERSION", "11080", "has no cuLibraryLoadData (CUDA 12.0)" },
    { "DTN_STANDIN_WITHOUT", "cuLaunchKernel", "has no cuLaunchKernel" },
    { "DTN_STANDIN_FAIL", "cuLibraryLoadData:1=200",
      "CUDA_ERROR_INVALID_IMAGE" },
    { "DTN_STANDIN_ATTRIBUTES", "75=7", "CUDA_ERROR_NO_BINARY_FOR_GPU" },
    { "DTN_STANDIN_FAIL", "cuLibraryGetKernel:3=500", "dtn_fold_f16" },
};

static void with_kernels(void)
{
    ok(alone("", cases_run, LARGE) == 0, "%zu operations by kernels, as many as "
       "are needed", DTN_COUNT(cases));
    setenv("DTN_STANDIN_LATE_US", "200", 1);
    ok(alone("", chain_run, rounds_of(20)) == 0, "chains on a late device "
       "(TEST_SEED=%llu)", (unsigned long long)seed);
    unsetenv("DTN_STANDIN_LATE_US");
    ok(alone("", fails, 0) == 0, "a launch that fails names kernel and stream");
    ok(alone("", fails, 1) == 0, "so does a kernel that fails later");
    for (size_t i = 0; i < DTN_COUNT(reasons); i++) {
        setenv(reasons[i].variable, reasons[i].value, 1);
        ok(alone(reasons[i].words, cases_run, i == 0 ? LARGE : SMALL) == 0,
           "\"%s\": the CPU does all of it", reasons[i].words);
        unsetenv(reasons[i].variable);
    }
    setenv("DTN_STANDIN_FAIL", "cuMemAlloc:0=2", 1);
    setenv("TEST_NO_ROOM", "1", 1);
    ok(alone("", cases_run, LARGE) == 0, "so it does without room on the device");
}

int main(void)
{
    const char *why = standin_use();

    if (why)
        return skip_all(why);
    seed = rand_seed(20261123);
    if (dtn_cuda_image_size > 0) {
        with_kernels();
        return done();
    }
    skip("operations by kernels", "built without nvcc");
    ok(alone("configure found no nvcc", cases_run, LARGE) == 0, "%zu operations "
       "by the CPU", DTN_COUNT(cases));
    ok(alone("configure found no nvcc", chain_run, rounds_of(20)) == 0,
       "chains (TEST_SEED=%llu)", (unsigned long long)seed);
    return done();
}
