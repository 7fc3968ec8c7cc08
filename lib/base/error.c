/* error.c - one way to fail
 *
 * The first function that knows the cause writes the text, with the values and
 * the remedy, into the caller's struct dtensor_error.  All callers above return
 * the code unchanged.  A text that does not fit into 500 bytes ends in "...".
 */
#include "base/error.h"
#include "base/compiler.h"
#include "base/units.h"
#include "dtensor.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void error_set(struct dtensor_error *err, int code, int rank,
                      int sys_errno, const char *fmt, va_list ap)
{
    char text[sizeof err->text];            /* err->text may be in `ap`      */
    int saved = errno;
    int n;

    if (!err)
        return;
    err->code = code;
    err->rank = rank;
    err->sys_errno = sys_errno;
    errno = sys_errno;
    n = vsnprintf(text, sizeof text, fmt, ap);
    if (n >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    for (char *p = text; *p; p++)           /* a file may hold any name      */
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    memcpy(err->text, text, sizeof err->text);
    errno = saved;
}

int dtn_fail(struct dtensor_error *err, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_set(err, code, -1, 0, fmt, ap);
    va_end(ap);
    return code;
}

int dtn_fail_sys(struct dtensor_error *err, int sys_errno, const char *fmt, ...)
{
    int code = sys_errno == ENOMEM ? DTENSOR_ENOMEM : DTENSOR_ESYS;
    va_list ap;

    va_start(ap, fmt);
    error_set(err, code, -1, sys_errno, fmt, ap);
    va_end(ap);
    return code;
}

int dtn_fail_rank(struct dtensor_error *err, int code, int rank,
                  const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_set(err, code, rank, 0, fmt, ap);
    va_end(ap);
    return code;
}

int dtn_fail_nomem(struct dtensor_error *err, const char *what, size_t size)
{
    char buf[32];

    return dtn_fail(err, DTENSOR_ENOMEM, "%s: out of memory: %s wanted "
                    "(see ulimit -v and free -h)", what,
                    dtn_format_size(size, buf, sizeof buf));
}

const char *dtensor_errname(int code)
{
    static const char *const names[] = {
        "0", "EINVAL", "ENOMEM", "ESYS", "ECONF", "ENODEV", "EPEER",
        "ETIME", "EAGAIN", "EMISMATCH", "EABORT"
    };

    if (code > 0 || code <= -(int)DTN_COUNT(names))
        return "unknown error";
    return names[-code];
}
