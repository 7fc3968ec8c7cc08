/* link.h - connections to other ranks; private to this room */
#ifndef DTN_BOOT_LINK_H
#define DTN_BOOT_LINK_H

#include "boot/frame.h"
#include "boot/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A route to rank `target` that begins at `now`; -1: none.  Close it. */
void dtn_boot_route_init(struct dtn_boot_route *route, int target, int64_t now);
void dtn_boot_route_close(struct dtn_boot_route *route);

/* This rank cannot take part: send that to its neighbours in the tree, up and
 * down.  Between hosts, connect to those that have not connected here.
 */
void dtn_boot_route_fail(struct dtn_boot *boot);

/* Write the body of a HELLO; returns its size. */
size_t dtn_boot_link_hello(const struct dtn_boot *boot, bool detour,
                            unsigned char body[]);

/* Ask the children for an identity.  Unasked they may send none: it has up to
 * 1 MiB.
 */
void dtn_boot_link_ask(struct dtn_boot *boot, const struct dtn_frame *ask);

/* Post a frame toward rank 0; false: no memory. */
bool dtn_boot_link_post(struct dtn_boot *boot, enum dtn_frame_type type,
                        const void *body, size_t size);

#endif
