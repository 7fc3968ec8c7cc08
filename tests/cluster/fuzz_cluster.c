/* fuzz_cluster.c - cluster files with bytes changed at random
 *
 * Reading must end, with a cluster or with findings of the form FILE[:LINE]:
 * error|warning.
 *
 * As a test it changes the examples in conf/ for two seconds, with the seed it
 * prints (or that of DTN_TEST_SEED).  For libFuzzer:
 *
 *     clang -fsanitize=fuzzer,address -DDTN_LIBFUZZER ...
 *     tests/cluster/fuzz_cluster.c
 *
 * Without this test, a damaged file could crash every rank of a job, or be
 * refused without a word.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "dtensor.h"
#include "tests/cluster/cluster_files.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int good_files, bad_files;

static void check_report(const char *text)
{
    for (const char *p = text; *p; p = strchr(p, '\n') + 1)
        if (p[0] != 'F' || p[1] != ':' || !strchr(p, '\n') ||
            (!strstr(p, ": error: ") && !strstr(p, ": warning: ")))
            abort();
}

/* A good one has views, a text of its own, and no rank without a host. */
static void check_cluster(const struct dtensor_cluster *cluster)
{
    static FILE *null;
    char *text;

    if (!null)
        null = fopen("/dev/null", "w");
    if (cluster->world_size < 1 || cluster->nmeshes < 1)
        abort();
    if (cluster->world_size > 4096)
        return;
    for (int view = 0; view < DTENSOR_NSHOWS; view++)
        if (dtensor_cluster_show(cluster, (enum dtensor_show)view, -1, null,
                                 NULL) != 0 && view != DTENSOR_SHOW_SEEDS &&
            view != DTENSOR_SHOW_PLAN)
            abort();
    if (dtn_cluster_canonical(cluster, &text, NULL) != 0)
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dtensor_cluster *cluster = NULL;
    static struct report report;
    struct dtensor_error err;
    int rc = read_bytes(data, size, &cluster, &report, &err);

    check_report(report.text);
    if (rc == 0) {
        good_files++;
        check_cluster(cluster);
    } else {
        bad_files++;
        if (rc != DTENSOR_ECONF || cluster || !*report.text)
            abort();
    }
    dtensor_cluster_destroy(cluster);
    return 0;
}

#ifndef DTN_LIBFUZZER

static uint64_t state;

/* splitmix64 */
static uint64_t random_next(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t below(size_t n)
{
    return (size_t)(random_next() % n);
}

/* What a file may hold where it hurts. */
static const char *const pieces[] = {
    "[", "]", "[mesh \"x\"]\n", "[nodes \"y\"]\n", "\"", "=", ":", ";", " #",
    "-", ",", "|", "@step", "localhost", "0", "1-", "[1-3]", "[9-1]", "inf",
    "999999999999999999999", "parent = world\n", "select = dp=0\n", "\n", "\r",
    "\t", "\xef\xbb\xbf", "\xc3", "hosts = n[1-65536]\n", "dims = a=1, b=1\n",
    "ranks = 0-7:2\n", "[[", "(x3)", "shard(9)", "*", "..", "K", "min"
};

/* Change `text` of n bytes, with room for 64 more, in one place. */
static size_t mutate(char *text, size_t n)
{
    const char *piece = pieces[below(DTN_COUNT(pieces))];
    size_t at = below(n), length = strlen(piece), count = 1 + below(12);

    switch (below(4)) {
    case 0:                                            /* another byte       */
        text[at] = (char)random_next();
        return n;
    case 1:                                            /* some bytes fewer   */
        count = count < n - at ? count : n - at;
        memmove(text + at, text + at + count, n - at - count);
        return n - count ? n - count : 1;
    case 2:                                            /* a piece over it    */
        length = length < n - at ? length : n - at;
        memcpy(text + at, piece, length);
        return n;
    default:                                           /* a piece more       */
        memmove(text + at + length, text + at, n - at);
        memcpy(text + at, piece, length);
        return n + length;
    }
}

static size_t load(const char *name, char *text, size_t size)
{
    char path[4096];
    FILE *stream;
    size_t n;

    snprintf(path, sizeof path, "%s/conf/%s", getenv("top_srcdir") ?
             getenv("top_srcdir") : ".", name);
    stream = fopen(path, "r");
    if (!stream)
        return 0;
    n = fread(text, 1, size, stream);
    fclose(stream);
    return n;
}

int main(void)
{
    static const char *const names[] = {
        "laptop.ini", "two-nodes.ini", "128-nodes.ini"
    };
    static char example[3][8192], text[8192 + 1024];
    size_t size[3], n;
    int64_t end = dtn_now_ns() + 2 * INT64_C(1000000000);
    const char *seed = getenv("DTN_TEST_SEED");

    state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    note("DTN_TEST_SEED=%" PRIu64, state);
    for (size_t i = 0; i < 3; i++) {
        size[i] = load(names[i], example[i], sizeof example[i]);
        if (size[i] == 0)
            return skip_all("no examples in $top_srcdir/conf");
        LLVMFuzzerTestOneInput((const uint8_t *)example[i], size[i]);
    }
    ok(good_files == 3 && bad_files == 0, "the examples are good");
    while (dtn_now_ns() < end) {
        size_t i = below(3);

        memcpy(text, example[i], size[i]);
        n = size[i];
        for (size_t k = 1 + below(4); k > 0; k--)
            n = mutate(text, n);
        LLVMFuzzerTestOneInput((const uint8_t *)text, n);
    }
    ok(good_files > 3 && bad_files > 0, "%d mutants are good, %d are refused",
       good_files - 3, bad_files);
    return done();
}

#endif
