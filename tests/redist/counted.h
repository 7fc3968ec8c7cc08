/* counted.h - how often the library calls a function
 *
 * The linker sends the calls from other files than the function's own here: the
 * test program is linked with -Wl,--wrap=NAME.  `work` counts them all.
 */
#ifndef TESTS_COUNTED_H
#define TESTS_COUNTED_H

static long work;

#define COUNTED(type, name, parameters, arguments)                            \
    type __real_##name parameters;                                            \
    type __wrap_##name parameters;                                            \
    type __wrap_##name parameters                                             \
    {                                                                         \
        work++;                                                               \
        return __real_##name arguments;                                       \
    }

#endif
