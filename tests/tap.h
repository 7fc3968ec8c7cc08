/* tap.h - the test harness: TAP on stdout
 *
 * A test is a claim in words: ok(n == 4, "a group of four has %d ranks", n).
 * End with `return done();`.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failed;

static inline bool tap_line(bool good, const char *file, int line,
                            const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static inline bool tap_line(bool good, const char *file, int line,
                            const char *fmt, ...)
{
    va_list ap;

    printf("%sok %d - ", good ? "" : "not ", ++tap_count);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    if (!good) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }
    fflush(stdout);
    return good;
}

#define ok(condition, ...) tap_line((condition), __FILE__, __LINE__, __VA_ARGS__)
#define note(...) (printf("# " __VA_ARGS__), printf("\n"), fflush(stdout))

static inline void skip(const char *claim, const char *reason)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_count, claim, reason);
}

/* The whole test program cannot run here. */
static inline int skip_all(const char *reason)
{
    printf("1..0 # SKIP %s\n", reason);
    return 0;
}

static inline int done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}

#endif
