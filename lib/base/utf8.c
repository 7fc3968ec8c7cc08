/* utf8.c - characters of UTF-8
 *
 * The first byte says how many follow: 110xxxxx one, 1110xxxx two, 11110xxx
 * three; each of those is 10xxxxxx.  A character in more bytes than it needs, a
 * half of a UTF-16 pair, and what is beyond 10FFFF is none.
 */
#include "base/utf8.h"
#include "base/compiler.h"

#include <stdint.h>

size_t dtn_utf8_length(const char *text, size_t n)
{
    static const struct { unsigned char mask, lead; uint32_t min; } forms[] = {
        { 0x80, 0x00, 0 }, { 0xE0, 0xC0, 0x80 }, { 0xF0, 0xE0, 0x800 },
        { 0xF8, 0xF0, 0x10000 }
    };
    const unsigned char *byte = (const unsigned char *)text;
    uint32_t code;

    for (size_t i = 0; i < DTN_COUNT(forms) && i < n; i++) {
        if ((byte[0] & forms[i].mask) != forms[i].lead)
            continue;
        code = byte[0] & (unsigned char)~forms[i].mask;
        for (size_t k = 1; k <= i; k++) {
            if ((byte[k] & 0xC0) != 0x80)
                return 0;
            code = code << 6 | (byte[k] & 0x3F);
        }
        return code >= forms[i].min && code <= 0x10FFFF &&
               (code < 0xD800 || code > 0xDFFF) ? i + 1 : 0;
    }
    return 0;
}
