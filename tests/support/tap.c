/* tap.c - the test harness: TAP on stdout */
#include "tests/support/tap.h"

#include <stdarg.h>
#include <stdlib.h>

static int tap_count, tap_failed;

bool tap_line(bool good, const char *file, int line, const char *fmt, ...)
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

void skip(const char *claim, const char *reason)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_count, claim, reason);
}

int skip_all(const char *reason)
{
    printf("1..0 # SKIP %s\n", reason);
    return 0;
}

int done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}
