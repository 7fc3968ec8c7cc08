/* allocations.h - how often a test program has asked for memory
 *
 * The linker sends malloc() and its kin here: such a program is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc and allocations.c.
 */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

extern long allocations;

#endif
