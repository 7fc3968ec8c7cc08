/* exporter.h - memory of a device, as network cards reach it
 *
 * No CPU accesses this memory: a load or store there ends the process.  A card
 * that registered it reads and writes it, without a copy in host memory.
 */
#ifndef DTN_TRANSPORT_EXPORTER_H
#define DTN_TRANSPORT_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;

/* A range of device memory as a file, which the kernel gives to a card. */
struct dtn_dmabuf {
    int fd;                       /* the caller closes it                     */
    uint64_t offset;              /* bytes from its start to the range        */
};

/* A device whose memory cards may reach. */
struct dtn_exporter {
    const char *name;             /* "GPU 0 (NVIDIA H100)", for messages      */
    struct dtn_arena *arena;      /* what is allocated in the device          */
    bool ordered;                 /* bytes that a card writes into the device */
                                  /* are there before the signal that it      */
                                  /* writes into host memory next             */

    /* Is all of [mem, mem + size) memory of this device? */
    bool (*holds)(const struct dtn_exporter *exporter, const void *mem,
                  size_t size);

    /* Export [mem, mem + size).   Errors: EINVAL  it cannot be exported */
    int (*dmabuf)(const struct dtn_exporter *exporter, const void *mem,
                  size_t size, struct dtn_dmabuf *dmabuf);

    /* In words, why the last call here that failed did. */
    const char *(*why)(const struct dtn_exporter *exporter);

    /* In words, why cards could not reach memory that was made like this; NULL:
     * nothing is known.  The function may be NULL.
     */
    const char *(*flaw)(const struct dtn_exporter *exporter, const void *mem);

    size_t piece_bytes;           /* of a piece of the arena that processes   */
                                  /* of the host can map; 0: none can be      */

    /* A file of piece `i` of the arena, which then keeps its memory.  The file
     * stays the exporter's.   Errors: EINVAL
     */
    int (*share)(const struct dtn_exporter *exporter, int i, int *fdp);

    /* Addresses for the arena of a peer, without memory; NULL: none. */
    unsigned char *(*reserve)(const struct dtn_exporter *exporter,
                              size_t bytes);

    /* Undo reserve(). */
    void (*release)(const struct dtn_exporter *exporter, unsigned char *base,
                    size_t bytes);

    /* Map the file of a peer's piece at addresses of reserve().  The file stays
     * the caller's.   Errors: EINVAL
     */
    int (*join)(const struct dtn_exporter *exporter, unsigned char *at,
                size_t bytes, int fd);

    /* Undo join(). */
    void (*leave)(const struct dtn_exporter *exporter, unsigned char *at,
                  size_t bytes);
};

#endif
