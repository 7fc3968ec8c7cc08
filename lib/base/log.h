/* log.h - what the library chose, on standard error when asked */
#ifndef DTN_BASE_LOG_H
#define DTN_BASE_LOG_H

#include "base/compiler.h"

#include <stdio.h>

enum dtn_log_level {
    DTN_LOG_OFF,
    DTN_LOG_STALL,                /* only who waits long for whom             */
    DTN_LOG_WARN, DTN_LOG_INFO, DTN_LOG_DEBUG
};

/* The log of a context. */
struct dtn_log {
    enum dtn_log_level level;     /* lines above this level are left out      */
    int rank;                     /* of this process; -1: not known yet       */
    FILE *stream;                 /* where lines go; not owned                */
    unsigned dropped;             /* lines dropped, not yet reported          */
};

/* Take the level from DTN_LOG and write to stderr.  A word that is no level
 * counts as warn.
 */
void dtn_log_init(struct dtn_log *log);

/* Warn of such a word, if this is rank 0 or the rank is not known. */
void dtn_log_check(struct dtn_log *log);

/* Write one line, "dtensor[rank 3] room: text".  Only choices and degradations
 * are logged, never an error that is also returned.
 */
void dtn_log(struct dtn_log *log, enum dtn_log_level level,
             const char *fmt, ...) DTN_PRINTF(3, 4);

#endif
