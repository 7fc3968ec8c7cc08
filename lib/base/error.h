/* error.h - one way to fail: a code, and one line of text */
#ifndef DTN_BASE_ERROR_H
#define DTN_BASE_ERROR_H

#include "base/compiler.h"
#include "dtensor.h"

#include <stddef.h>

/* Fill *err (NULL: do nothing) and return `code`, so that a failing function
 * is one statement: return dtn_fail(err, DTENSOR_EINVAL, "mesh: ...", ...).
 * The text is `what: fact with values (what to do)`.  errno is preserved.
 */
int dtn_fail(struct dtensor_error *err, int code, const char *fmt, ...)
    DTN_PRINTF(3, 4);

/* The same for a failed system call: returns ESYS, or ENOMEM if sys_errno is
 * ENOMEM.  %m in `fmt` prints the text of `sys_errno`.
 */
int dtn_fail_sys(struct dtensor_error *err, int sys_errno, const char *fmt, ...)
    DTN_PRINTF(3, 4);

/* The same with the rank that caused the error. */
int dtn_fail_rank(struct dtensor_error *err, int code, int rank,
                  const char *fmt, ...) DTN_PRINTF(4, 5);

/* Call a function of the program: dtn_error_ready() gives the place for its
 * error, *err without a text, or *own if err is NULL; after it,
 * dtn_fail_program() returns its result `rc`.  If that is an error without a
 * text, `what` failed; a number above 0 counts as EINVAL.
 */
struct dtensor_error *dtn_error_ready(struct dtensor_error *err,
                                      struct dtensor_error *own);
int dtn_fail_program(struct dtensor_error *err, int rc, const char *what, ...)
    DTN_PRINTF(3, 4);

/* "out of memory" for `what`, `size` bytes. */
int dtn_fail_nomem(struct dtensor_error *err, const char *what, size_t size);

#endif
