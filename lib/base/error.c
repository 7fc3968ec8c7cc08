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

struct dtensor_error *dtn_error_ready(struct dtensor_error *err,
                                      struct dtensor_error *own)
{
    struct dtensor_error *at = err ? err : own;

    at->code = 0;
    at->rank = -1;
    at->sys_errno = 0;
    at->text[0] = '\0';
    return at;
}

int dtn_fail_program(struct dtensor_error *err, int rc, const char *what, ...)
{
    const int code = rc > 0 ? DTENSOR_EINVAL : rc;
    char words[200];
    va_list ap;

    if (rc == 0)
        return 0;
    err->code = code;
    if (err->text[0])
        return code;
    va_start(ap, what);
    vsnprintf(words, sizeof words, what, ap);
    va_end(ap);
    if (rc > 0)
        return dtn_fail(err, code, "%s returned %d (expected 0, or a negative "
                        "code and a text in *err)", words, rc);
    return dtn_fail(err, code, "%s returned %s without a text in *err", words,
                    dtensor_errname(rc));
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
