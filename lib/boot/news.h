/* news.h - news of ranks over the tree; private to this room
 *
 * The caller holds the lock of the tree.
 */
#ifndef DTN_BOOT_NEWS_H
#define DTN_BOOT_NEWS_H

#include "boot/boot.h"
#include "boot/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_boot_link;

/* What is known of lost ranks, and their reports.  False: no memory. */
bool dtn_news_init(struct dtn_boot *boot);
void dtn_news_fini(struct dtn_boot *boot);

/* Send a frame to one neighbour.  Best effort, never blocks. */
void dtn_news_send(struct dtn_boot_link *link, enum dtn_frame_type type,
                   const unsigned char *body, uint32_t size);

/* The same to all neighbours but `from`, which sent it; NULL: to all. */
void dtn_news_spread(struct dtn_boot *boot, const struct dtn_boot_link *from,
                     enum dtn_frame_type type, const unsigned char *body,
                     uint32_t size);

/* Send a new neighbour all news that are kept of ranks. */
void dtn_news_repeat(const struct dtn_boot *boot, struct dtn_boot_link *link);

/* Keep the first news of a rank, or another call of it, and forward it to all
 * neighbours but `from`, which sent it; NULL: this rank found it.
 */
void dtn_news_note(struct dtn_boot *boot, const struct dtn_boot_link *from,
                   int rank, const struct dtn_peer_failure *news);
void dtn_news_call(struct dtn_boot *boot, const struct dtn_boot_link *from,
                   int rank, const struct dtn_call_record *record);

/* Take from one number how the rank and its culprit were lost.  False: they
 * cannot be.
 */
bool dtn_news_how(struct dtn_peer_failure *failure, unsigned how);

/* Note what other ranks of the host have posted in its page. */
void dtn_news_read(struct dtn_boot *boot);

/* The news that a rank was lost in this way. */
void dtn_news_lost(struct dtn_boot *boot, const struct dtn_boot_link *from,
                   int rank, enum dtn_loss loss);

/* Has this rank given up, or is it lost?  One that only has left may still run,
 * for those that hear through it.
 */
bool dtn_news_is_gone(const struct dtn_boot *boot, int rank);

/* Is this rank lost?  -1 is not. */
bool dtn_news_is_lost(const struct dtn_boot *boot, int rank);

/* When this rank heard of the last loss; 0: of none. */
int64_t dtn_news_last_loss_ns(const struct dtn_boot *boot);

#endif
