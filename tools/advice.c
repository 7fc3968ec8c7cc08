/* advice.c - what to say of an option that does not exist */
#include "tools/advice.h"
#include "dtensor.h"

#include <stdio.h>
#include <string.h>

char *advice_option(const char *word, const char *const known[], char *buf,
                    size_t size)
{
    char name[64], advice[160];
    const char *quote;

    snprintf(buf, size, "%s: no such option", word);
    if (strncmp(word, "--", 2) != 0)
        return buf;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    dtensor_advise(name, known, NULL, advice, sizeof advice);
    quote = strchr(advice, '"');
    if (strncmp(advice, "did you mean", 12) == 0 && quote)
        snprintf(buf, size, "%s: no such option; did you mean \"--%s", word,
                 quote + 1);
    return buf;
}
