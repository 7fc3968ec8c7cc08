/* exchange.h - an exchange of boxes between ranks */
#ifndef DTN_SCHED_EXCHANGE_H
#define DTN_SCHED_EXCHANGE_H

#include "base/box.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_group;
struct dtn_sched;

/* A box of elements that goes from one rank's IN to another's OUT. */
struct dtn_piece {
    int source;                   /* positions in the group                    */
    int receiver;
    size_t src_offset;            /* of its first element, in elements         */
    size_t dst_offset;
    bool accumulate;              /* dst op= src; else dst = src               */
    struct dtn_box box;
};

/* All of one rank's part in an exchange: the pieces it receives and those it
 * sends, each in the order they are to be applied.  Every rank derives both
 * lists from the same description, so they agree pair by pair.
 */
struct dtn_exchange {
    const char *name;             /* static                                    */
    int n;
    int me;
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;     /* of accumulating pieces                    */
    size_t in_count;              /* elements of own IN and OUT                */
    size_t out_count;
    bool neutral;                 /* OUT starts as the neutral element         */
    int scale;                    /* > 1: OUT is divided by it at the end      */
    bool folds;                   /* some piece accumulates, on any rank       */
    bool (*maps)(const void *whose, int position);
    const void *whose;            /* does this rank load from that one?        */
    size_t row_bytes;             /* shortest run put by itself, the same on   */
                                  /* every rank; 0: DTN_ROW_BYTES             */
    size_t window_bytes;          /* the most that is packed for, or unpacked  */
                                  /* from, a peer at a time, the same on every */
                                  /* rank; 0: all there is                     */
    int nreceived;
    const struct dtn_piece *received;
    int nsent;
    const struct dtn_piece *sent;
};

/* Each put costs about as much as copying this many bytes twice: some 100 ns
 * to post a write, some 80 to pack and unpack 256 bytes.
 */
#define DTN_ROW_BYTES 256

/* The shortest run that any transport of the job should put by itself. */
size_t dtn_group_row_bytes(const struct dtn_group *group);

/* Emit it: from ranks that map (mapped[source]) each piece is loaded straight
 * from the source's IN into OUT; from others it is put by the source, run by
 * run, from IN into OUT.  Where runs would be shorter than row_bytes, it is
 * packed in the source's TMP; where they would be so in OUT, or where it
 * accumulates, it goes to the receiver's TMP and is unpacked there, in rounds
 * of what fits the windows: TMP has at most 5 of them for a peer, 3 to unpack and
 * 2 to pack.  Mapping is symmetric; what does not accumulate does not overlap.
 * Terms of an element that go in rounds come in the same one, if the pieces of
 * their sources are alike.
 */
int dtn_emit_exchange(const struct dtn_exchange *exchange,
                      struct dtn_sched *sched, struct dtensor_error *err);
#define DTN_EXCHANGE_WINDOWS 5

#endif
