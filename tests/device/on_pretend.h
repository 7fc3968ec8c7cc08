/* on_pretend.h - included before a suite: puts it on a pretend device */
#include "tests/device/pretend.h"
#include "tests/device/calls.h"    /* made of the public header: each call    */
#undef dtensor_init
#define dtensor_init(...) ON_PRETEND(pretend_init(__VA_ARGS__))

/* Each call changes what the window allows: its time says nothing. */
#include "tests/support/ranks.h"
#define timeless() true
