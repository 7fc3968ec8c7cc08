/* held.h - what a test program holds of the memory that it allocated
 *
 * The linker sends malloc() and its kin and the allocations of the arena here:
 * such a program is linked with held.c
 * and $(WRAP_ALLOCATIONS) of tests/job/Makefile.inc.  An allocation can be made
 * to fail.
 */
#ifndef TESTS_HELD_H
#define TESTS_HELD_H

extern long allocations_left;     /* until one fails; -1: none does           */
extern long nlive;                /* blocks that are allocated now            */

#endif
