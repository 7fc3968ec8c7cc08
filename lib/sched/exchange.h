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
    int source;                   /* position in the group of the rank that   */
                                  /* sends the box                            */
    int receiver;                 /* position of the rank that receives it    */
    size_t src_offset;            /* first element in IN of the source, in    */
                                  /* elements                                 */
    size_t dst_offset;            /* the same in OUT of the receiver          */
    bool accumulate;              /* true: dst op= src; false: dst = src      */
    struct dtn_box box;           /* sizes and strides, in elements           */
};

/* One rank's part in an exchange: the pieces it receives and the pieces it
 * sends, each in the order they are applied.  Every rank derives both lists
 * from the same description, so the lists of each pair of ranks agree.
 */
struct dtn_exchange {
    const char *name;             /* of the schedule; a static string         */
    int n;                        /* ranks in the group                       */
    int me;                       /* position of this rank                    */
    enum dtensor_dtype dtype;     /* of the elements                          */
    enum dtensor_redop redop;     /* reduction of accumulating pieces         */
    size_t in_count;              /* elements of this rank's IN               */
    size_t out_count;             /* elements of this rank's OUT              */
    bool neutral;                 /* OUT is first filled with the neutral     */
                                  /* element                                  */
    int scale;                    /* if > 1: OUT is divided by it at the end  */
    bool folds;                   /* some piece accumulates on some rank      */
    bool (*maps)(const void *whose, int position);  /* does this rank load    */
                                                    /* from that one?         */
    const void *whose;            /* first argument of maps()                 */
    size_t row_bytes;             /* shortest contiguous run that is put      */
                                  /* without packing, the same on every rank; */
                                  /* 0: DTN_ROW_BYTES                         */
    size_t window_bytes;          /* size of a window: the most that is       */
                                  /* packed for, or unpacked from, a peer in  */
                                  /* one round, the same on every rank; 0:    */
                                  /* unlimited                                */
    int nreceived;                /* number of pieces received                */
    const struct dtn_piece *received;  /* [nreceived]                         */
    int nsent;                    /* number of pieces sent                    */
    const struct dtn_piece *sent;  /* [nsent]                                 */
};

/* A put costs about as much as copying this many bytes twice: about 100 ns to
 * post a write, about 80 ns to pack and unpack 256 bytes.
 */
#define DTN_ROW_BYTES 256

/* The shortest contiguous run that a transport of the job should put unpacked.
 */
size_t dtn_group_row_bytes(const struct dtn_group *group);

/* Emit an exchange.  Pieces from ranks that map (maps()) are loaded from the
 * source's IN straight into OUT.  Other sources put their pieces run by run
 * from IN into OUT.  If the runs of a piece are shorter than row_bytes in IN,
 * the source packs them in its TMP.  If they are shorter in OUT, or if the
 * piece accumulates, it goes to the receiver's TMP and is unpacked there.
 * Packed data goes in rounds that fit the windows: TMP has up to 5 windows for
 * a peer, 3 to unpack and 2 to pack.  Mapping is symmetric.  Pieces that do not
 * accumulate do not overlap.  If the pieces of all sources have the same shape,
 * all terms of an element go in the same round.
 */
int dtn_emit_exchange(const struct dtn_exchange *exchange,
                      struct dtn_sched *sched, struct dtensor_error *err);
#define DTN_EXCHANGE_WINDOWS 5

#endif
