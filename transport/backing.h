/* backing.h - the memory behind an arena */
#ifndef DTN_TRANSPORT_BACKING_H
#define DTN_TRANSPORT_BACKING_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* The pages of an arena. */
enum dtn_pages {
    DTN_PAGES_SMALL,              /* of the system, 4 KiB                     */
    DTN_PAGES_ASKED,              /* transparent huge pages, where possible   */
    DTN_PAGES_HUGE                /* 2 MiB, reserved for the whole range      */
};

/* The limit that makes an arena no larger. */
enum dtn_bound {
    DTN_BOUND_GIVEN,              /* the size given to dtn_arena_init()       */
    DTN_BOUND_RAM,                /* RAM of the host                          */
    DTN_BOUND_CGROUP,             /* memory limit of the control group        */
    DTN_BOUND_KEY,                /* [transport] arena                        */
    DTN_BOUND_ULIMIT_V,           /* ulimit -v: address space of the process  */
    DTN_BOUND_ULIMIT_F,           /* ulimit -f: size of a file                */
    DTN_BOUND_SPACE,              /* address space that any process can have  */
    DTN_BOUND_MAP                 /* the kernel refused to map more           */
};

struct dtn_backing;

/* A kind of memory that can back an arena. */
struct dtn_backing_ops {
    /* The block [offset, offset + size) is to be allocated.  False: there is no
     * memory for it.
     */
    bool (*touch)(struct dtn_backing *backing, size_t offset, size_t size);

    /* The block [offset, offset + size) was freed.  Its pages may go back to
     * the system.  Best effort.
     */
    void (*release)(struct dtn_backing *backing, size_t offset, size_t size);

    /* Release all of it. */
    void (*close)(struct dtn_backing *backing);
};

struct dtn_backing {
    const struct dtn_backing_ops *ops;        /* of this kind of memory       */
    unsigned char *base;          /* begin of the range of addresses          */
    size_t size;                  /* bytes of the range                       */
    size_t page_bytes;            /* size of a page; alignment of large       */
                                  /* blocks                                   */
    int fd;                       /* file that peers map; -1: none            */
    enum dtn_bound bound;         /* the limit that makes it no larger        */
    enum dtn_pages pages;         /* its pages                                */
    bool pinned;                  /* a device has registered pages: none goes */
                                  /* back to the system                       */
    size_t dumped;                /* bytes from `base` on in a core file      */
    void *arg;                    /* of the kind of memory                    */
};

/* Memory of the host.  If `shared`, a sealed memfd that peers map: a file
 * without a name, which disappears with the last process.  Otherwise anonymous
 * memory.   Errors: ESYS, ENOMEM, with the remedy
 */
int dtn_backing_open_host(struct dtn_backing *backing, size_t size,
                          bool shared, struct dtensor_error *err);

/* The kind of its pages in words, for the log. */
const char *dtn_backing_pages(const struct dtn_backing *backing);

#endif
