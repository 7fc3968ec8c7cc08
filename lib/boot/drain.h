/* drain.h - the outcome of a round goes to the children */
#ifndef DTN_BOOT_DRAIN_H
#define DTN_BOOT_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_boot;

/* Must a failure still reach children that have not connected yet? */
bool dtn_boot_drain_waits(const struct dtn_boot *boot);

/* Does this rank, which cannot take part, stay until the first rank of its host
 * has left?
 */
bool dtn_boot_drain_follows(const struct dtn_boot *boot);

/* While draining: is the round over?  `sent`: the sockets have taken all. */
void dtn_boot_drain_look(struct dtn_boot *boot, bool sent, int64_t now);

/* When the next look is due; INT64_MAX: none. */
int64_t dtn_boot_drain_wake(const struct dtn_boot *boot);

#endif
