/* test_units.c - numbers as people write them
 *
 * A table of sizes, times and rates, right and wrong, with what each must be
 * read as.
 *
 * Without this test, "1.5G" or "500us" in a cluster file could be read as
 * another number.
 */
#include "base/compiler.h"
#include "base/units.h"
#include "base/words.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { UNTOUCHED = 12345 };

static void test_checked_sizes(void)
{
    static const struct { size_t a, b; bool mul, add; } cases[] = {
        { 0, 0, true, true },
        { 0, SIZE_MAX, true, true },
        { 1, SIZE_MAX, true, false },
        { 2, SIZE_MAX / 2, true, true },
        { 2, SIZE_MAX / 2 + 1, false, true },
        { SIZE_MAX, SIZE_MAX, false, false },
        { (size_t)1 << 32, (size_t)1 << 31, true, true },
        { (size_t)1 << 32, (size_t)1 << 32, false, true },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const size_t a = cases[i].a, b = cases[i].b;
        size_t product = UNTOUCHED, sum = UNTOUCHED;

        ok(dtn_mul_size(a, b, &product) == cases[i].mul &&
           product == (cases[i].mul ? a * b : UNTOUCHED),
           "%zu * %zu %s", a, b, cases[i].mul ? "fits" : "is refused");
        ok(dtn_add_size(a, b, &sum) == cases[i].add &&
           sum == (cases[i].add ? a + b : UNTOUCHED),
           "%zu + %zu %s", a, b, cases[i].add ? "fits" : "is refused");
    }
}

static void test_parse_u64(void)
{
    static const struct {
        const char *text;
        bool hex;
        uint64_t max;
        bool good;
        uint64_t value;
    } cases[] = {
        { "0", false, 9, true, 0 },
        { "007", false, 9, true, 7 },
        { "9", false, 9, true, 9 },
        { "10", false, 9, false, 0 },
        { "18446744073709551615", false, UINT64_MAX, true, UINT64_MAX },
        { "18446744073709551616", false, UINT64_MAX, false, 0 },
        { "99999999999999999999", false, UINT64_MAX, false, 0 },
        { "0xff", true, 255, true, 255 },
        { "0XfF", true, 255, true, 255 },
        { "0xffffffffffffffff", true, UINT64_MAX, true, UINT64_MAX },
        { "0x10000000000000000", true, UINT64_MAX, false, 0 },
        { "12", true, 99, true, 12 },
        { "0xff", false, 255, false, 0 },
        { "0x", true, 255, false, 0 },
        { "ff", true, 255, false, 0 },
        { "", false, 9, false, 0 },
        { "-1", false, UINT64_MAX, false, 0 },
        { "+1", false, 9, false, 0 },
        { " 1", false, 9, false, 0 },
        { "1 ", false, 9, false, 0 },
        { "1.0", false, 9, false, 0 },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const uint64_t want = cases[i].good ? cases[i].value : UNTOUCHED;
        uint64_t value = UNTOUCHED;

        ok(dtn_parse_u64(cases[i].text, cases[i].hex, cases[i].max, &value) ==
           cases[i].good && value == want,
           "\"%s\"%s up to %llu %s", cases[i].text,
           cases[i].hex ? " or hex" : "", (unsigned long long)cases[i].max,
           cases[i].good ? "is a number" : "is refused");
    }
}

static void test_parse_size(void)
{
    static const struct { const char *text; bool good; uint64_t bytes; }
    cases[] = {
        { "0", true, 0 },
        { "4096", true, 4096 },
        { "512K", true, 524288 },
        { "3M", true, 3 << 20 },
        { "1G", true, 1 << 30 },
        { "1T", true, (uint64_t)1 << 40 },
        { "16777215T", true, (uint64_t)16777215 << 40 },
        { "16777216T", false, 0 },
        { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 },
        { "512KB", false, 0 },
        { "512KiB", false, 0 },
        { "512k", false, 0 },
        { "1P", false, 0 },
        { "K", false, 0 },
        { "", false, 0 },
        { "1.5M", false, 0 },
        { "-1", false, 0 },
        { "1 K", false, 0 },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const uint64_t want = cases[i].good ? cases[i].bytes : UNTOUCHED;
        uint64_t bytes = UNTOUCHED;

        ok(dtn_parse_size(cases[i].text, &bytes) == cases[i].good &&
           bytes == want, "\"%s\" %s", cases[i].text,
           cases[i].good ? "is a size" : "is refused as a size");
    }
}

