/* heap.h - memory that is freed stays with the process */
#ifndef TESTS_HEAP_H
#define TESTS_HEAP_H

/* From here on free() gives nothing back to the kernel.  For tests that ask for
 * the same large blocks again and again: else each of their pages is mapped,
 * cleared and unmapped by the kernel every time.
 */
void heap_keep(void);

#endif
