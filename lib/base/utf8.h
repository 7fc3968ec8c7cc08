/* utf8.h - characters of UTF-8 */
#ifndef DTN_BASE_UTF8_H
#define DTN_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the character that begins text[0..n), n >= 1: 1 for all of ASCII; 0:
 * none begins there.
 */
size_t dtn_utf8_length(const char *text, size_t n);

#endif
