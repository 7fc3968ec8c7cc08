/* table.h - what an allgather has gathered: a blob of every rank */
#ifndef DTN_BOOT_TABLE_H
#define DTN_BOOT_TABLE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_blob;

/* Read-only, and one for all ranks of a host, where the kernel can share it. */
struct dtn_table;

/* The blob of a rank; copied, for a transport.  Its descriptor is that of a
 * rank of this host, or -1; it is the table's.
 */
void dtn_table_get(const struct dtn_table *table, int rank,
                   struct dtn_blob *blob);

/* Its first `size` bytes, or all of them and zeros. */
void dtn_table_copy(const struct dtn_table *table, int rank, void *to,
                    size_t size);

/* The same in place: its bytes, and their number. */
const unsigned char *dtn_table_bytes(const struct dtn_table *table, int rank,
                                     size_t *size);

/* Take the descriptor of a rank of this host out of the table, or -1. */
int dtn_table_take_fd(struct dtn_table *table, int rank);

/* The bytes that all ranks of the host share; and that this rank has alone. */
void dtn_table_footprint(const struct dtn_table *table, size_t *shared,
                         size_t *own);

/* Closes the descriptors.  NULL is a no-op. */
void dtn_table_free(struct dtn_table *table);

/* --------------------------------------------------- for this room only --- */

#define DTN_ENTRY_HAS_FD 1u
#define DTN_ENTRY_DETOUR 2u

struct dtn_boot_entry {
    uint32_t rank;                /* whose entry it is                        */
    unsigned flags;               /* DTN_ENTRY_HAS_FD, DTN_ENTRY_DETOUR       */
    size_t size;                  /* bytes                                    */
    const unsigned char *bytes;   /* [size] process and digest, or a blob     */
};

/* Take the next entry from *p, *left bytes; false: malformed. */
bool dtn_boot_entry_next(const unsigned char **p, size_t *left,
                         struct dtn_boot_entry *entry);

/* Make a table of entries as they travel.  `first` and `nlocal` are the ranks
 * of this host.  *goodp: every rank is there exactly once.  NULL: that is not
 * so, or there is not enough memory.
 */
struct dtn_table *dtn_table_make(const unsigned char *entries, size_t size,
                                 int nranks, int first, int nlocal,
                                 bool *goodp);

/* Move it to a file that cannot be changed any more, for the other ranks of the
 * host.  The file, which is the table's until dtn_table_unshare(); or -1: the
 * kernel makes none, and the table is as it was.
 */
int dtn_table_share(struct dtn_table *table);
void dtn_table_unshare(struct dtn_table *table);

/* A table from such a file; the file stays the caller's.  NULL: it is none, and
 * then *goodp is false; or it cannot be mapped.
 */
struct dtn_table *dtn_table_open(int fd, int nranks, int first, int nlocal,
                                 bool *goodp);

/* Did that rank of this host send a descriptor?  Put it into the table. */
bool dtn_table_awaits_fd(const struct dtn_table *table, int rank);
void dtn_table_put_fd(struct dtn_table *table, int rank, int fd);

#endif
