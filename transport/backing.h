/* backing.h - the memory behind an arena */
#ifndef DTN_TRANSPORT_BACKING_H
#define DTN_TRANSPORT_BACKING_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* The pages of an arena. */
enum dtn_pages {
    DTN_PAGES_SMALL,              /* those of the system, 4 KiB                */
    DTN_PAGES_ASKED,              /* huge ones where the kernel has some       */
    DTN_PAGES_HUGE                /* of 2 MiB, set aside for all of it         */
};

/* The limit of the size of an arena. */
enum dtn_bound {
    DTN_BOUND_GIVEN,              /* the size that dtn_arena_init() was given  */
    DTN_BOUND_RAM,                /* of the host                               */
    DTN_BOUND_CGROUP,             /* the memory limit of the control group     */
    DTN_BOUND_KEY,                /* [transport] arena                         */
    DTN_BOUND_ULIMIT_V,           /* addresses of this process                 */
    DTN_BOUND_ULIMIT_F,           /* the size of a file                        */
    DTN_BOUND_SPACE,              /* addresses of any process                  */
    DTN_BOUND_MAP                 /* what the kernel would map                 */
};

struct dtn_backing;

/* A kind of memory that can back an arena. */
struct dtn_backing_ops {
    /* A block that ends at offset `end` was given out. */
    void (*touch)(struct dtn_backing *backing, size_t end);

    /* The block [offset, offset+size) was freed: its pages may go back to the
     * system.  Best effort.
     */
    void (*release)(struct dtn_backing *backing, size_t offset, size_t size);

    /* Give everything back. */
    void (*close)(struct dtn_backing *backing);
};

struct dtn_backing {
    const struct dtn_backing_ops *ops;
    unsigned char *base;          /* of the range of addresses                 */
    size_t size;                  /* bytes of it                               */
    size_t page_bytes;            /* of a page: alignment of large blocks      */
    int fd;                       /* of the file that peers map; -1: none      */
    enum dtn_bound bound;         /* why it is no larger                       */
    enum dtn_pages pages;
    bool pinned;                  /* a device knows pages: never give any back */
    size_t dumped;                /* bytes from base on that a core file holds */
};

/* Memory of the host: a sealed memfd that peers map (no name anywhere, gone with
 * the last process) if `shared`, else anonymous.   Errors: ESYS, ENOMEM, with
 * the remedy
 */
int dtn_backing_open_host(struct dtn_backing *backing, size_t size,
                          bool shared, struct dtensor_error *err);

/* Its pages in words, for the log. */
const char *dtn_backing_pages(const struct dtn_backing *backing);

#endif
