/* words.h - words by which the devices of ranks signal each other
 *
 * Each rank has some for every peer in the memory of its device, one for each
 * kind of signal.  A word counts: the peer's device writes 1 the first time, 2
 * the second time.
 */
#ifndef DTN_COLL_WORDS_H
#define DTN_COLL_WORDS_H

#include "sched/sched.h"
#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

struct dtn_device_words {
    unsigned char *mem;           /* on the device: DTN_NTAGS for each rank   */
    size_t bytes;                 /* of it                                    */
    uint64_t *posted;             /* as many: what was written to that rank   */
    uint64_t *held;               /* as many: what was waited for             */
    uint64_t *seen;               /* as many: room to read them               */
};

static inline size_t dtn_word_of(int rank, enum dtn_tag tag)
{
    return (size_t)rank * DTN_NTAGS + (size_t)tag;
}

/* Have the words of this rank; NULL: there is no memory for them. */
struct dtn_device_words *dtn_words_of(struct dtensor_ctx *ctx);
void dtn_words_destroy(struct dtensor_ctx *ctx, struct dtn_device_words *words);

#endif
