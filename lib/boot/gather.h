/* gather.h - entries of ranks, sent up and down; private to this room */
#ifndef DTN_BOOT_GATHER_H
#define DTN_BOOT_GATHER_H

#include "boot/frame.h"
#include "boot/state.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Begin a round with this rank's entry; `mine` NULL: round 0. */
int dtn_boot_gather_start(struct dtn_boot *boot, const struct dtn_blob *mine,
                          struct dtensor_error *err);

/* Set which frames this link may receive in this round. */
void dtn_boot_gather_limits(const struct dtn_boot *boot,
                            struct dtn_boot_link *link);
void dtn_boot_gather_forward(struct dtn_boot *boot);

/* Add the entry of a HELLO; `link` NULL: this rank's own. */
bool dtn_boot_gather_who(struct dtn_boot *boot,
                         const struct dtn_boot_link *link, uint32_t pid,
                         uint64_t digest);
void dtn_boot_gather_entries(struct dtn_boot *boot, struct dtn_boot_link *link,
                             const struct dtn_frame *frame);
void dtn_boot_gather_all(struct dtn_boot *boot, struct dtn_boot_link *link,
                         const struct dtn_frame *frame);
void dtn_boot_gather_done(struct dtn_boot *boot);
void dtn_boot_gather_unpack(struct dtn_boot *boot, struct dtn_blob all[]);
void dtn_boot_gather_close_fds(struct dtn_boot *boot);

#endif
