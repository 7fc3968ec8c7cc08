/* record.h - a call of a rank as bytes; private to this room */
#ifndef DTN_BOOT_RECORD_H
#define DTN_BOOT_RECORD_H

#include <stdbool.h>

struct dtn_call_record;

/* Write a record, without its text, to DTN_FRAME_CALL_BYTES at `body`; and read
 * it.  unpack: false if it names no rank of the world or no kind of call; then
 * *rank is not set.
 */
void dtn_boot_record_pack(unsigned char *body, int rank,
                          const struct dtn_call_record *record);
bool dtn_boot_record_unpack(const unsigned char *body, int world, int *rank,
                            struct dtn_call_record *record);

#endif
