/* said.c - what was seen, as text in a buffer of the caller's */
#include "tests/cluster/said.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static char *here;                /* where in `said` the next line goes       */
static size_t left;

void say_begin(char said[SAID])
{
    here = said;
    left = SAID;
    said[0] = '\0';
}

void say(const char *fmt, ...)
{
    va_list ap;
    size_t n;

    va_start(ap, fmt);
    n = (size_t)vsnprintf(here, left, fmt, ap);
    va_end(ap);
    n = n < left ? n : left - 1;
    here += n;
    left -= n;
}
