/* table.c - what an allgather has gathered: a blob of every rank
 *
 * The entries arrive in any order.  In the table the blobs stand in the order
 * of the ranks, behind a list of where each of them ends:
 *
 *     end[0] end[1] ... end[n - 1]  blob 0  blob 1 ... blob n - 1
 *
 * Blobs of 176 bytes of 131,072 ranks are 23 MiB.  So the leader of a host puts
 * the table into a sealed file in memory, and the other ranks map it: a host of
 * 8 ranks has it once.  The seals keep everybody, also the leader, from
 * changing it.  Where the kernel refuses such files, each rank has its own.
 */
#include "boot/table.h"
#include "boot/frame.h"
#include "boot/state.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE_SEALS \
    (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
#define TABLE_FD (UINT32_C(1) << 31)          /* in end[]: it sent a file     */
#define TABLE_NONE UINT32_MAX                 /* in end[]: no entry yet       */

struct dtn_table {
    const uint32_t *end;          /* [nranks] bytes from `bytes` on           */
    const unsigned char *bytes;   /* behind them                              */
    size_t size;                  /* of both together                         */
    bool mapped;                  /* they are a file; else allocated          */
    int file;                     /* to be sent to the others; or -1          */
    int nranks;                   /* of the world                             */
    int first, nlocal;            /* ranks of this host                       */
    int fd[];                     /* [nlocal] that they sent; or -1           */
};

bool dtn_boot_entry_next(const unsigned char **p, size_t *left,
                         struct dtn_boot_entry *entry)
{
    uint32_t word;

    if (*left < DTN_BOOT_ENTRY_HEAD)
        return false;
    word = dtn_frame_get32(*p + 4);
    entry->rank = dtn_frame_get32(*p);
    entry->flags = word >> 16;
    entry->size = word & 0xffff;
    entry->bytes = *p + DTN_BOOT_ENTRY_HEAD;
    if (entry->size > *left - DTN_BOOT_ENTRY_HEAD)
        return false;
    *p += DTN_BOOT_ENTRY_HEAD + entry->size;
    *left -= DTN_BOOT_ENTRY_HEAD + entry->size;
    return true;
}

static size_t table_end(const struct dtn_table *table, int rank)
{
    return rank < 0 ? 0 : table->end[rank] & ~TABLE_FD;
}

const unsigned char *dtn_table_bytes(const struct dtn_table *table, int rank,
                                     size_t *size)
{
    const size_t begin = table_end(table, rank - 1);

    *size = table_end(table, rank) - begin;
    return table->bytes + begin;
}

static bool table_is_local(const struct dtn_table *table, int rank)
{
    return rank >= table->first && rank < table->first + table->nlocal;
}

void dtn_table_get(const struct dtn_table *table, int rank,
                   struct dtn_blob *blob)
{
    const unsigned char *bytes = dtn_table_bytes(table, rank, &blob->size);

    memcpy(blob->bytes, bytes, blob->size);
    blob->fd = table_is_local(table, rank) ? table->fd[rank - table->first]
                                           : -1;
}

void dtn_table_copy(const struct dtn_table *table, int rank, void *to,
                    size_t size)
{
    size_t have;
    const unsigned char *bytes = dtn_table_bytes(table, rank, &have);

    memset(to, 0, size);
    memcpy(to, bytes, have < size ? have : size);
}

int dtn_table_take_fd(struct dtn_table *table, int rank)
{
    int *slot = table_is_local(table, rank) ? &table->fd[rank - table->first]
                                            : NULL;
    const int fd = slot ? *slot : -1;

    if (slot)
        *slot = -1;
    return fd;
}

void dtn_table_footprint(const struct dtn_table *table, size_t *shared,
                         size_t *own)
{
    *shared = table->mapped ? table->size : 0;
    *own = sizeof *table + (size_t)table->nlocal * sizeof table->fd[0]
         + table->size - *shared;
}

bool dtn_table_awaits_fd(const struct dtn_table *table, int rank)
{
    return table->end[rank] & TABLE_FD;
}

void dtn_table_put_fd(struct dtn_table *table, int rank, int fd)
{
    table->fd[rank - table->first] = fd;
}

/* --------------------------------------------------------- made and freed - */

static void table_bind(struct dtn_table *table, const void *mem)
{
    table->end = mem;
    table->bytes = (const unsigned char *)(table->end + table->nranks);
}

static struct dtn_table *table_new(int nranks, int first, int nlocal)
{
    struct dtn_table *table = malloc(sizeof *table + (size_t)nlocal
                                                     * sizeof table->fd[0]);

    if (!table)
        return NULL;
    *table = (struct dtn_table){ .file = -1, .nranks = nranks, .first = first,
                                 .nlocal = nlocal };
    for (int i = 0; i < nlocal; i++)
        table->fd[i] = -1;
    return table;
}

static void table_drop(struct dtn_table *table)
{
    if (table->mapped)
        munmap((void *)(uintptr_t)table->end, table->size);
    else
        free((void *)(uintptr_t)table->end);
}

void dtn_table_free(struct dtn_table *table)
{
    if (!table)
        return;
    dtn_table_unshare(table);
    for (int i = 0; i < table->nlocal; i++)
        if (table->fd[i] >= 0)
            close(table->fd[i]);
    table_drop(table);
    free(table);
}

/* Note in end[] the size of each blob, and whether a file came with it.  False:
 * an entry is malformed, twice there, or missing.
 */
static bool table_sizes(const unsigned char *p, size_t left, int nranks,
                        uint32_t end[])
{
    struct dtn_boot_entry entry;
    int n = 0;

    memset(end, 0xff, (size_t)nranks * sizeof end[0]);
    for (; left > 0; n++) {
        if (!dtn_boot_entry_next(&p, &left, &entry)
            || entry.rank >= (uint32_t)nranks || entry.size > DTN_BLOB_MAX
            || end[entry.rank] != TABLE_NONE)
            return false;
        end[entry.rank] = (uint32_t)entry.size
                        | (entry.flags & DTN_ENTRY_HAS_FD ? TABLE_FD : 0);
    }
    return n == nranks;
}

static void table_fill(struct dtn_table *table, const unsigned char *p,
                       size_t left, uint32_t end[])
{
    struct dtn_boot_entry entry;

    for (int r = 1; r < table->nranks; r++)
        end[r] += end[r - 1] & ~TABLE_FD;
    while (dtn_boot_entry_next(&p, &left, &entry))
        memcpy((unsigned char *)(end + table->nranks)
               + table_end(table, (int)entry.rank - 1),
               entry.bytes, entry.size);
}

struct dtn_table *dtn_table_make(const unsigned char *entries, size_t size,
                                 int nranks, int first, int nlocal,
                                 bool *goodp)
{
    const size_t n = (size_t)nranks;
    struct dtn_table *table = table_new(nranks, first, nlocal);
    uint32_t *end = table ? malloc(n * sizeof *end + size) : NULL;

    *goodp = !end || table_sizes(entries, size, nranks, end);
    if (!end || !*goodp) {
        free(end);
        free(table);
        return NULL;
    }
    table_bind(table, end);
    table_fill(table, entries, size, end);
    table->size = n * sizeof *end + table_end(table, nranks - 1);
    return table;
}

/* --------------------------------------------------------------- shared --- */

static bool file_write(int fd, const void *mem, size_t size)
{
    const unsigned char *from = mem;
    ssize_t n;

    while (size > 0 && (n = write(fd, from, size)) > 0) {
        from += n;
        size -= (size_t)n;
    }
    return size == 0;
}

/* A sealed file with the table; or -1. */
static int file_make(const struct dtn_table *table)
{
    struct rlimit limit;
    int fd;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < table->size)
        return -1;                /* write() would be a fatal signal          */
    fd = memfd_create("dtensor-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (file_write(fd, table->end, table->size)
        && fcntl(fd, F_ADD_SEALS, TABLE_SEALS) == 0)
        return fd;
    close(fd);
    return -1;
}

