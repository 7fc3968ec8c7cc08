/* pretend.h - a device whose memory the CPU may not touch inside the library
 *
 * Its memory is a file that is mapped twice.  Programs and the library know the
 * window; the operations of the kind use the alias.  While a call of the
 * library is under way the window has no access, so a load or store that does
 * not go through the kind is a SIGSEGV.  Between calls the test may read and
 * write it.  Operations are queued and carried out by settle() only, which
 * first says EAGAIN to who does not wait.
 */
#ifndef TESTS_DEVICE_PRETEND_H
#define TESTS_DEVICE_PRETEND_H

#include "dtensor.h"

/* dtensor_init(), with tensors and allocations on a device of its own. */
int pretend_init(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err);

/* A call of the library begins, and ends.  They nest. */
int pretend_enter(void);
void pretend_leave(const int *entered);

#define ON_PRETEND(call) PRETEND_NAMED(call, __COUNTER__)
#define PRETEND_NAMED(call, number) PRETEND_CALL(call, number)
#define PRETEND_CALL(call, number)                                            \
    __extension__({                                                           \
        __attribute__((cleanup(pretend_leave), unused))                       \
            const int entered_##number =                                      \
            pretend_enter();                                                  \
        call;                                                                 \
    })

#endif