static void test_parse_time(void)
{
    static const struct { const char *text; bool good; int64_t ns; } cases[] = {
        { "0s", true, 0 },
        { "7us", true, 7000 },
        { "20ms", true, 20000000 },
        { "30s", true, 30000000000 },
        { "10min", true, 600000000000 },
        { "9223372036s", true, 9223372036000000000 },
        { "9223372037s", false, 0 },
        { "153722867min", true, 9223372020000000000 },
        { "153722868min", false, 0 },
        { "30", false, 0 },
        { "30S", false, 0 },
        { "30 s", false, 0 },
        { "30h", false, 0 },
        { "s", false, 0 },
        { "-1s", false, 0 },
        { "1.5s", false, 0 },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const int64_t want = cases[i].good ? cases[i].ns : UNTOUCHED;
        int64_t ns = UNTOUCHED;

        ok(dtn_parse_time(cases[i].text, &ns) == cases[i].good && ns == want,
           "\"%s\" %s", cases[i].text,
           cases[i].good ? "is a time" : "is refused as a time");
    }
}

static void test_format(void)
{
    static const struct { uint64_t bytes; const char *text; } sizes[] = {
        { 0, "0 bytes" }, { 1, "1 byte" }, { 1023, "1023 bytes" },
        { 1024, "1.0 KiB" }, { 524288, "512.0 KiB" }, { 1048575, "1.0 MiB" },
        { 1 << 20, "1.0 MiB" }, { (uint64_t)3 << 29, "1.5 GiB" },
        { UINT64_MAX, "16.0 EiB" },
    };
    static const struct { int64_t ns; const char *text; } times[] = {
        { 0, "0 ns" }, { 999, "999 ns" }, { 1000, "1.0 us" },
        { 1500000, "1.5 ms" }, { 1500000000, "1.5 s" },
        { 60000000000, "60.0 s" },
    };
    char buf[32];

    for (size_t i = 0; i < DTN_COUNT(sizes); i++)
        ok(strcmp(dtn_format_size(sizes[i].bytes, buf, sizeof buf),
                  sizes[i].text) == 0, "%llu is \"%s\"",
           (unsigned long long)sizes[i].bytes, sizes[i].text);
    for (size_t i = 0; i < DTN_COUNT(times); i++)
        ok(strcmp(dtn_format_time(times[i].ns, buf, sizeof buf),
                  times[i].text) == 0, "%lld ns is \"%s\"",
           (long long)times[i].ns, times[i].text);
}

static void test_format_ranks(void)
{
    static const struct { int n, ranks[8]; const char *text; } cases[] = {
        { 0, { 0 }, "" },
        { 1, { 4 }, "4" },
        { 2, { 0, 1 }, "0-1" },
        { 4, { 0, 1, 2, 5 }, "0-2,5" },
        { 5, { 7, 8, 3, 2, 1 }, "7-8,3,2,1" },
    };
    int even[200];
    char buf[64];
    size_t length;

    for (size_t i = 0; i < DTN_COUNT(cases); i++)
        ok(strcmp(dtn_format_ranks(cases[i].ranks, cases[i].n, buf, sizeof buf),
                  cases[i].text) == 0, "ranks are written \"%s\"",
           cases[i].text);
    for (int i = 0; i < 200; i++)
        even[i] = 2 * i;
    dtn_format_ranks(even, 200, buf, sizeof buf);
    length = strlen(buf);
    ok(length < sizeof buf && strncmp(buf, "0,2,4,6,", 8) == 0 &&
       strcmp(buf + length - 3, "...") == 0, "a long list is cut: %s", buf);
}

static void test_nearest(void)
{
    static const char *const words[] = {
        "address", "connect_timeout", "op_timeout", "ranks", "rails", NULL
    };
    static const struct { const char *word, *meant; } cases[] = {
        { "ranks", "ranks" },
        { "rank", "ranks" },
        { "rnaks", "ranks" },
        { "adress", "address" },
        { "conect_timeuot", "connect_timeout" },
        { "optimeout", "op_timeout" },
        { "colour", NULL },
        { "", NULL },
        { "x", NULL },
        { "an_unreasonably_long_word_that_nobody_would_ever_mean_to_type_here",
          NULL },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const char *best = dtn_nearest(cases[i].word, words);

        ok(best == cases[i].meant ||
           (best && cases[i].meant && strcmp(best, cases[i].meant) == 0),
           "\"%s\" may mean %s", cases[i].word,
           cases[i].meant ? cases[i].meant : "nothing known");
    }
}

int main(void)
{
    test_checked_sizes();
    test_parse_u64();
    test_parse_size();
    test_parse_time();
    test_format();
    test_format_ranks();
    test_nearest();
    return done();
}
