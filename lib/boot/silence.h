/* silence.h - who hears nothing of whom; private to this room
 *
 * The caller holds the lock of the tree.
 */
#ifndef DTN_BOOT_SILENCE_H
#define DTN_BOOT_SILENCE_H

#include <stdint.h>

struct dtn_boot;
struct dtn_boot_link;
struct dtn_frame;

/* Leader `from` hears nothing of leader `of`, as this rank knows by itself
 * (link NULL) or from this neighbour.  The first time it is forwarded.
 */
void dtn_silence_note(struct dtn_boot *boot, const struct dtn_boot_link *link,
                      int from, int of);
void dtn_silence_heard(struct dtn_boot *boot, const struct dtn_boot_link *link,
                       const struct dtn_frame *frame);

/* Packets of the host of leader `rank` arrive here, and ours do not arrive
 * there.  If one of the two hosts reports the other as lost, the link is lost.
 */
void dtn_silence_one_way(struct dtn_boot *boot, int rank);

/* Say to who hears nothing of this leader that it runs, if all of its host do.
 */
void dtn_silence_answer(struct dtn_boot *boot);

/* Say to a new neighbour what has been said. */
void dtn_silence_repeat(const struct dtn_boot *boot,
                        struct dtn_boot_link *link);

/* How long the other side of a silence is waited for. */
int64_t dtn_silence_patience_ns(const struct dtn_boot *boot);

/* The other side of a silence of this leader was not heard: its host is dead,
 * or this one is cut off.
 */
void dtn_silence_judge(struct dtn_boot *boot, int rank);

#endif
