/* record.h - what this rank called, for the words about a mismatch */
#ifndef DTN_COLL_RECORD_H
#define DTN_COLL_RECORD_H

#include "boot/boot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtensor_ctx;
struct dtn_call;
struct dtn_coll_words;
struct dtn_group;
/* A call of this rank in numbers, and anyone's in words: ctx->words. */
struct dtn_said dtn_call_said(const struct dtn_group *group,
                              const struct dtn_call *call,
                              uint64_t fingerprint);
char *dtn_said_describe(const struct dtn_said *said, char *buf, size_t size);
bool dtn_said_recall(const struct dtensor_ctx *ctx, uint64_t fingerprint,
                     struct dtn_said *said);
bool dtn_said_numbered(const struct dtensor_ctx *ctx, uint64_t group,
                       uint32_t number, struct dtn_said *said);
extern const struct dtn_coll_words dtn_coll_words;     /* exec/said.c          */

#endif
