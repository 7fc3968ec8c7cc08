/* sparse.c - a large array of which few entries are used
 *
 * The array is anonymous memory of the kernel, which gives out a page at the
 * first write.  Of 131,072 entries of 128 bytes, 16 MiB of addresses, a rank
 * that talks to 24 others uses at most 24 pages, 96 KiB.  A huge page would
 * take 2 MiB for the first entry, so none is allowed.  An array that is not
 * larger than a few pages comes from calloc().
 */
#include "base/sparse.h"
#include "base/units.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SPARSE_BYTES = 64 << 10 }; /* smaller arrays are dense                 */

void *dtn_sparse_new(size_t n, size_t entry_bytes)
{
    size_t bytes;
    void *array;

    if (!dtn_mul_size(n, entry_bytes, &bytes))
        return NULL;
    if (bytes < SPARSE_BYTES)
        return calloc(n + 1, entry_bytes);
    array = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (array == MAP_FAILED)
        return NULL;
    madvise(array, bytes, MADV_NOHUGEPAGE);
    return array;
}

void dtn_sparse_free(void *array, size_t n, size_t entry_bytes)
{
    if (array && n * entry_bytes >= SPARSE_BYTES)
        munmap(array, n * entry_bytes);
    else
        free(array);
}

size_t dtn_sparse_resident(const void *array, size_t n, size_t entry_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = n * entry_bytes;
    const size_t pages = (bytes + page - 1) / page;
    unsigned char *in;
    size_t resident = 0;

    if (!array || bytes < SPARSE_BYTES)
        return bytes;
    in = malloc(pages);
    if (!in || mincore((void *)(uintptr_t)array, bytes, in) != 0)
        resident = bytes;
    for (size_t i = 0; in && resident < bytes && i < pages; i++)
        resident += in[i] & 1 ? page : 0;
    free(in);
    return resident;
}
