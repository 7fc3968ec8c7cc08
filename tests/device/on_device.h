/* on_device.h - included before a test: its calls use device memory */
#include "tests/device/suite.h"
#include "tests/device/calls.h"    /* made of the public header: each call    */
#undef dtensor_init
#define dtensor_init(...) ON_DEVICE(suite_init(__VA_ARGS__))

/* Each call opens and shuts the device memory: its time says nothing. */
#include "tests/support/ranks.h"
#define timeless() true
