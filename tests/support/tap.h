/* tap.h - the test harness: TAP on stdout
 *
 * A test is a claim in words: ok(n == 4, "a group of four has %d ranks", n).
 * End with `return done();`.
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdbool.h>
#include <stdio.h>

bool tap_line(bool good, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#define ok(condition, ...)                                                    \
    tap_line((condition), __FILE__, __LINE__, __VA_ARGS__)
#define note(...) (printf("# " __VA_ARGS__), printf("\n"), fflush(stdout))

void skip(const char *claim, const char *reason);

/* The whole test program cannot run here. */
int skip_all(const char *reason);
int done(void);

#endif
