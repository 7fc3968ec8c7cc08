/* record.h - the last calls of this rank, for the report of a mismatch */
#ifndef DTN_COLL_RECORD_H
#define DTN_COLL_RECORD_H

#include "boot/boot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtensor_ctx;
struct dtn_call;
struct dtn_call_describer;
struct dtn_group;
/* The record of a call of this rank, and the text of any rank's record:
 * ctx->words.
 */
struct dtn_call_record dtn_call_record_of(const struct dtn_group *group,
                                          const struct dtn_call *call,
                                          uint64_t fingerprint);
char *dtn_record_describe(const struct dtn_call_record *said, char *buf,
                          size_t size);
bool dtn_record_recall(const struct dtensor_ctx *ctx, uint64_t fingerprint,
                       struct dtn_call_record *said);
bool dtn_record_numbered(const struct dtensor_ctx *ctx, uint64_t group,
                         uint32_t number, struct dtn_call_record *said);

/* The text of calls is about to be freed. */
void dtn_record_forget(struct dtensor_ctx *ctx, const char *text);

extern const struct dtn_call_describer dtn_coll_describer; /* exec/mismatch.c */

#endif
