/* baseline.c - any bytes as a file of results that dtensor-bench compares with
 *
 * What is refused has a reason of one line.  With what is accepted, results of
 * this run are compared; one that is found has a unit, and the numbers agree
 * with what is said of them.
 */
#include "dtensor.h"
#include "tests/fuzz/targets.h"
#include "tools/bench/baseline.h"
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/pattern.h"
#include "tools/bench/tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TOLERANCE 0.1

static void must(int condition)
{
    if (!condition)
        abort();
}

static void compare(const struct baseline *baseline, const char *test,
                    enum dtensor_redop redop, uint64_t bytes)
{
    const struct bench_case c = { .test = test_find(test), .redop = redop,
                                  .dtype = DTENSOR_F32, .bytes = bytes };
    const struct bench_result result = { .c = &c, .ranks = 2, .busbw = 5,
                                         .time_us = { .p50 = 5 } };
    struct verdict verdict;

    must(c.test != NULL);
    verdict = baseline_compare(baseline, &result, TOLERANCE);
    if (!verdict.found)
        return;
    must(verdict.now == 5 && isfinite(verdict.then));
    must(strcmp(verdict.unit, "GB/s") == 0
         ? verdict.below == (5 < (1 - TOLERANCE) * verdict.then)
         : verdict.below == (5 > (1 + TOLERANCE) * verdict.then));
}

void fuzz_baseline(const uint8_t *data, size_t size)
{
    struct baseline *baseline = NULL;
    struct dtensor_error err = { 0 };
    const int fd = memfd_create("baseline", MFD_CLOEXEC);
    char path[32];

    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    if (baseline_read(path, &baseline, &err) == 0) {
        compare(baseline, "allreduce", DTENSOR_SUM, 8);
        compare(baseline, "barrier", PATTERN_NO_OP, 0);
    } else {
        must(!baseline && err.code != 0 && *err.text);
        must(!strchr(err.text, '\n'));
    }
    baseline_destroy(baseline);
    close(fd);
}
