/* json.c - strings of JSON */
#include "base/json.h"
#include "base/utf8.h"

#include <string.h>

void dtn_json_string(const char *text, FILE *stream)
{
    fputc('"', stream);
    for (size_t n, left = strlen(text); left > 0; text += n, left -= n) {
        n = dtn_utf8_length(text, left);
        if (n > 1)
            fwrite(text, 1, n, stream);
        else if (n == 0)
            fputs("\\ufffd", stream);
        else if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(stream, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, stream);
        n += n == 0;
    }
    fputc('"', stream);
}
