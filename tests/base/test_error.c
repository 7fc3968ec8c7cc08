/* test_error.c - an error is one line in the struct of the caller
 *
 * The test also shows that logs are silent unless DTN_LOG asks for them.
 *
 * Without this test, an error text could have several lines, be cut without a
 * sign, or reach a terminal that nobody asked to write to.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void test_fail(void)
{
    struct dtensor_error err = { 0 };
    char text[sizeof err.text];
    int rc;

    errno = EDOM;
    rc = dtn_fail(&err, DTENSOR_EINVAL, "mesh: %d ranks", 3);
    ok(rc == DTENSOR_EINVAL && err.code == DTENSOR_EINVAL && err.rank == -1 &&
       err.sys_errno == 0 && strcmp(err.text, "mesh: 3 ranks") == 0,
       "dtn_fail() returns its code and explains it");
    ok(errno == EDOM, "dtn_fail() preserves errno");

    rc = dtn_fail_sys(&err, EACCES, "open %s: %m", "x");
    snprintf(text, sizeof text, "open x: %s", strerror(EACCES));
    ok(rc == DTENSOR_ESYS && err.sys_errno == EACCES &&
       strcmp(err.text, text) == 0, "%%m is the failed call's errno: %s",
       err.text);
    ok(errno == EDOM, "dtn_fail_sys() preserves errno");
    ok(dtn_fail_sys(&err, ENOMEM, "mmap: %m") == DTENSOR_ENOMEM,
       "errno ENOMEM is the code ENOMEM");

    rc = dtn_fail_rank(&err, DTENSOR_EPEER, 7, "rank %d died", 7);
    ok(rc == DTENSOR_EPEER && err.rank == 7, "dtn_fail_rank() names a culprit");
    rc = dtn_fail_nomem(&err, "plan", 1 << 20);
    ok(rc == DTENSOR_ENOMEM && strstr(err.text, "plan: out of memory: 1.0 MiB"),
       "out of memory says what for and how much: %s", err.text);
    ok(dtn_fail(NULL, DTENSOR_EAGAIN, "x") == DTENSOR_EAGAIN &&
       dtn_fail_sys(NULL, EIO, "x") == DTENSOR_ESYS &&
       dtn_fail_rank(NULL, DTENSOR_EPEER, 1, "x") == DTENSOR_EPEER &&
       dtn_fail_nomem(NULL, "x", 1) == DTENSOR_ENOMEM,
       "without a struct the code alone comes back");
}

/* A function of the program may leave *err as it was. */
static void test_program(void)
{
    struct dtensor_error err = { .code = 5, .rank = 3, .text = "of before" };
    struct dtensor_error none, *why = dtn_error_ready(&err, &none);

    ok(why == &err && dtn_fail_program(why, 0, "x") == 0 && !err.text[0],
       "no error, no text");
    ok(dtn_fail_program(why, DTENSOR_EABORT, "%s: its hook", "x") ==
       DTENSOR_EABORT && err.code == DTENSOR_EABORT && err.rank == -1 &&
       strcmp(err.text, "x: its hook returned EABORT without a text in *err")
       == 0, "a function without a text is named: %s", err.text);
    why = dtn_error_ready(&err, &none);
    ok(dtn_fail_program(why, 4, "x") == DTENSOR_EINVAL &&
       strstr(err.text, "x returned 4 (expected 0, or a negative code"),
       "a number above 0 is no code: %s", err.text);
    why = dtn_error_ready(&err, &none);
    snprintf(why->text, sizeof why->text, "its own");
    ok(dtn_fail_program(why, DTENSOR_ESYS, "x") == DTENSOR_ESYS &&
       err.code == DTENSOR_ESYS && strcmp(err.text, "its own") == 0,
       "a text of the program stays");
    why = dtn_error_ready(NULL, &none);
    ok(why == &none && dtn_fail_program(why, DTENSOR_ESYS, "x") ==
       DTENSOR_ESYS, "there is a place for a text, if nobody reads it");
}

