/* heap.c - memory that is freed stays with the process */
#include "tests/support/heap.h"

#include <malloc.h>

void heap_keep(void)
{
#ifdef M_MMAP_THRESHOLD
    enum { LARGEST = 32 << 20, ALL = 1 << 30 };  /* that mallopt() takes      */

    mallopt(M_MMAP_THRESHOLD, LARGEST);
    mallopt(M_TRIM_THRESHOLD, ALL);
#endif
}
