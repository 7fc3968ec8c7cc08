/* room.h - memory in which rows that lie apart are put together
 *
 * The stack of a thread may have no more than 64 KiB, so the caller of
 * dtn_softmax() and others gives them this memory.  It is aligned to 64 bytes,
 * and no data is kept there.  NULL: rows that lie apart are computed one by
 * one, with the same bits.
 */
#ifndef DTN_MATH_ROOM_H
#define DTN_MATH_ROOM_H

/* Bytes of it: a tile of softmax_columns.c. */
enum { DTN_ROOM_BYTES = 400 << 10 };

#endif
