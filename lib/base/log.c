/* log.c - silent unless asked
 *
 * DTN_LOG=warn|info|debug makes a context say on stderr what it chose and
 * why.  Nothing that is also returned as an error is logged.
 */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void dtn_log_init(struct dtn_log *log)
{
    static const char *const names[] = { "off", "warn", "info", "debug" };
    const char *want = getenv("DTN_LOG");

    log->level = DTN_LOG_OFF;
    log->rank = -1;
    log->stream = stderr;
    for (size_t i = 0; want && i < DTN_COUNT(names); i++)
        if (strcmp(want, names[i]) == 0)
            log->level = (enum dtn_log_level)i;
}

void dtn_log(const struct dtn_log *log, enum dtn_log_level level,
             const char *fmt, ...)
{
    char text[1024];
    int saved = errno;
    va_list ap;

    if (level > log->level)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (log->rank < 0)
        fprintf(log->stream, "dtensor: %s\n", text);
    else
        fprintf(log->stream, "dtensor[rank %d] %s\n", log->rank, text);
    errno = saved;
}
