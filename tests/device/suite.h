/* suite.h - a test of another room, with its tensors in device memory */
#ifndef TESTS_DEVICE_SUITE_H
#define TESTS_DEVICE_SUITE_H

#include "dtensor.h"

/* dtensor_init(), with tensors and allocations in device memory. */
int suite_init(const char *path, struct dtensor_ctx **ctxp,
               struct dtensor_error *err);

/* A call of the library begins, and ends.  They nest. */
int suite_enter(void);
void suite_leave(const int *entered);

#define ON_DEVICE(call) ON_DEVICE_NAMED(call, __COUNTER__)
#define ON_DEVICE_NAMED(call, number) ON_DEVICE_CALL(call, number)
#define ON_DEVICE_CALL(call, number)                                          \
    __extension__({                                                           \
        __attribute__((cleanup(suite_leave), unused))                         \
            const int entered_##number = suite_enter();                       \
        call;                                                                 \
    })

#endif