int dtn_table_share(struct dtn_table *table)
{
    const int fd = file_make(table);
    void *mem;

    if (fd < 0)
        return -1;
    mem = mmap(NULL, table->size, PROT_READ, MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED) {
        close(fd);
        return -1;
    }
    table_drop(table);
    table_bind(table, mem);
    table->mapped = true;
    table->file = fd;
    return fd;
}

void dtn_table_unshare(struct dtn_table *table)
{
    if (table->file >= 0)
        close(table->file);
    table->file = -1;
}

/* Do the blobs follow each other to the end of the file? */
static bool table_is_good(const struct dtn_table *table)
{
    const size_t head = (size_t)table->nranks * sizeof table->end[0];

    for (int r = 0; r < table->nranks; r++)
        if (table_end(table, r) < table_end(table, r - 1)
            || table_end(table, r) - table_end(table, r - 1) > DTN_BLOB_MAX)
            return false;
    return head + table_end(table, table->nranks - 1) == table->size;
}

struct dtn_table *dtn_table_open(int fd, int nranks, int first, int nlocal,
                                 bool *goodp)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    struct dtn_table *table;
    struct stat st;
    bool known;
    void *mem;

    known = seals >= 0 && fstat(fd, &st) == 0;
    *goodp = !known
          || ((seals & TABLE_SEALS) == TABLE_SEALS
              && st.st_size >= (off_t)((size_t)nranks * sizeof table->end[0]));
    table = known && *goodp ? table_new(nranks, first, nlocal) : NULL;
    if (!table)
        return NULL;
    table->size = (size_t)st.st_size;
    mem = mmap(NULL, table->size, PROT_READ, MAP_SHARED, fd, 0);
    if (mem != MAP_FAILED) {
        table->mapped = true;
        table_bind(table, mem);
        *goodp = table_is_good(table);
    }
    if (mem != MAP_FAILED && *goodp)
        return table;
    if (mem != MAP_FAILED)
        table_drop(table);
    free(table);
    return NULL;
}
