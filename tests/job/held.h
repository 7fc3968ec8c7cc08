/* held.h - what a test program holds of the memory that it allocated
 *
 * The linker sends malloc() and its kin and the allocations of the arena here:
 * such a program is linked with held.c
 * and $(WRAP_ALLOCATIONS) of tests/job/Makefile.inc.  An allocation can be made
 * to fail.  The thread of the heartbeats allocates too, so what is counted here
 * is atomic.
 */
#ifndef TESTS_HELD_H
#define TESTS_HELD_H

extern _Atomic long allocations_left;  /* until one fails; < 0: none does     */
extern _Atomic long nlive;        /* blocks that are allocated now            */

#endif
