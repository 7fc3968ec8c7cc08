/* json.h - strings of JSON */
#ifndef DTN_BASE_JSON_H
#define DTN_BASE_JSON_H

#include <stdio.h>

/* A string with its quotes.  A byte that is not UTF-8 becomes U+FFFD: names of
 * hosts and of a program's scopes may have any.
 */
void dtn_json_string(const char *text, FILE *stream);

#endif
