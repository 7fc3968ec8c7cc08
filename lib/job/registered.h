/* registered.h - the buffers that the program registered: memory.c */
#ifndef DTN_JOB_REGISTERED_H
#define DTN_JOB_REGISTERED_H

#include <stddef.h>
#include <stdint.h>

/* A buffer of dtensor_register(). */
struct dtn_registered {
    unsigned char *mem;           /* its begin                                */
    size_t size;                  /* bytes                                    */
};

struct dtn_registrations {
    struct dtn_registered *table; /* [n] sorted by address, without overlap   */
    int n;                        /* entries in use                           */
    int capacity;                 /* entries that are allocated               */
    uint64_t bytes;               /* sum of their sizes                       */
};

#endif
