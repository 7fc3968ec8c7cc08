/* compiler.h - attributes and constants of the whole library */
#ifndef DTN_BASE_COMPILER_H
#define DTN_BASE_COMPILER_H

#define DTN_CACHE_LINE 64
#define DTN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define DTN_NOINLINE __attribute__((noinline))
#define DTN_COUNT(array) (sizeof(array) / sizeof(array)[0])

#endif
