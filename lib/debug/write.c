/* write.c - helpers of the text and JSON writers */
#include "debug/write.h"
#include "base/error.h"
#include "base/json.h"
#include "debug/counters.h"

#include <errno.h>

void dtn_write_line_fields(const struct dtn_line *line, FILE *stream)
{
    fprintf(stream, "\"direction\":\"%s\",\"tensors\":",
            line->direction == DTENSOR_FORWARD ? "forward" : "backward");
    dtn_json_string(line->tensors, stream);
    if (line->kind != DTN_WATCHED_REDIST)
        return;
    fprintf(stream, ",\"op\":");
    dtn_json_string(line->op, stream);
    fprintf(stream, ",\"operand\":%d,\"reason\":", line->operand);
    dtn_json_string(line->why, stream);
}

int dtn_write_end(const char *what, FILE *stream, struct dtensor_error *err)
{
    if (fflush(stream) == 0 && !ferror(stream))
        return 0;
    return dtn_fail_sys(err, errno ? errno : EIO, "%s: cannot write: %m", what);
}
