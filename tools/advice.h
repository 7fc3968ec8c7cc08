/* advice.h - what to say of an option that does not exist */
#ifndef TOOLS_ADVICE_H
#define TOOLS_ADVICE_H

#include <stddef.h>

/* "--sharp: no such option; did you mean "--shape"?"  `known` are the long
 * names without dashes, NULL-terminated.  Returns buf[size].
 */
char *advice_option(const char *word, const char *const known[], char *buf,
                    size_t size);

#endif
