/* allocations.h - how often and how much memory a test program asked for
 *
 * The linker sends malloc() and its kin here: such a program is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc and allocations.c.  Each
 * thread counts its own: the thread that beats may receive a message meanwhile.
 */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

extern _Thread_local long allocations, allocated_bytes;

#endif
