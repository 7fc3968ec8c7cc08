/* baseline.c - compares with the results of an earlier run
 *
 * The file is the output of --json.  With a tolerance of 10% a busbw of 4.4
 * GB/s is below a baseline of 5 GB/s, and 4.6 is not.  A test that moves no
 * bytes, such as a barrier, is compared by its median time.
 */
#include "config.h"
#include "tools/bench/baseline.h"
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/pattern.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_JANSSON
#include <jansson.h>

struct baseline {
    json_t *root;
    json_t *results;              /* of root                                  */
};

/* libjansson quotes the file, which may have the end of a line there. */
static const char *one_line(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '\177')
            *c = ' ';
    return text;
}

int baseline_read(const char *path, struct baseline **baselinep,
                  struct dtensor_error *err)
{
    struct baseline *baseline = calloc(1, sizeof *baseline);
    json_error_t where;

    if (!baseline)
        return session_fail(err, DTENSOR_ENOMEM, "no memory for --baseline");
    baseline->root = json_load_file(path, 0, &where);
    if (!baseline->root) {
        free(baseline);
        return where.line < 0
             ? session_fail(err, DTENSOR_EINVAL, "--baseline: %s",
                            one_line(where.text))
             : session_fail(err, DTENSOR_EINVAL, "--baseline %s: line %d: %s "
                            "(expected what --json writes)", path, where.line,
                            one_line(where.text));
    }
    baseline->results = json_object_get(baseline->root, "results");
    if (!json_is_array(baseline->results) ||
        json_array_size(baseline->results) == 0) {
        baseline_destroy(baseline);
        return session_fail(err, DTENSOR_EINVAL, "--baseline %s: it has no "
                            "results (expected what --json writes)", path);
    }
    *baselinep = baseline;
    return 0;
}

void baseline_destroy(struct baseline *baseline)
{
    if (!baseline)
        return;
    json_decref(baseline->root);
    free(baseline);
}

static int row_says(const json_t *row, const char *key, const char *text)
{
    const char *said = json_string_value(json_object_get(row, key));

    return said && strcmp(said, text) == 0;
}

static int row_counts(const json_t *row, const char *key, uint64_t number)
{
    const json_t *said = json_object_get(row, key);

    return json_is_integer(said) && json_integer_value(said)
                                    == (json_int_t)number;
}

static int row_is(const json_t *row, const struct bench_result *result)
{
    const struct bench_case *c = result->c;

    return row_says(row, "test", c->test->name) &&
           row_says(row, "dtype", dtensor_dtype_name(c->dtype)) &&
           row_says(row, "redop", c->redop == PATTERN_NO_OP
                    ? "none" : dtensor_redop_name(c->redop)) &&
           json_is_true(json_object_get(row, "repro")) == c->repro &&
           row_counts(row, "bytes", c->bytes) &&
           row_counts(row, "ranks", (uint64_t)result->ranks);
}

static struct verdict row_compare(const json_t *row,
                                  const struct bench_result *result,
                                  double tolerance)
{
    struct verdict verdict = { .found = 1, .now = result->busbw,
                               .unit = "GB/s" };

    verdict.then = json_number_value(json_object_get(row, "busbw_GBps"));
    verdict.below = verdict.now < (1 - tolerance) * verdict.then;
    if (verdict.then <= 0) {
        verdict.unit = "us";
        verdict.now = result->time_us.p50;
        verdict.then = json_number_value(json_object_get(
            json_object_get(row, "time_us"), "p50"));
        verdict.below = verdict.now > (1 + tolerance) * verdict.then;
    }
    return verdict;
}

struct verdict baseline_compare(const struct baseline *baseline,
                                const struct bench_result *result,
                                double tolerance)
{
    for (size_t i = 0; i < json_array_size(baseline->results); i++) {
        const json_t *row = json_array_get(baseline->results, i);

        if (row_is(row, result))
            return row_compare(row, result, tolerance);
    }
    return (struct verdict){ .found = 0 };
}

#else

int baseline_read(const char *path, struct baseline **baselinep,
                  struct dtensor_error *err)
{
    (void)baselinep;              /* options.c has refused it before          */
    return session_fail(err, DTENSOR_EINVAL, "--baseline %s: this build is "
                        "without libjansson", path);
}

void baseline_destroy(struct baseline *baseline)
{
    (void)baseline;
}

struct verdict baseline_compare(const struct baseline *baseline,
                                const struct bench_result *result,
                                double tolerance)
{
    (void)baseline;
    (void)result;
    (void)tolerance;
    return (struct verdict){ .found = 0 };
}
#endif