static void test_text(void)
{
    struct dtensor_error err;
    char full[sizeof err.text + 1];

    memset(full, 'x', sizeof full);
    full[sizeof err.text - 1] = '\0';
    dtn_fail(&err, DTENSOR_EINVAL, "%s", full);
    ok(strcmp(err.text, full) == 0, "a text of %zu bytes fits", strlen(full));
    full[sizeof err.text - 1] = 'x';
    full[sizeof err.text] = '\0';
    dtn_fail(&err, DTENSOR_EINVAL, "%s", full);
    ok(strlen(err.text) == sizeof err.text - 1 &&
       strcmp(err.text + sizeof err.text - 5, "x...") == 0,
       "one byte more is cut and ends in \"...\"");
    dtn_fail(&err, DTENSOR_EINVAL, "file \"%s\"", "a\nb\r");
    ok(strcmp(err.text, "file \"a b \"") == 0, "the text is one line");
    dtn_fail(&err, DTENSOR_EINVAL, "inner");
    dtn_fail(&err, DTENSOR_EINVAL, "outer: %s", err.text);
    ok(strcmp(err.text, "outer: inner") == 0,
       "an error may be worded from its own text");
}

static void test_names(void)
{
    static const struct { int code; const char *name; } names[] = {
        { 0, "0" }, { DTENSOR_EINVAL, "EINVAL" }, { DTENSOR_ENOMEM, "ENOMEM" },
        { DTENSOR_ESYS, "ESYS" }, { DTENSOR_ECONF, "ECONF" },
        { DTENSOR_ENODEV, "ENODEV" }, { DTENSOR_EPEER, "EPEER" },
        { DTENSOR_ETIME, "ETIME" }, { DTENSOR_EAGAIN, "EAGAIN" },
        { DTENSOR_EMISMATCH, "EMISMATCH" }, { DTENSOR_EABORT, "EABORT" },
        { 1, "unknown error" }, { DTENSOR_EABORT - 1, "unknown error" },
        { INT_MIN, "unknown error" }, { INT_MAX, "unknown error" }
    };

    for (size_t i = 0; i < DTN_COUNT(names); i++)
        ok(strcmp(dtensor_errname(names[i].code), names[i].name) == 0,
           "error %d is named %s", names[i].code, names[i].name);
}

static enum dtn_log_level level_of(const char *value)
{
    struct dtn_log log;

    if (value)
        setenv("DTN_LOG", value, 1);
    else
        unsetenv("DTN_LOG");
    dtn_log_init(&log);
    return log.level;
}

static void test_log(void)
{
    struct dtn_log log;
    char *text = NULL;
    size_t size = 0;

    ok(level_of(NULL) == DTN_LOG_OFF && level_of("off") == DTN_LOG_OFF &&
       level_of("") == DTN_LOG_OFF, "silent without DTN_LOG");
    ok(level_of("loud") == DTN_LOG_WARN, "another word is taken for warn");
    ok(level_of("warn") == DTN_LOG_WARN && level_of("info") == DTN_LOG_INFO &&
       level_of("debug") == DTN_LOG_DEBUG, "DTN_LOG sets the level");

    level_of("info");
    dtn_log_init(&log);
    log.stream = open_memstream(&text, &size);
    if (!log.stream) {
        skip("lines of the log", "no memory stream");
        return;
    }
    errno = EDOM;
    dtn_log(&log, DTN_LOG_INFO, "net: %d", 1);
    log.rank = 3;
    dtn_log(&log, DTN_LOG_WARN, "cost: ring");
    dtn_log(&log, DTN_LOG_DEBUG, "not asked for");
    ok(errno == EDOM, "logging preserves errno");
    fclose(log.stream);
    ok(strcmp(text, "dtensor: net: 1\ndtensor[rank 3] cost: ring\n") == 0,
       "a line names the rank once it is known, and the level filters");
    free(text);
}

int main(void)
{
    test_fail();
    test_program();
    test_text();
    test_names();
    test_log();
    return done();
}
