/* log.h - what the library chose, on standard error when asked */
#ifndef DTN_BASE_LOG_H
#define DTN_BASE_LOG_H

#include "base/compiler.h"

#include <stdio.h>

enum dtn_log_level { DTN_LOG_OFF, DTN_LOG_WARN, DTN_LOG_INFO, DTN_LOG_DEBUG };

/* Where a context's log goes.  `rank` is -1 until it is known. */
struct dtn_log {
    enum dtn_log_level level;
    int rank;
    FILE *stream;
    unsigned dropped;             /* lines dropped, not yet reported           */
};

/* Level from DTN_LOG, stream stderr; warn for a word that is no level. */
void dtn_log_init(struct dtn_log *log);

/* Warn of such a word, on rank 0 and where the rank is not known. */
void dtn_log_check(struct dtn_log *log);

/* One line "dtensor[rank 3] room: text".  Choices and degradations only,
 * never an error that is also returned.
 */
void dtn_log(struct dtn_log *log, enum dtn_log_level level,
             const char *fmt, ...) DTN_PRINTF(3, 4);

#endif
