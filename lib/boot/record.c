/* record.c - a call of a rank as bytes
 *
 * 52 bytes, little-endian: which rank, and the numbers of its record.  Frames
 * put text or other numbers behind them.
 */
#include "boot/record.h"
#include "boot/boot.h"
#include "boot/frame.h"

#include <stdbool.h>

void dtn_boot_record_pack(unsigned char *body, int rank,
                          const struct dtn_call_record *record)
{
    dtn_frame_put32(body, (uint32_t)rank);
    dtn_frame_put32(body + 4, record->kind);
    dtn_frame_put64(body + 8, record->fingerprint);
    dtn_frame_put64(body + 16, record->group);
    dtn_frame_put32(body + 24, record->number);
    dtn_frame_put32(body + 28, record->n);
    dtn_frame_put32(body + 32, (uint32_t)record->other);
    dtn_frame_put64(body + 36, record->count);
    dtn_frame_put64(body + 44, record->back);
}

bool dtn_boot_record_unpack(const unsigned char *body, int world, int *rank,
                            struct dtn_call_record *record)
{
    const uint32_t from = dtn_frame_get32(body);

    *record = (struct dtn_call_record){
        .kind = (enum dtn_call_kind)dtn_frame_get32(body + 4),
        .fingerprint = dtn_frame_get64(body + 8),
        .group = dtn_frame_get64(body + 16),
        .number = dtn_frame_get32(body + 24),
        .n = dtn_frame_get32(body + 28),
        .other = (int32_t)dtn_frame_get32(body + 32),
        .count = dtn_frame_get64(body + 36),
        .back = dtn_frame_get64(body + 44)
    };
    if (from >= (uint32_t)world || (unsigned)record->kind >= DTN_NRECORDS)
        return false;
    *rank = (int)from;
    return true;
}
