/* on_pretend.h - included before a suite: puts it on a pretend device */
#include "tests/device/pretend.h"
#include "tests/device/calls.h"    /* made of the public header: each call    */
#undef dtensor_init
#define dtensor_init(...) ON_PRETEND(pretend_init(__VA_ARGS__))
